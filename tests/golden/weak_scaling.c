/* Weak scaling of GPT from 1.7 billion to 1 trillion parameters on 32 to 3,072 A100s: Narayanan et al. 2021, "Efficient
 * Large-Scale Language Model Training on GPU Clusters Using Megatron-LM", table 1; micro-batches and interleaved stages
 * from the scripts that NVIDIA/Megatron-LM keeps for it (examples/academic_paper_scripts/sc21/run_table_1.sh). Their
 * TFLOP/s count the recomputed forward pass: 96 B s l h^2 (1 + s/6h + V/16lh) for a step. Nothing here is fitted to the
 * rows: the requests say what the software did (full recomputation, attention that was not yet fused, Megatron's fused
 * kernels, of 2021, fp16 with fp32 masters, eight HDR ports a node). */
#include <math.h>
#include <stdio.h>

#include "golden.h"

typedef struct row {
    const char *name;
    int layers, hidden, heads, gpus, tp, pp, vpp, micro, global;
    double tflops;
} row;

static const row rows[] = {
    {"1.7 B", 24, 2304, 24, 32, 1, 1, 1, 16, 512, 137},
    {"3.6 B", 30, 3072, 32, 64, 2, 1, 1, 16, 512, 138},
    {"7.5 B", 36, 4096, 32, 128, 4, 1, 1, 16, 512, 142},
    {"18.4 B", 40, 6144, 48, 256, 8, 1, 1, 8, 1024, 135},
    {"39.1 B", 48, 8192, 64, 512, 8, 2, 1, 4, 1536, 138},
    {"76.1 B", 60, 10240, 80, 1024, 8, 4, 3, 2, 1792, 140},
    {"145.6 B", 80, 12288, 96, 1536, 8, 8, 2, 2, 2304, 148},
    {"310.1 B", 96, 16384, 128, 1920, 8, 16, 2, 1, 2160, 155},
    {"529.6 B", 105, 20480, 128, 2520, 8, 35, 3, 1, 2520, 163},
    {"1 T", 128, 25600, 160, 3072, 8, 64, 1, 1, 3072, 163},
};
enum { ROWS = sizeof rows / sizeof *rows, SEQ = 2048, VOCAB = 51200 };

static double forecast_tflops(const row *r)
{
    double ms = golden_value(
        "step_ms",
        "{\"task\":\"train\",\"model\":{\"model_type\":\"gpt2\",\"n_embd\":%d,\"n_inner\":%d,\"n_layer\":%d,\"n_head\":"
        "%d,"
        "\"n_positions\":%d,\"vocab_size\":%d},\"gpu\":\"a100_sxm_80gb\",\"batch\":%d,\"seq\":%d,\"global_batch\":%d,"
        "\"dtype\":\"fp16\",\"master_weights\":true,\"attention\":\"eager\",\"stack\":\"megatron_2021\",\"optimizer\":"
        "\"adamw\","
        "\"recompute\":\"full\",\"parallel\":{\"tp\":%d,\"pp\":%d,\"vpp\":%d,\"dp\":%d,\"schedule\":\"%s\","
        "\"overlap_p2p\":false}," /* Megatron of 2021 waited for every transfer (batch_isend_irecv, then wait) */
        "\"cluster\":{\"gpus_per_node\":8,\"interconnect\":\"8x200 Gbps HDR InfiniBand/node (Selene)\"}}",
        r->hidden, 4 * r->hidden, r->layers, r->heads, SEQ, VOCAB, r->micro, SEQ, r->global, r->tp, r->pp, r->vpp,
        r->gpus / (r->tp * r->pp), r->vpp > 1 ? "interleaved" : "1f1b");
    double h = r->hidden, l = r->layers;
    double flops = 96.0 * r->global * SEQ * l * h * h * (1 + SEQ / (6 * h) + VOCAB / (16 * l * h));
    return flops / r->gpus / (ms * 1e-3) * 1e-12;
}

static void each_row_of_megatrons_weak_scaling_within_8_percent(void **state)
{
    (void)state;
    double sum = 0;
    for (int i = 0; i < ROWS; i++) {
        double got = forecast_tflops(&rows[i]);
        golden_near(rows[i].name, got, rows[i].tflops, 0.08);
        sum += fabs(got / rows[i].tflops - 1);
    }
    golden_holds(sum / ROWS < 0.055, "the ten rows are %.1f %% off on average", 100 * sum / ROWS);
}

/* The paper's point: the share of peak does not fall from 32 to 3,072 GPUs, it grows with the model. */
static void the_share_of_peak_grows_with_the_model(void **state)
{
    (void)state;
    double small = forecast_tflops(&rows[0]), large = forecast_tflops(&rows[ROWS - 1]);
    golden_holds(large > 1.1 * small, "%.0f TFLOP/s at 1.7 B, %.0f at 1 T", small, large);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_row_of_megatrons_weak_scaling_within_8_percent),
        cmocka_unit_test(the_share_of_peak_grows_with_the_model),
    };
    return cmocka_run_group_tests(tests, golden_open, golden_close);
}

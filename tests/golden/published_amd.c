/* Runs on AMD's GPUs that others published and nothing was chosen on (data/published/amd.jsonl), by source; and
 * products of AITER's tables by their times. Bounds are what the code reaches today, rounded up. */
#include <math.h>
#include <string.h>

#include "golden.h"

/* Primus in bf16: how long its recomputation and its network take is not said. Batches of 64 and more by vLLM are
 * forecast too short. */
static const golden_bound sources[] = {
    {"MLPerf Training v5.1, AMD", 0.05, 0.1, 6},
    {"AMD, Primus", 0.14, 0.28, 6},
    {"vLLM on MI300X, AMD", 0.08, 0.28, 32},
    {"Oracle, vLLM on MI300X", 0.19, 0.4, 9},
};
enum { SOURCES = sizeof sources / sizeof *sources };

/* Taken later; llama.cpp's weights have 4.85 bits where 4 are asked for. */
static const golden_bound later[] = {{"torchtitan on MI355X, AMD", 0.11, 0.18, 3},
                                     {"llama.cpp on RX 7900 XTX", 0.22, 0.23, 2},
                                     {"torchao on MI300X, PyTorch", 0.12, 0.17, 4}};

/* PyTorch itself, asked before it was forecast, without its version: with that of today it is met, but for products in
 * fp32 on a card for desktops; on eight MI300X it is of October 2024. */
static const golden_bound pytorch[] = {{"torch-mojo-backend, PyTorch (MI300X)", 0.03, 0.04, 2},
                                       {"torch-mojo-backend, PyTorch (MI300A)", 0.22, 0.22, 1},
                                       {"modded-nanogpt's issues (MI300X)", 0.6, 0.6, 1},
                                       {"llm.c for AMD, PyTorch (RX 7900 XTX)", 0.17, 0.17, 1},
                                       {"pytorch-micro-benchmarking (RX 7900 XTX)", 0.36, 0.36, 1},
                                       {"pytorch-gpu-benchmark (RX 7900 XTX)", 0.15, 0.4, 10},
                                       {"TorchBench (RX 7900 XTX)", 0.31, 0.4, 4}};

static void published_runs_are_met(void **state)
{
    (void)state;
    golden_runs("published/amd_pytorch.jsonl", pytorch, sizeof pytorch / sizeof *pytorch, NULL);
    golden_runs("published/amd.jsonl", sources, SOURCES, NULL);
    golden_runs("published/amd_later.jsonl", later, 3, NULL);
}

/* Issues of ROCm's Transformer Engine, October 2024: fp8 by its first port, on Hopper, and the same models compiled in
 * bf16. With the software of today the first would be 16 to 42 % too fast. */
static const golden_bound ports[] = {
    {"fp8, MI300X", 0.12, 0.22, 6}, {"fp8, H200", 0.14, 0.25, 2}, {"bf16", 0.1, 0.2, 6}};

static int port_of(const json_t *run)
{
    const json_t *request = json_object_get(run, "request");
    if (strcmp(json_string_value(json_object_get(request, "dtype")), "fp8") != 0) return 2;
    return strcmp(json_string_value(json_object_get(request, "gpu")), "mi300x") != 0;
}

static void the_first_port_is_met(void **state)
{
    (void)state;
    golden_runs("published/amd_engine.jsonl", ports, 3, port_of);
}

static double attends_tflops(const char *kernels, const char *pass, int tokens, int width, bool mask)
{
    const int heads = 16, batch = 16;
    double ms =
        golden_value("ms",
                     "{\"task\":\"kernel\",\"op\":\"attention\",\"gpu\":\"mi355x\",\"dtype\":\"bf16\",\"batch\":%d,"
                     "\"heads\":%d,\"kv_heads\":%d,\"q_len\":%d,\"kv_len\":%d,\"head_dim\":%d,\"causal\":%s,"
                     "\"attention\":\"%s\",\"pass\":\"%s\"}",
                     batch, heads, heads, tokens, tokens, width, mask ? "true" : "false", kernels, pass);
    double flops = 4.0 * batch * heads * tokens * tokens * width * (mask ? 0.5 : 1);
    return flops * (strcmp(pass, "fwd") ? 2.5 : 1) / ms * 1e-9;
}

/* PyTorch's own attention on an MI300X (2.11, gabrieldemarmiesse/torch-mojo-backend, optimization_journal.md, twelve
 * layers): what a kernel by the name of sdpa is, or without one. The physics alone had it going back in 0.76 ms. */
static void sdpa_is_what_pytorch_has(void **state)
{
    (void)state;
    for (int named = 0; named < 2; named++) {
        const char *format =
            "{\"task\":\"kernel\",\"op\":\"attention\",\"gpu\":\"mi300x\",\"dtype\":\"bf16\","
            "\"batch\":48,\"heads\":12,\"q_len\":1024,\"head_dim\":64,\"causal\":true,%s\"pass\":\"%s\"}";
        const char *name = named ? "\"attention\":\"sdpa\"," : "";
        golden_near("forward", golden_value("ms", format, name, "fwd"), 0.68, 0.2);
        golden_near("back", golden_value("ms", format, name, "bwd"), 2.414, 0.1);
    }
}

/* How far PyTorch may be off there hangs on its age, which a request may leave open; of other makers' GPUs it does not.
 */
static void an_older_pytorch_may_take_longer(void **state)
{
    (void)state;
    static const char *const gpus[] = {"mi300x", "h100_sxm"};
    for (int at = 0; at < 2; at++) {
        const char *format = "{\"task\":\"train\",\"model\":\"gpt2\",\"gpu\":\"%s\",\"batch\":32,\"seq\":1024,"
                             "\"dtype\":\"bf16\",\"attention\":\"flash2\"%s}";
        double wide[3];
        static const char *const said[] = {",\"pytorch\":\"2.11\"", "", ",\"pytorch\":\"2.8\""};
        for (int i = 0; i < 3; i++)
            wide[i] = golden_value("high_ms", format, gpus[at], said[i]) /
                      golden_value("step_ms", format, gpus[at], said[i]);
        if (at) {
            assert_float_equal(wide[0], wide[1], 1e-3);
            assert_float_equal(wide[1], wide[2], 1e-3);
        } else {
            assert_true(wide[1] > wide[0] + 0.05);
            assert_true(wide[2] > wide[1] + 0.15);
        }
    }
}

/* vllm-project/vllm, pull requests 39080 and 19744, ROCm/aiter, pull request 801: vLLM's own sum over eight, four and
 * two GPUs that no switch joins. The last was not chosen on: it had been forecast at twice its time. */
static void a_mesh_is_read_wire_by_wire(void **state)
{
    (void)state;
    static const struct {
        const char *gpu;
        int ranks, kib;
        double us, within;
    } sums[] = {{"mi355x", 8, 24, 6.3, 0.07},   {"mi355x", 8, 192, 10.0, 0.07},  {"mi355x", 8, 384, 13.1, 0.07},
                {"mi355x", 8, 1536, 24.2, 0.1}, {"mi300x", 4, 32, 7.58, 0.07},   {"mi300x", 4, 256, 14.39, 0.15},
                {"mi300x", 4, 1024, 22.9, 0.1}, {"mi300x", 4, 8192, 118.3, 0.1}, {"mi300x", 2, 64, 7.66, 0.15},
                {"mi300x", 2, 1024, 28.2, 0.1}, {"mi300x", 2, 8192, 181.4, 0.05}};
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++)
        golden_near("sum",
                    1e3 * golden_value("ms",
                                       "{\"task\":\"collective\",\"op\":\"all_reduce\",\"gpu\":\"%s\","
                                       "\"ranks\":%d,\"bytes\":%d,\"engine\":\"vllm\"}",
                                       sums[i].gpu, sums[i].ranks, 1024 * sums[i].kib),
                    sums[i].us, sums[i].within);
}

/* HazyResearch/HipKittens, analysis/attn: short sequences lose more than on NVIDIA's units. */
static void short_sequences_start_slowly(void **state)
{
    (void)state;
    golden_near("AITER forward, 1k", attends_tflops("flash3", "fwd", 1024, 128, false), 828, 0.42);
    golden_near("AITER forward, mask, 2k", attends_tflops("flash3", "fwd", 2048, 128, true), 876, 0.12);
    golden_near("AITER back, mask, 1k", attends_tflops("flash3", "bwd", 1024, 128, true), 389, 0.07);
    golden_near("AITER back, mask, 16k", attends_tflops("flash3", "bwd", 16384, 128, true), 1109, 0.07);
    golden_near("Composable Kernel back, mask, 1k", attends_tflops("flash", "bwd", 1024, 128, true), 258, 0.07);
    golden_near("Composable Kernel, 2k, heads of 64", attends_tflops("flash", "fwd", 2048, 64, false), 679, 0.1);
}

static double us_of(const char *gpu, const char *dtype, int m, int n, int k)
{
    return 1e3 * golden_value("ms",
                              "{\"task\":\"kernel\",\"op\":\"gemm\",\"gpu\":\"%s\",\"dtype\":\"%s\",\"m\":%d,\"n\":%d,"
                              "\"k\":%d%s}",
                              gpu, dtype, m, n, k, strcmp(dtype, "bf16") != 0 ? ",\"quantized\":true" : "");
}

/* ROCm/aiter, aiter/configs: the fastest kernel of a search. Few tiles take half as long again as they would with
 * copies that need no registers; many hide it. */
static void products_of_few_tiles(void **state)
{
    (void)state;
    golden_near("64 x 256 x 5120", us_of("mi355x", "bf16", 64, 256, 5120), 7.9, 0.35);
    golden_near("128 x 256 x 5120", us_of("mi355x", "bf16", 128, 256, 5120), 9.0, 0.35);
    /* Microsoft's MI300X, fp8, held by the board at the larger size. */
    golden_near("8192 cubed", 2 * pow(8192, 3) / us_of("mi300x", "fp8", 8192, 8192, 8192) * 1e-6, 1159, 0.12);
    golden_near("16384 cubed", 2 * pow(16384, 3) / us_of("mi300x", "fp8", 16384, 16384, 16384) * 1e-6, 1015, 0.18);
    double few = us_of("mi355x", "bf16", 512, 2048, 4096), many = us_of("mi355x", "bf16", 16384, 16384, 4096);
    golden_holds(few * 256 > 2 * many, "a 256th of the tiles takes %.0f of %.0f us", few, many);
}

/* ROCm/hipBLASLt, the table of fp8 products of gfx942: loads and products take turns, so that 128 rows take longer than
 * the weights that they stream. Taken for hidden, these were 30 to 40 % too fast. */
static void loads_take_turns_with_products(void **state)
{
    (void)state;
    golden_near("64 rows", us_of("mi300x", "fp8", 64, 34048, 8192), 116.7, 0.22);
    golden_near("128 rows", us_of("mi300x", "fp8", 128, 32768, 8192), 142.2, 0.1);
    golden_near("256 rows", us_of("mi300x", "fp8", 256, 29184, 4096), 103.8, 0.1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_runs_are_met),      cmocka_unit_test(the_first_port_is_met),
        cmocka_unit_test(a_mesh_is_read_wire_by_wire), cmocka_unit_test(short_sequences_start_slowly),
        cmocka_unit_test(products_of_few_tiles),       cmocka_unit_test(loads_take_turns_with_products),
        cmocka_unit_test(sdpa_is_what_pytorch_has),    cmocka_unit_test(an_older_pytorch_may_take_longer),
    };
    return cmocka_run_group_tests(tests, golden_open, golden_close);
}

/* Publishers that nothing was chosen on (of data/published: strangers.jsonl, training_strangers.jsonl, the memory of
 * both, vision_later.jsonl, servers.jsonl, servers_later.jsonl, servers_newer.jsonl), and cards of timm that no
 * kernel's constants had in view (timm.jsonl). Bounds are what the code reaches today, rounded up; docs/accuracy says
 * what is known of the large ones. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "golden.h"

/* Old cuDNN in half precision, copies from pageable memory, fused layers, padded batches: not what was asked for. */
static const golden_bound runs[] = {
    {"pytorch-gpu-benchmark, training", 0.32, 0.6, 40},
    {"pytorch-gpu-benchmark, inference", 0.24, 0.55, 40},
    {"deep-learning-benchmark", 0.2, 0.5, 16},
    {"XTuner speed benchmark (A100)", 0.16, 0.43, 13},
    {"torchao optimizers", 0.22, 0.57, 4},
    {"torchao quantised training, its bf16", 0.08, 0.14, 2},
    {"AutoAWQ, decoding (GEMV)", 3.5, 6.6, 6},
    {"AutoAWQ, decoding (GEMM)", 0.83, 2.1, 16},
    {"AutoAWQ, prompts (GEMM)", 0.56, 0.71, 8},
    {"DLE wav2vec 2.0, inference", 0.47, 0.65, 8},
    {"ROCm blogs, Llama 2 7B (MI300X)", 0.63, 0.89, 3},
    {"Unsloth README, Alpaca (T4)", 0.35, 0.53, 2},
};

/* timm's own tables, asked as transformers' models of the same shapes, which is 5 to 9 % more work. */
static const golden_bound timm[] = {
    {"timm, RTX 4090, PyTorch 2.4, eager", 0.165, 0.31, 28},
    {"timm, RTX 4090, PyTorch 2.4, channels last", 0.18, 0.38, 27},
    {"timm, RTX 4090, PyTorch 2.4, compiled", 0.18, 0.36, 27},
    {"timm, RTX 4090, PyTorch 2.9, eager", 0.22, 0.37, 27},
    {"timm, RTX 4090, PyTorch 2.9, compiled", 0.145, 0.33, 27},
    {"timm, RTX 5090, PyTorch 2.9, eager", 0.085, 0.25, 27},
    {"timm, RTX 5090, PyTorch 2.9, compiled", 0.06, 0.19, 27},
};

static void nets_of_timm_are_met(void **state)
{
    (void)state;
    golden_runs("published/timm.jsonl", timm, sizeof timm / sizeof *timm, NULL);
}

static void runs_of_strangers_are_met(void **state)
{
    (void)state;
    golden_runs("published/strangers.jsonl", runs, sizeof runs / sizeof *runs, NULL);
}

/* Training and fine-tuning of eleven more: deterministic algorithms, loops that hold their logits, steps timed from the
 * first on (docs/accuracy/runs.md). */
static const golden_bound trained[] = {
    {"pycls, training", 0.13, 0.35, 13},
    {"pycls, inference", 0.07, 0.13, 13},
    {"transformers-benchmarks (RTX 3090 Ti)", 0.08, 0.17, 13},
    {"Keras 3 benchmarks (A100, XLA)", 0.16, 0.34, 8},
    {"Universal LLM trainer", 0.65, 0.91, 34},
    {"can-i-finetune-this (RTX 4080)", 0.61, 0.73, 11},
    {"Soup (H100)", 0.04, 0.05, 2},
    {"DLPerf, ResNet-50 (V100)", 0.04, 0.07, 5},
    {"DLPerf, BERT base (V100)", 0.25, 0.33, 12},
    {"transformers docs, two TITAN RTX", 0.07, 0.07, 1},
    {"AWS, ESM-2 (A10G)", 0.44, 0.52, 2},
    {"AWS, FSDP (H100)", 0.46, 0.46, 1},
    {"Scicom (four H100, H200, L40S)", 0.18, 0.3, 3},
    {"DLE EfficientNet, inference (A100)", 0.12, 0.35, 11},
};
/* Old cuDNN, and hosts that take longer than the GPU. */
static const golden_bound pictures[] = {
    {"pytorch-gpu-benchmark, other networks, inference", 0.28, 0.76, 71},
    {"pytorch-gpu-benchmark, other networks, training", 0.37, 0.73, 71},
};

static void training_of_strangers_is_met(void **state)
{
    (void)state;
    golden_runs("published/training_strangers.jsonl", trained, sizeof trained / sizeof *trained, NULL);
    golden_runs("published/vision_later.jsonl", pictures, sizeof pictures / sizeof *pictures, NULL);
}

/* One figure of a file, and how far its forecasts may be off on average. */
typedef struct bound {
    const char *source, *figure;
    double mean;
    int rows;
} bound;

static void add(const bound *bounds, size_t count, const char *source, const char *figure, double error, double *sum,
                int *rows)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(bounds[i].source, source) == 0 && strcmp(bounds[i].figure, figure) == 0) {
            sum[i] += fabs(error);
            rows[i]++;
            return;
        }
    fail_msg("no bound for %s of %s", figure, source);
}

static void hold(const bound *bounds, size_t count, const double *sum, const int *rows)
{
    for (size_t i = 0; i < count; i++) {
        golden_holds(rows[i] == bounds[i].rows, "%s, %s: %d rows", bounds[i].source, bounds[i].figure, rows[i]);
        golden_holds(sum[i] / rows[i] < bounds[i].mean, "%s, %s: %.1f %% off on average", bounds[i].source,
                     bounds[i].figure, 100 * sum[i] / rows[i]);
    }
}

enum { MOST = 40 };

static const bound peaks[] = {
    {"torchao optimizers, memory", "peak", 0.13, 4},
    {"torchao quantised training, its bf16, memory", "peak", 0.13, 2},
    {"ROCm blogs, Llama 2 7B (MI300X), memory", "reserved", 0.28, 3},
    {"PEFT docs, 70B sharded, memory", "reserved", 0.17, 4},
    {"Unsloth's contexts, Hugging Face + FA2, memory", "reserved", 0.22, 3},
    {"Unsloth's contexts, Unsloth, memory", "reserved", 0.41, 3},
};

static const bound trained_peaks[] = {
    {"transformers-benchmarks (RTX 3090 Ti), memory", "peak", 0.07, 8},
    {"Universal LLM trainer, memory", "reserved", 0.25, 34},
    {"can-i-finetune-this (RTX 4080), memory", "peak", 0.27, 11},
    {"can-i-finetune-this (RTX 4080), memory", "reserved", 0.22, 11},
    {"Soup (H100), memory", "reserved", 0.31, 2},
    {"LongLoRA, memory", "reserved", 0.2, 1},
};

static void peaks_are_met(const char *file, const bound *bounds, size_t count)
{
    double sum[MOST] = {0};
    int rows[MOST] = {0};
    json_t *lines = golden_rows(file), *run;
    size_t n;
    json_array_foreach (lines, n, run) {
        bool peak = strcmp(json_string_value(json_object_get(run, "memory_kind")), "allocated") == 0;
        char *request = json_dumps(json_object_get(run, "request"), 0);
        assert_non_null(request);
        double got = golden_value(peak ? "memory.peak_bytes" : "memory.reserved_bytes", "%s", request);
        double truth = json_number_value(json_object_get(run, "truth_bytes"));
        add(bounds, count, json_string_value(json_object_get(run, "source")), peak ? "peak" : "reserved",
            got / truth - 1, sum, rows);
        free(request);
    }
    json_decref(lines);
    hold(bounds, count, sum, rows);
}

static void memory_of_strangers_is_met(void **state)
{
    (void)state;
    peaks_are_met("published/strangers_memory.jsonl", peaks, sizeof peaks / sizeof *peaks);
    peaks_are_met("published/training_strangers_memory.jsonl", trained_peaks,
                  sizeof trained_peaks / sizeof *trained_peaks);
}

/* As they ran, as far as that is known ("also"). */
static const bound servers[] = {
    {"Lambda, vLLM", "itl_ms", 0.15, 39},
    {"dstack, batches of 405B (H100)", "makespan_ms", 0.22, 17},
    {"dstack, batches of 405B (MI300X)", "makespan_ms", 0.1, 19},
    {"dstack, prompts elsewhere (gpt-oss)", "tpot_ms", 0.19, 27},
    {"dstack, prompts elsewhere (gpt-oss)", "ttft_ms", 0.62, 27},
    {"dstack, prompts elsewhere (gpt-oss)", "makespan_ms", 0.24, 27},
    {"LMDeploy, requests", "makespan_ms", 0.07, 4},
    {"LMDeploy, batches", "makespan_ms", 0.15, 16},
    {"Vultr, vLLM 0.16 (B200)", "tpot_ms", 0.23, 13},
    {"Vultr, vLLM 0.16 (B200)", "ttft_ms", 0.55, 13},
    {"Vultr, vLLM 0.16 (B200)", "makespan_ms", 0.26, 13},
    {"NVIDIA NIM 1.8 (H100)", "tpot_ms", 0.09, 8},
    {"NVIDIA NIM 1.8 (H100)", "ttft_ms", 0.3, 8},
    {"NVIDIA NIM 1.8 (H100)", "makespan_ms", 0.06, 8},
    {"vLLM's performance benchmark (H200)", "makespan_ms", 0.22, 3},
};

/* The same of seven more; docs/accuracy/serving.md says what is known of them. */
static const bound servers_later[] = {
    {"GPUStack: vLLM", "ttft_ms", 0.41, 64},
    {"GPUStack: vLLM", "tpot_ms", 0.31, 64},
    {"GPUStack: vLLM", "makespan_ms", 0.32, 64},
    {"GPUStack: SGLang", "ttft_ms", 0.74, 11},
    {"GPUStack: SGLang", "tpot_ms", 0.36, 11},
    {"GPUStack: SGLang", "makespan_ms", 0.35, 11},
    {"GPUStack: TensorRT-LLM", "ttft_ms", 0.5, 7},
    {"GPUStack: TensorRT-LLM", "tpot_ms", 0.5, 7},
    {"GPUStack: TensorRT-LLM", "makespan_ms", 0.47, 7},
    {"GPUStack, latency", "ttft_ms", 0.66, 6},
    {"GPUStack, latency", "tpot_ms", 0.04, 6},
    {"GPUStack, latency", "makespan_ms", 0.16, 6},
    {"SGLang cookbook", "ttft_ms", 0.51, 46},
    {"SGLang cookbook", "tpot_ms", 0.25, 46},
    {"SGLang cookbook", "makespan_ms", 0.32, 46},
    {"SGLang cookbook (AMD)", "ttft_ms", 0.95, 10},
    {"SGLang cookbook (AMD)", "tpot_ms", 0.16, 10},
    {"SGLang cookbook (AMD)", "makespan_ms", 0.2, 10},
    {"CloudRift: H200", "ttft_ms", 0.44, 8},
    {"CloudRift: H200", "tpot_ms", 0.14, 8},
    {"CloudRift: H200", "makespan_ms", 0.2, 8},
    {"CloudRift: cards", "ttft_ms", 0.34, 30},
    {"CloudRift: cards", "tpot_ms", 0.2, 30},
    {"CloudRift: cards", "makespan_ms", 0.23, 30},
    {"dennislee22, vLLM 0.10.1", "tpot_ms", 0.27, 40},
    {"dennislee22, vLLM 0.10.1", "makespan_ms", 0.25, 40},
    {"btbtyler09, MI100", "ttft_ms", 1.2, 4},
    {"btbtyler09, MI100", "tpot_ms", 0.49, 4},
    {"btbtyler09, MI100", "makespan_ms", 0.38, 4},
    {"vLLM recipes", "ttft_ms", 0.7, 2},
    {"vLLM recipes", "tpot_ms", 0.44, 2},
    {"vLLM recipes", "makespan_ms", 0.47, 2},
    {"Mushfiq Rahman, RTX 4090", "ttft_ms", 0.36, 5},
    {"Mushfiq Rahman, RTX 4090", "makespan_ms", 0.06, 5},
};

/* Four more. First tokens at rates that the engine is forecast not to keep up with have no forecast. */
static const bound servers_newer[] = {
    {"io.net: H100 PCIe", "tpot_ms", 0.13, 50},
    {"io.net: H100 PCIe", "ttft_ms", 0.5, 44},
    {"io.net: H100 PCIe", "makespan_ms", 0.16, 50},
    {"io.net: H100 PCIe, several", "tpot_ms", 0.28, 15},
    {"io.net: H100 PCIe, several", "ttft_ms", 0.43, 7},
    {"io.net: H100 PCIe, several", "makespan_ms", 0.31, 15},
    {"io.net: RTX 4090", "tpot_ms", 0.24, 20},
    {"io.net: RTX 4090", "ttft_ms", 0.37, 20},
    {"io.net: RTX 4090", "makespan_ms", 0.12, 20},
    {"io.net: RTX 4090, several", "tpot_ms", 0.44, 35},
    {"io.net: RTX 4090, several", "ttft_ms", 0.98, 30},
    {"io.net: RTX 4090, several", "makespan_ms", 0.16, 35},
    {"sariekr, gpt-oss 20B", "tpot_ms", 0.49, 16},
    {"sariekr, gpt-oss 20B", "ttft_ms", 0.61, 16},
    {"Yobitel, vLLM 0.21 and 0.22", "tpot_ms_p50", 0.14, 11},
    {"Yobitel, vLLM 0.21 and 0.22", "ttft_ms_p50", 0.22, 11},
    {"DatabaseMart, A40", "makespan_ms", 0.29, 6},
};

/* The request with what "also" adds, and without what it has as null. */
static char *as_run(json_t *run)
{
    json_t *request = json_object_get(run, "request"), *value;
    const char *key;
    json_object_foreach (json_object_get(run, "also"), key, value) {
        if (json_is_null(value))
            json_object_del(request, key);
        else
            json_object_set(request, key, value);
    }
    return json_dumps(request, 0);
}

static void runs_are_met(const char *file, const bound *bounds, size_t count)
{
    double sum[MOST] = {0};
    int rows[MOST] = {0};
    json_t *lines = golden_rows(file), *run, *truth;
    size_t n;
    json_array_foreach (lines, n, run) {
        char *request = as_run(run);
        assert_non_null(request);
        json_t *answer = golden_ask("%s", request);
        const char *figure;
        json_object_foreach (json_object_get(run, "truths"), figure, truth) {
            bool all = strcmp(figure, "makespan_ms") == 0;
            if (!all && !json_object_get(answer, figure)) continue; /* a queue that grows has no mean */
            double got = all ? 1000 * json_number_value(json_object_get(json_object_get(run, "request"), "requests")) /
                                   golden_figure(answer, "requests_per_s")
                             : golden_figure(answer, figure);
            add(bounds, count, json_string_value(json_object_get(run, "source")), figure,
                got / json_number_value(truth) - 1, sum, rows);
        }
        json_decref(answer);
        free(request);
    }
    json_decref(lines);
    hold(bounds, count, sum, rows);
}

static void servers_are_met_as_they_ran(void **state)
{
    (void)state;
    runs_are_met("published/servers.jsonl", servers, sizeof servers / sizeof *servers);
    runs_are_met("published/servers_later.jsonl", servers_later, sizeof servers_later / sizeof *servers_later);
    runs_are_met("published/servers_newer.jsonl", servers_newer, sizeof servers_newer / sizeof *servers_newer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_of_strangers_are_met), cmocka_unit_test(nets_of_timm_are_met),
        cmocka_unit_test(training_of_strangers_is_met), cmocka_unit_test(memory_of_strangers_is_met),
        cmocka_unit_test(servers_are_met_as_they_ran)};
    return cmocka_run_group_tests(tests, golden_open, golden_close);
}

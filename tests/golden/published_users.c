/* What people did on cards that they own or rent (data/published/users*.jsonl, renters*.jsonl, trainers*.jsonl,
 * publishers*.jsonl): small models from scratch, adapters, images, videos and detectors, of publishers that nothing
 * was chosen on. Each is held as it was asked and as it ran ("also"). Bounds are what the code reaches today, rounded
 * up; docs/accuracy says what is known of the large ones. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "golden.h"

/* How far off on average may be what is asked, and what is asked as it ran. */
typedef struct bound {
    const char *source;
    double asked, ran;
    int rows;
} bound;

static const bound times[] = {
    {"modded-nanogpt (8 H100)", 0.105, 0.085, 8},
    {"llm.c (8 H100, 8 A100)", 0.455, 0.095, 3},
    {"debirthasaha, GPT-2 124M (8 A100)", 0.16, 0.165, 1},
    {"nanochat (8 H100)", 0.055, 0.015, 5},
    {"nanochat, owners and renters", 0.125, 0.07, 3},
    {"parameter-golf (8 H100)", 0.135, 0.135, 5},
    {"autoresearch", 0.38, 0.36, 3},
    {"DGX Station, Llama 3.1 8B", 0.09, 0.09, 2},
    {"Unsloth's notebooks, Alpaca (T4)", 0.215, 0.245, 10},
    {"Hugging Face blog, FLUX QLoRA", 0.32, 0.32, 2},
    {"Swin Transformer's README (V100)", 0.07, 0.07, 2},
    {"Depth Anything (V100, A100)", 0.205, 0.205, 6},
    {"MMSegmentation, SegFormer, inference", 0.41, 0.41, 4},
    {"Detectron2, RetinaNet (V100)", 0.26, 0.25, 1},
    {"DETR (V100)", 0.475, 0.455, 2},
};

/* Losses of detectors are left out, images are larger than what is asked for. */
static const bound peaks[] = {
    {"DGX Station, Llama 3.1 8B, memory", 0.075, 0.075, 2},
    {"nanochat (8 H100), memory", 0.02, 0.125, 1}, /* nvidia-smi's, "78/80GB": with context and NCCL's buffers */
    {"parameter-golf (8 H100), memory", 0.065, 0.065, 2},
    {"autoresearch, memory", 0.425, 0.325, 2},
    {"Unsloth's notebooks, Alpaca (T4), memory", 0.54, 0.09, 10},
    {"Hugging Face blog, FLUX QLoRA, memory", 0.135, 0.135, 3},
    {"Hugging Face blog, personal copilot, memory", 0.16, 0.045, 1},
    {"MMSegmentation, SegFormer, memory", 0.23, 0.205, 6},
    {"MMDetection, memory", 0.755, 0.74, 3},
    {"Detectron2, RetinaNet (V100), memory", 0.625, 0.595, 1},
};

/* What decodes videos is not modelled; Quanto's memory is what stays, not the peak. */
static const bound pictures[] = {
    {"Hugging Face blog, SDXL", 0.28, 0.27, 10},
    {"Sana's README", 0.09, 0.09, 3},
    {"Hugging Face blog, Quanto (H100)", 0.2, 0.06, 3},
    {"Hugging Face blog, Quanto (H100), memory", 0.55, 0.55, 3},
    {"Hugging Face blog, FLUX (H100)", 0.165, 0.165, 1},
    {"Hugging Face blog, FLUX (H100), memory", 0.01, 0.01, 1},
    {"Hugging Face blog, videos (A100)", 0.295, 0.295, 1},
    {"Hugging Face blog, videos (A100), memory", 0.19, 0.19, 2},
    {"Hugging Face blog, LTX-Video (H100)", 0.065, 0.065, 2},
};

/* Of fourteen more (renters.jsonl): layers, loops and kernels of their own, hosts that nobody described, passes of
 * which the first is one of three. */
static const bound rented[] = {
    {"whyNLP, TinyLlama by the Trainer", 0.135, 0.09, 8},
    {"whyNLP, TinyLlama by the Trainer, DeepSpeed", 0.205, 0.205, 7},
    {"llmq (RTX 4090)", 0.115, 0.12, 4},
    {"llmq (RTX 5060 Ti)", 0.15, 0.155, 2},
    {"llmq (H100)", 0.115, 0.115, 7},
    {"llmq (RTX PRO 6000)", 0.13, 0.135, 8},
    {"llmq (RTX 5090)", 0.105, 0.105, 5},
    {"llmq (L40S)", 0.055, 0.06, 6},
    {"llmq (four RTX 4090)", 0.035, 0.035, 2},
    {"llmq (four RTX PRO 6000)", 0.07, 0.065, 3},
    {"llmq (four L40S)", 0.04, 0.04, 2},
    {"LLaMA-Factory by llmq's authors (RTX 4090)", 0.1, 0.1, 2},
    {"LLaMA-Factory by length (A100 40 GB), FlashAttention-2", 0.12, 0.13, 6},
    {"LLaMA-Factory by length (A100 40 GB), Unsloth", 0.24, 0.105, 8},
    {"transformers docs, one GPU (V100)", 0.08, 0.11, 9},
    {"rasbt, ViT-L (A100)", 0.29, 0.225, 6},
    {"sandeepkumar-skb, ResNet-50 (V100)", 0.06, 0.06, 4},
    {"CS336, yyin-dev (A100 40 GB)", 0.075, 0.075, 17},
    {"CS336, yyin-dev (A100 40 GB), mixed precision", 0.31, 0.31, 10},
    {"CS336, GAOYUEtianc (A100 PCIe)", 1.06, 0.28, 4},
    {"Tyler Romero, GPT-2 124M (two RTX 4090)", 0.055, 0.055, 1},
    {"nanoGPT's issues", 0.14, 0.175, 2},
    {"lakshmankolasani, nanochat (DGX Spark)", 0.145, 0.04, 1},
    {"asrr, Qwen3 8B by torchtune (MI350X)", 0.305, 0.565, 3},
    {"Ultralytics AutoBatch (T4)", 0.73, 0.73, 5},
    {"Ultralytics AutoBatch (GTX 1080 Ti)", 0.365, 0.365, 5},
    {"Ultralytics AutoBatch (RTX 4090)", 0.465, 0.465, 4},
    {"nanochat, reports of owners (8 H100)", 0.185, 0.03, 5},
};

/* What one asks for without a stack is transformers' own: whole logits, checkpoints on the GPU, states of fp32. */
static const bound rented_peaks[] = {
    {"whyNLP, TinyLlama by the Trainer, memory", 0.08, 0.12, 8},
    {"whyNLP, TinyLlama by the Trainer, DeepSpeed, memory", 0.19, 0.325, 7},
    {"LLaMA-Factory by length (A100 40 GB), FlashAttention-2, memory", 0.05, 0.05, 6},
    {"LLaMA-Factory by length (A100 40 GB), Unsloth, memory", 0.795, 0.07, 8},
    {"transformers docs, one GPU (V100), memory", 0.12, 0.085, 9},
    {"rasbt, ViT-L (A100), memory", 0.095, 0.095, 6},
    {"CS336, GAOYUEtianc (A100 PCIe), memory", 0.13, 0.13, 4},
    {"lakshmankolasani, nanochat (DGX Spark), memory", 0.375, 0.03, 1},
    {"asrr, Qwen3 8B by torchtune (MI350X), memory", 2.38, 0.41, 3},
    {"Ultralytics AutoBatch (T4), memory", 0.26, 0.26, 5},
    {"Ultralytics AutoBatch (GTX 1080 Ti), memory", 0.11, 0.11, 5},
    {"Ultralytics AutoBatch (RTX 4090), memory", 0.505, 0.505, 4},
    {"nanochat, reports of owners (8 H100), memory", 0.39, 0.045, 1},
};

/* Of fifteen that train models of language mostly (trainers.jsonl): FSDP, DeepSpeed with states on a host that is not
 * said, Megatron's own layers, recurrences by Unsloth. */
static const bound trained[] = {
    {"VectorLM, Llama 3 8B (A100)", 0.16, 0.06, 18},
    {"lightning-thunder (H100)", 0.09, 0.075, 5},
    {"swiss-ai, Megatron-LM (GH200)", 0.085, 0.075, 7},
    {"EasyContext, Llama 2 7B (A100)", 0.24, 0.235, 5},
    {"chenyaofo, LLaMA 7B by DeepSpeed (A800)", 0.405, 0.395, 9},
    {"Stas Bekman, T5 base by the Trainer", 0.035, 0.035, 8},
    {"Qwen 3.5 9B by Unsloth (B200)", 1.16, 0.235, 1},
    {"albond, Qwen 3.5 2B on a DGX Spark", 2.795, 0.2, 4},
    {"nvSubquadratic, ViT-5 small (H100)", 0.3, 0.3, 2},
    {"NeMo, BERT 4B (A100)", 0.155, 0.04, 5},
    {"Doraemonzzz, torchtitan on two A800", 0.08, 0.08, 1},
    {"vaibhavjindal, Megatron-LM's own layers (H100)", 0.585, 0.57, 1},
    {"Lambda's guide, Llama 3.1 405B (64 H100)", 0.125, 0.145, 1},
    {"modded-llama2 (8 H100)", 0.335, 0.335, 1},
    {"OPT-Benchmark, DeepSpeed (A100)", 0.675, 0.3, 5},
};

static const bound trained_peaks[] = {
    {"lightning-thunder (H100), memory", 0.09, 0.045, 12},
    {"chenyaofo, LLaMA 7B by DeepSpeed (A800), memory", 0.245, 0.12, 6},
    {"Doraemonzzz, torchtitan on two A800, memory", 0.335, 0.335, 1},
    {"vaibhavjindal, Megatron-LM's own layers (H100), memory", 0.535, 0.235, 1},
    {"Lambda's guide, Llama 3.1 405B (64 H100), memory", 0.12, 0.14, 2},
    {"OPT-Benchmark, DeepSpeed (A100), memory", 0.265, 0.175, 5},
};

/* Of ten publishers more (publishers.jsonl): encoders and images by batch and format, FSDP, tensor ranks, experts. */
static const bound further[] = {
    {"milabench, L40S", 0.14, 0.14, 22},
    {"milabench, H100", 0.155, 0.155, 20},
    {"milabench, H200", 0.16, 0.16, 9},
    {"milabench, MI325X", 0.355, 0.225, 14},
    {"milabench, A100", 0.125, 0.125, 8},
    {"milabench, adapters", 0.16, 0.155, 7},
    {"milabench by AMD, MI250", 0.195, 0.2, 2},
    {"KempnerForge, Llama 3 (H200)", 0.13, 0.075, 14},
    {"ATorch, Llama 2 7B (A100)", 0.055, 0.05, 8},
    {"ATorch, Llama 2 7B (A100), 3D", 0.095, 0.095, 6},
    {"FlashAttention's training page (A100)", 0.175, 0.31, 5},
    {"harrier-oss 270M on an RTX 5090", 0.27, 0.27, 6},
    {"torchao's float8 page (H100)", 0.285, 0.325, 3},
    {"torchtitan, Qwen 3 32B (H100)", 0.205, 0.3, 4},
    {"Halo, dense (B300)", 0.61, 0.1, 8},
    {"Halo, experts (8 B300)", 1.32, 1.11, 7},
    {"aigate, inference on an RTX 4090 (48 GB)", 0.205, 0.205, 4},
};

static const bound further_peaks[] = {
    {"milabench, L40S, memory", 0.13, 0.13, 8},
    {"milabench, H100, memory", 0.135, 0.135, 8},
    {"milabench, MI325X, memory", 0.36, 0.36, 6},
    {"KempnerForge, Llama 3 (H200), memory", 0.39, 0.145, 14},
    {"ATorch, Llama 2 7B (A100), memory", 0.45, 0.35, 8},
    {"ATorch, Llama 2 7B (A100), 3D, memory", 0.205, 0.205, 6},
    {"torchao's float8 page (H100), memory", 0.1, 0.125, 3},
    {"torchtitan, Qwen 3 32B (H100), memory", 0.14, 0.04, 4},
    {"Halo, dense (B300), memory", 0.235, 0.145, 3},
    {"Halo, experts (8 B300), memory", 0.455, 0.435, 7},
};

/* torchtitan's steps by layout (tensor_ranks.jsonl). */
static const bound by_layout[] = {{"Baisya, torchtitan (GB200)", 0.105, 0.085, 29}};
static const bound by_layout_peaks[] = {{"Baisya, torchtitan (GB200), memory", 0.375, 0.12, 29}};

/* And of another ten (publishers_later.jsonl). Pictures in fp32 ran faster than fp32 can on their GPU, a host twice as
 * fast as others of its kind, experts one by one: docs/accuracy says which. */
static const bound latest[] = {
    {"vasqu, GPT-NeoX and GPT-2 (RTX 3080 Ti laptop)", 0.145, 0.145, 13},
    {"transformers docs, pictures in fp32 (A100 40 GB)", 2.7, 2.7, 22},
    {"nanoT5 (A100)", 0.265, 0.085, 5},
    {"llm-foundry, MPT (8 and more H100)", 0.135, 0.05, 12},
    {"llm-foundry, MPT (8 A100)", 0.065, 0.065, 5},
    {"llm-foundry, MPT (8 and more A100 40 GB)", 0.1, 0.065, 4},
    {"TeaCache's comparisons (A800)", 0.36, 0.36, 9},
    {"DiffSynth-Studio (A100)", 0.035, 0.035, 1},
    {"ms-swift against Megatron-SWIFT (8 A800)", 0.48, 0.48, 5},
    {"Qwen 2.5's page of speeds (A100)", 0.18, 0.18, 10},
    {"MatrixSP, torchvision on an RTX 5090", 0.505, 0.505, 24},
};

static const bound latest_peaks[] = {
    {"vasqu, GPT-NeoX and GPT-2 (RTX 3080 Ti laptop), memory", 0.045, 0.045, 13},
    {"ms-swift against Megatron-SWIFT (8 A800), memory", 0.305, 0.03, 4},
    {"finetrainers, memory", 0.18, 0.12, 4},
    {"Qwen 2.5's page of speeds (A100), memory", 0.14, 0.14, 8},
};

static const bound backends[] = {
    {"transformers' experts backends, one by one", 0.345, 0.345, 6},
    {"transformers' experts backends, together", 0.265, 0.265, 6},
};

static const bound laptops[] = {
    {"llmfit, RTX 4060 laptop", 0.095, 0.095, 4},
    {"llmfit, RTX 3050 Ti laptop", 0.285, 0.285, 2},
};

enum { MOST = 32 };

static int bound_of(const bound *bounds, int count, const json_t *run)
{
    const char *source = json_string_value(json_object_get(run, "source"));
    int i = 0;
    while (i < count && strcmp(bounds[i].source, source) != 0) i++;
    golden_holds(i < count, "no bound for %s", source);
    return i;
}

/* Which figure of an answer a run is of. */
static const char *figure_of(const json_t *run)
{
    const char *kind = json_string_value(json_object_get(run, "memory_kind"));
    if (kind) return strcmp(kind, "allocated") == 0 ? "memory.peak_bytes" : "memory.reserved_bytes";
    return json_string_value(json_object_get(run, "quantity"));
}

static double truth_of(const json_t *run)
{
    static const char *const keys[] = {"truth_ms", "truth_s", "truth_bytes"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const json_t *value = json_object_get(run, keys[i]);
        if (value) return json_number_value(value);
    }
    return NAN;
}

static double off(const json_t *run)
{
    char *request = json_dumps(json_object_get(run, "request"), 0);
    assert_non_null(request);
    const double got = golden_value(figure_of(run), "%s", request);
    free(request);
    return fabs(got / truth_of(run) - 1);
}

static void are_met(const char *file, const bound *bounds, int count)
{
    double asked[MOST] = {0}, ran[MOST] = {0};
    int rows[MOST] = {0};
    json_t *runs = golden_rows(file), *run;
    size_t n;
    assert_true(count <= MOST);
    json_array_foreach (runs, n, run) {
        const int i = bound_of(bounds, count, run);
        asked[i] += off(run);
        if (json_object_get(run, "also"))
            json_object_update(json_object_get(run, "request"), json_object_get(run, "also"));
        ran[i] += off(run);
        rows[i]++;
    }
    json_decref(runs);
    for (int i = 0; i < count; i++) {
        golden_holds(rows[i] == bounds[i].rows, "%s: %d rows", bounds[i].source, rows[i]);
        golden_holds(asked[i] / rows[i] < bounds[i].asked, "%s, asked: %.1f %% off on average", bounds[i].source,
                     100 * asked[i] / rows[i]);
        golden_holds(ran[i] / rows[i] < bounds[i].ran, "%s, as it ran: %.1f %% off on average", bounds[i].source,
                     100 * ran[i] / rows[i]);
    }
}

static void times_of_users_are_met(void **state)
{
    (void)state;
    are_met("published/users.jsonl", times, sizeof times / sizeof *times);
}

static void peaks_of_users_are_met(void **state)
{
    (void)state;
    are_met("published/users_memory.jsonl", peaks, sizeof peaks / sizeof *peaks);
}

static void runs_on_rented_cards_are_met(void **state)
{
    (void)state;
    are_met("published/renters.jsonl", rented, sizeof rented / sizeof *rented);
    are_met("published/renters_memory.jsonl", rented_peaks, sizeof rented_peaks / sizeof *rented_peaks);
}

static void runs_of_trainers_are_met(void **state)
{
    (void)state;
    are_met("published/trainers.jsonl", trained, sizeof trained / sizeof *trained);
    are_met("published/trainers_memory.jsonl", trained_peaks, sizeof trained_peaks / sizeof *trained_peaks);
}

static void runs_of_publishers_are_met(void **state)
{
    (void)state;
    are_met("published/publishers.jsonl", further, sizeof further / sizeof *further);
    are_met("published/publishers_memory.jsonl", further_peaks, sizeof further_peaks / sizeof *further_peaks);
    are_met("published/publishers_later.jsonl", latest, sizeof latest / sizeof *latest);
    are_met("published/publishers_later_memory.jsonl", latest_peaks, sizeof latest_peaks / sizeof *latest_peaks);
    are_met("published/experts_backends.jsonl", backends, sizeof backends / sizeof *backends);
    are_met("published/laptops.jsonl", laptops, sizeof laptops / sizeof *laptops);
}

static void layouts_of_torchtitan_are_met(void **state)
{
    (void)state;
    are_met("published/tensor_ranks.jsonl", by_layout, sizeof by_layout / sizeof *by_layout);
    are_met("published/tensor_ranks_memory.jsonl", by_layout_peaks, sizeof by_layout_peaks / sizeof *by_layout_peaks);
}

static void pictures_of_users_are_met(void **state)
{
    (void)state;
    are_met("published/users_pictures.jsonl", pictures, sizeof pictures / sizeof *pictures);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_of_users_are_met),       cmocka_unit_test(peaks_of_users_are_met),
        cmocka_unit_test(runs_on_rented_cards_are_met), cmocka_unit_test(runs_of_trainers_are_met),
        cmocka_unit_test(runs_of_publishers_are_met),   cmocka_unit_test(layouts_of_torchtitan_are_met),
        cmocka_unit_test(pictures_of_users_are_met)};
    return cmocka_run_group_tests(tests, golden_open, golden_close);
}

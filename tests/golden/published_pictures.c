/* Images, denoisers and encoders of publishers that nothing was chosen on (data/published/vision.jsonl,
 * diffusion.jsonl, encoders.jsonl, pictures.jsonl), as their requests were written before any was forecast, with the
 * version of PyTorch since. Bounds are what the code reaches today, rounded up; docs/accuracy/pictures.md says why the
 * wide ones are wide. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "golden.h"

static const golden_bound vision[] = {
    {"transformers docs, torch.compile", 0.16, 0.6, 72},   {"transformers docs, CLIP (A10G)", 0.13, 0.19, 12},
    {"FasterTransformer, ViT in PyTorch", 0.27, 0.52, 16}, {"DLE PyTorch ResNet-50, training", 0.075, 0.18, 12},
    {"DLE PyTorch ResNet-50, inference", 0.24, 0.56, 20},  {"segment-anything-fast", 0.33, 0.6, 10},
};

static const golden_bound diffusion[] = {
    {"diffusers docs, PyTorch 2", 0.13, 0.36, 38},
    {"diffusers docs, March 2023", 0.14, 0.35, 60},
    {"stable-fast", 0.17, 0.49, 12},
    {"OneDiff, its baselines", 0.07, 0.2, 17},
    {"diffusers-torchao", 0.18, 0.26, 11},
    {"ParaAttention", 0.05, 0.06, 3},
    {"xDiT", 0.19, 0.2, 2},
    {"MosaicML diffusion", 0.1, 0.3, 10},
    {"fast-DiT", 0.18, 0.25, 3},
    {"Lambda, diffusers", 0.23, 0.44, 39},
};

static const golden_bound encoders[] = {
    {"FasterTransformer, BERT in TorchScript", 0.19, 0.67, 72},
    {"transformers docs, training", 0.22, 0.55, 76},
    {"transformers docs, BERT (A100)", 0.41, 0.52, 12},
    {"DLE PyTorch BERT, pre-training", 0.51, 1.15, 22},
    {"DLE PyTorch BERT, SQuAD", 0.12, 0.24, 10},
};

static const golden_bound scripted[] = {{"DLE PyTorch BERT, TorchScript in Triton", 0.26, 0.58, 36}};

/* One T4 of two that differ by 1.7 at the same work, in fp32 and fp16, and the V100 of the same page beside both. */
static const golden_bound held[] = {
    {"TensorFlow 2 BERT, SQuAD inference (T4)", 0.09, 0.48, 32},
    {"TensorFlow BERT, SQuAD inference (T4)", 0.45, 0.6, 32},
    {"TensorFlow 2 BERT, SQuAD inference (V100)", 0.16, 0.48, 32},
    {"TensorFlow BERT, SQuAD inference (V100)", 0.19, 0.5, 32},
    {"gpu-benchlab, ResNet-50 (L4)", 0.12, 0.21, 2},
    {"bytes-per-token, a prompt of 8k (L4)", 0.115, 0.16, 4},
    {"kev-vllm, saturated prompts (L4)", 0.035, 0.035, 1},
    {"kev-vllm, saturated prompts (H100)", 0.06, 0.06, 1},
    {"kev-vllm, saturated prompts (T4)", 0.52, 0.52, 1},
};

static void held_boards_are_met(void **state)
{
    (void)state;
    golden_runs("published/held_boards.jsonl", held, sizeof held / sizeof *held, NULL);
}

static void traces_are_met(void **state)
{
    (void)state;
    golden_runs("published/torchscript.jsonl", scripted, sizeof scripted / sizeof *scripted, NULL);
}

/* BERT of Lambda's logs, by container, forty rows of it written so; docs/accuracy/decisions.md has what is known. */
static const golden_bound steady[] = {
    {"Lambda, steady steps, container 22.10", 0.065, 0.23, 84},
    {"Lambda, steady steps, container 24.03", 0.085, 0.15, 24},
    {"Lambda, steady steps, container 24.10", 0.11, 0.2, 8},
    {"Lambda, steady steps, container 25.06", 0.07, 0.12, 4},
};

static void pictures_are_met(void **state)
{
    (void)state;
    golden_runs("published/vision.jsonl", vision, sizeof vision / sizeof *vision, NULL);
}

/* TensorRT's engines (data/published/tensorrt.jsonl). */
static const golden_bound engines[] = {
    {"Ultralytics, TensorRT 10 (T4)", 0.1, 0.34, 20},
    {"Ultralytics, TensorRT 8 (A100)", 0.27, 0.37, 9},
    {"Ultralytics, TensorRT (AGX Orin)", 0.15, 0.37, 10},
    {"Ultralytics, TensorRT (AGX Thor)", 0.19, 0.4, 4},
    {"Ultralytics, TensorRT (DGX Spark)", 0.065, 0.16, 10},
    {"Paddle Inference, TensorRT 8.0.3 (T4)", 0.19, 0.43, 12},
    {"MMDeploy, TensorRT 7.2 (T4)", 0.42, 0.7, 6},
    {"1duo, TensorRT 4 (V100)", 0.27, 0.69, 18},
    {"libingwei, TensorRT (T4)", 0.25, 0.6, 4},
    {"RT-DETR's authors, TensorRT (T4)", 0.03, 0.03, 1},
    {"masahi, TensorRT", 0.25, 0.25, 1},
    {"Ultralytics, TensorRT (Orin NX)", 0.14, 0.35, 10},
    {"Ultralytics, TensorRT (Orin Nano Super)", 0.18, 0.4, 10},
    {"TensorRT's BERT demo (A100)", 0.075, 0.26, 40},
    {"TensorRT's BERT demo (A30)", 0.06, 0.25, 40},
    {"TensorRT's BERT demo (T4)", 0.085, 0.2, 40},
    {"TensorRT's BERT demo, int8 (A100)", 0.27, 0.5, 40},
    {"TensorRT's BERT demo, int8 (A30)", 0.23, 0.42, 40},
    {"TensorRT's BERT demo, int8 (T4)", 0.25, 0.5, 40},
    {"Stability AI, SDXL by TensorRT (A100, A10)", 0.13, 0.3, 3},
    {"hokwangchoi, TensorRT (Orin Nano Super)", 0.18, 0.22, 2},
};

static void engines_are_met(void **state)
{
    (void)state;
    golden_runs("published/tensorrt.jsonl", engines, sizeof engines / sizeof *engines, NULL);
}

static void denoisers_are_met(void **state)
{
    (void)state;
    golden_runs("published/diffusion.jsonl", diffusion, sizeof diffusion / sizeof *diffusion, NULL);
}

static void encoders_are_met(void **state)
{
    (void)state;
    golden_runs("published/encoders.jsonl", encoders, sizeof encoders / sizeof *encoders, NULL);
}

static void steady_steps_are_met(void **state)
{
    (void)state;
    golden_runs("published/lambda_steady.jsonl", steady, sizeof steady / sizeof *steady, NULL);
}

/* Mean error of the runs of one source on one GPU (NULL: all) and of one length (0: all), with one key of the request
 * as what ran. */
static double off_as_it_ran(const char *file, const char *source, const char *gpu, int64_t seq, const char *key,
                            const char *word)
{
    json_t *rows = golden_rows(file), *run;
    double sum = 0;
    size_t n;
    int count = 0;
    json_array_foreach (rows, n, run) {
        json_t *asked = json_object_get(run, "request");
        if (strcmp(json_string_value(json_object_get(run, "source")), source) != 0) continue;
        if (gpu && strcmp(json_string_value(json_object_get(asked, "gpu")), gpu) != 0) continue;
        if (seq && json_integer_value(json_object_get(asked, "seq")) != seq) continue;
        json_object_set_new(asked, key, json_string(word));
        char *request = json_dumps(asked, 0);
        assert_non_null(request);
        sum += fabs(golden_value("step_ms", "%s", request) / json_number_value(json_object_get(run, "truth_ms")) - 1);
        count++;
        free(request);
    }
    json_decref(rows);
    assert_true(count > 0);
    return sum / count;
}

/* What the sources' software took where a request without it means today's: FlashAttention-2 on Hopper in 2024, by name
 * or as the versions of then pick it; nvFuser around BERT. */
static void asked_as_they_ran_they_are_nearer(void **state)
{
    (void)state;
    assert_true(off_as_it_ran("published/diffusion.jsonl", "diffusers-torchao", NULL, 0, "attention", "flash2") < 0.06);
    assert_true(off_as_it_ran("published/diffusion.jsonl", "xDiT", NULL, 0, "attention", "flash2") < 0.1);
    assert_true(off_as_it_ran("published/diffusion.jsonl", "xDiT", NULL, 0, "pytorch", "2.4.1") < 0.1);
    assert_true(off_as_it_ran("published/encoders.jsonl", "DLE PyTorch BERT, pre-training", NULL, 128, "pytorch",
                              "1.11") < 0.08);
}

static const golden_bound whole[] = {
    {"diffusers docs, March 2023", 0.13, 0.33, 60},
    {"diffusers-torchao", 0.14, 0.22, 11},
    {"ParaAttention", 0.03, 0.04, 3},
    {"xDiT", 0.13, 0.16, 2},
    {"Lambda, diffusers", 0.21, 0.42, 39},
    {"fal, diffusers", 0.145, 0.34, 8},
    {"diffusers docs, fast diffusion", 0.08, 0.13, 4},
    {"Pruna", 0.13, 0.13, 1},
    {"diffusers docs, CogVideoX", 0.18, 0.2, 2}, /* its decoder is not modelled */
    {"ParaAttention, HunyuanVideo", 0.52, 0.52, 1},
};

static const golden_bound *bound_named(const char *source)
{
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
        if (!strcmp(whole[i].name, source)) return &whole[i];
    return NULL;
}

/* From the prompt to its image (data/published/pictures.jsonl). */
static void whole_pictures_are_met(void **state)
{
    enum { SOURCES = sizeof whole / sizeof *whole };
    double sum[SOURCES] = {0};
    int runs[SOURCES] = {0};
    json_t *rows = golden_rows("published/pictures.jsonl"), *run;
    size_t n;
    (void)state;
    json_array_foreach (rows, n, run) {
        const golden_bound *bound = bound_named(json_string_value(json_object_get(run, "source")));
        assert_non_null(bound);
        char *request = json_dumps(json_object_get(run, "request"), 0);
        assert_non_null(request);
        json_t *answer = golden_ask("%s", request);
        const json_t *made = json_object_get(answer, "generation");
        const double got = json_number_value(json_object_get(made, "seconds"));
        const double truth = json_number_value(json_object_get(run, "truth_s"));
        golden_near(json_string_value(json_object_get(run, "note")), got, truth, bound->worst);
        sum[bound - whole] += fabs(got / truth - 1);
        runs[bound - whole]++;
        json_decref(answer);
        free(request);
    }
    json_decref(rows);
    for (int i = 0; i < SOURCES; i++) {
        golden_holds(runs[i] == whole[i].runs, "%s: %d runs", whole[i].name, runs[i]);
        golden_holds(sum[i] / runs[i] < whole[i].mean, "%s: %.1f %% off on average", whole[i].name,
                     100 * sum[i] / runs[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pictures_are_met),       cmocka_unit_test(engines_are_met),
        cmocka_unit_test(denoisers_are_met),      cmocka_unit_test(encoders_are_met),
        cmocka_unit_test(traces_are_met),         cmocka_unit_test(held_boards_are_met),
        cmocka_unit_test(steady_steps_are_met),   cmocka_unit_test(asked_as_they_ran_they_are_nearer),
        cmocka_unit_test(whole_pictures_are_met),
    };
    return cmocka_run_group_tests(tests, golden_open, golden_close);
}

/* Steps that others published of JAX and TensorFlow under XLA (data/published/xla.jsonl), each with its stack. Bounds
 * are what the code reaches today, rounded up; those of rows whose source leaves something unsaid say little. */
#include <string.h>

#include "golden.h"

enum { TENSORFLOW, TENSORFLOW_2, PAX, PAX_CLOUD, MAXTEXT, UNSAID, KINDS };
static const golden_bound kinds[KINDS] = {{"TensorFlow BERT", 0.17, 0.41, 87}, {"TensorFlow 2 BERT", 0.11, 0.44, 52},
                                          {"Pax GPT", 0.24, 0.58, 21},         {"Pax GPT, cloud", 0.18, 0.25, 13},
                                          {"MaxText", 0.07, 0.07, 1},          {"what is unsaid", 0.30, 0.45, 7}};

static int kind_of(const json_t *run)
{
    const char *source = json_string_value(json_object_get(run, "source"));
    if (json_is_true(json_object_get(run, "weak"))) return UNSAID;
    if (strstr(source, "TensorFlow 2")) return TENSORFLOW_2;
    if (strstr(source, "TensorFlow")) return TENSORFLOW;
    if (strstr(source, "MaxText")) return MAXTEXT;
    return strstr(source, "Cloud") ? PAX_CLOUD : PAX;
}

static void steps_are_met(void **state)
{
    (void)state;
    golden_runs("published/xla.jsonl", kinds, KINDS, kind_of);
}

/* TensorFlow lays images of more than 16 bits out as NCHW, whatever the model says: matrix units then wait for turned
 * ones, where a model that stays NHWC has none to turn. In 16 bits nothing differs. */
static void pictures_lie_as_tensorflow_has_them(void **state)
{
    (void)state;
    static const char request[] =
        "{\"task\":\"train\",\"model\":\"resnet-50\",\"gpu\":\"a100_sxm_40gb\",\"batch\":256,"
        "\"dtype\":\"%s\",\"optimizer\":\"sgd_momentum\",\"layout\":\"nhwc\",\"stack\":\"%s\"}";
    double here = golden_value("step_ms", request, "tf32", "tensorflow"),
           there = golden_value("step_ms", request, "tf32", "xla");
    golden_holds(here > 1.1 * there, "tf32: %.1f ms turned, %.1f as it lies", here, there);
    here = golden_value("step_ms", request, "amp_fp16", "tensorflow");
    there = golden_value("step_ms", request, "amp_fp16", "xla");
    golden_holds(here > 0.97 * there && here < 1.01 * there, "amp: %.1f and %.1f ms", here, there);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(steps_are_met),
                                       cmocka_unit_test(pictures_lie_as_tensorflow_has_them)};
    return cmocka_run_group_tests(tests, golden_open, golden_close);
}

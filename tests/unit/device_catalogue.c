/* The catalogue: every entry is whole, sourced and free of contradictions, and is found by the names people type. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "device/gpu.h"
#include "failing_alloc.h"

static void assert_near(double expected, double got, double tolerance)
{
    if (!(fabs(expected - got) <= tolerance)) fail_msg("expected %.10g, got %.10g", expected, got);
}

static const char *const promised[] = {
    "p4",
    "p100_pcie_16gb",
    "v100_pcie_16gb",
    "v100_pcie_32gb",
    "v100_sxm_16gb",
    "v100_sxm_32gb",
    "t4",
    "rtx_2080_ti",
    "a10",
    "a30",
    "a40",
    "a100_pcie_40gb",
    "a100_pcie_80gb",
    "a100_sxm_40gb",
    "a100_sxm_80gb",
    "rtx_3090",
    "rtx_a6000",
    "l4",
    "l40",
    "l40s",
    "rtx_4090",
    "rtx_6000_ada",
    "h100_pcie",
    "h100_sxm",
    "h100_nvl",
    "h800",
    "h20",
    "gh200",
    "h200_sxm",
    "b200_sxm",
    "b300_sxm",
    "gb200",
    "gb300",
    "rtx_5090",
    "rtx_pro_6000",
    "mi100",
    "mi210",
    "mi250",
    "mi250x",
    "mi300x",
    "mi325x",
    "mi350x",
    "mi355x",
    "b60",
};

static json_t *entry(size_t index)
{
    size_t length = 0;
    json_t *json = NULL;
    const char *text = ft__catalogue_json(index, &length);
    assert_non_null(text);
    assert_int_equal(FT_OK, ft__json_parse(text, length, ft__catalogue_name(index), &json, NULL));
    return json;
}

static ft_device find(const char *name)
{
    ft_device device;
    ft_error err;
    if (ft__catalogue_find(name, &device, &err) != FT_OK) fail_msg("%s: %s", name, err.message);
    return device;
}

static void every_promised_gpu_is_there(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof promised / sizeof *promised; i++)
        assert_string_equal(promised[i], find(promised[i]).name);
    assert_true(ft__catalogue_count() >= sizeof promised / sizeof *promised);
}

static void every_entry_is_complete_and_contradicts_nothing(void **state)
{
    (void)state;
    for (size_t i = 0; i < ft__catalogue_count(); i++) {
        json_t *json = entry(i);
        ft_text warnings = {0};
        ft_device read, found = find(ft__catalogue_name(i));
        ft_error err;
        if (ft__device_read(json, ft__catalogue_name(i), &read, &warnings, &err) != FT_OK)
            fail_msg("%s: %s", ft__catalogue_name(i), err.message);
        if (warnings.length) fail_msg("%s: %s", ft__catalogue_name(i), warnings.at);
        assert_string_equal(ft__catalogue_name(i), read.name);
        assert_string_equal(ft__catalogue_title(i), read.title);
        assert_memory_equal(&read, &found, sizeof read);
        ft__text_free(&warnings);
        json_decref(json);
    }
}

/* "sources" maps groups of figures ("sms, fp32_lanes_per_sm", "peak_tflops.fp16") to where they were found. */
static bool is_sourced(json_t *sources, const char *key)
{
    const char *group;
    json_t *text;
    json_object_foreach (sources, group, text) {
        assert_true(json_is_string(text) && json_string_length(text) > 3);
        for (const char *at = group; *at;) {
            size_t length = strcspn(at, ",");
            if (length == strlen(key) && !strncmp(at, key, length)) return true;
            at += length + strspn(at + length, ", ");
        }
    }
    return false;
}

static void every_figure_has_a_source(void **state)
{
    (void)state;
    for (size_t i = 0; i < ft__catalogue_count(); i++) {
        json_t *json = entry(i), *sources = json_object_get(json, "sources"), *value, *rate;
        const char *key, *format;
        assert_true(json_is_object(sources));
        assert_true(json_is_array(json_object_get(json, "notes")));
        json_object_foreach (json, key, value) {
            if (!strcmp(key, "sources") || !strcmp(key, "notes") || json_is_null(value) || is_sourced(sources, key))
                continue;
            if (!strcmp(key, "aliases") || !strcmp(key, "usual") || !strcmp(key, "stands_for"))
                continue; /* words of ours */
            if (strcmp(key, "peak_tflops") != 0) fail_msg("%s: no source for %s", ft__catalogue_name(i), key);
            json_object_foreach (value, format, rate) {
                char path[64];
                snprintf(path, sizeof path, "peak_tflops.%s", format);
                if (!json_is_null(rate) && !is_sourced(sources, path))
                    fail_msg("%s: no source for %s", ft__catalogue_name(i), path);
            }
        }
        json_decref(json);
    }
}

static void figures_that_the_field_knows(void **state)
{
    (void)state;
    ft_device a100 = find("a100_sxm_80gb"), h100 = find("h100_sxm"), mi100 = find("mi100"), p4 = find("p4");
    assert_near(19.5, a100.vector_tflops[FT_FP32], 0);
    assert_near(19.5, a100.peak_tflops[FT_FP32], 0);
    assert_near(312, a100.peak_tflops[FT_BF16], 0);
    assert_near(156, a100.peak_tflops[FT_TF32], 0);
    assert_near(9.7, a100.vector_tflops[FT_FP64], 0);
    assert_near(0, a100.peak_tflops[FT_FP8], 0);
    assert_near(256, a100.regs_kib_per_sm, 0);
    assert_true(a100.memory_is_hbm);
    assert_false(find("l40s").memory_is_hbm);
    assert_near(1980, h100.boost_mhz, 0);
    assert_near(1830, h100.matrix_mhz, 0);
    assert_near(46.1, mi100.peak_tflops[FT_FP32], 0);
    assert_near(23.1, mi100.vector_tflops[FT_FP32], 0);
    assert_int_equal(20, p4.sms);
    assert_int_equal(58, find("l4").sms);
    assert_near(256, find("mi300x").l2_mib, 0); /* Infinity Cache */
    assert_int_equal(110, find("mi250x").sms);  /* one die of two */
    assert_true(p4.matrix_mhz > 0);             /* no matrix units: the boost clock */
    assert_string_equal("ampere_rtx", find("a10").generation);
    assert_string_equal("blackwell_rtx", find("rtx_5090").generation);
}

static void names_as_people_type_them(void **state)
{
    (void)state;
    static const struct {
        const char *typed, *name;
    } cases[] = {
        {"H100_SXM", "h100_sxm"},
        {"h100-sxm", "h100_sxm"},
        {"H100 SXM5", "h100_sxm"},
        {"NVIDIA H100 80GB HBM3", "h100_sxm"},
        {"NVIDIA H100 PCIe", "h100_pcie"},
        {"h200", "h200_sxm"},
        {"NVIDIA H200", "h200_sxm"},
        {"b200", "b200_sxm"},
        {"a100-sxm-80gb", "a100_sxm_80gb"},
        {"NVIDIA A100-SXM4-80GB", "a100_sxm_80gb"},
        {"NVIDIA A100 80GB PCIe", "a100_pcie_80gb"},
        {"NVIDIA A100-PCIE-40GB", "a100_pcie_40gb"},
        {"Tesla V100-SXM2-16GB", "v100_sxm_16gb"},
        {"Tesla T4", "t4"},
        {"p100", "p100_pcie_16gb"},
        {"NVIDIA GeForce RTX 4090", "rtx_4090"},
        {"rtx4090", "rtx_4090"},
        {"4090", "rtx_4090"},
        {"NVIDIA L40", "l40"},
        {"AMD Instinct MI300X", "mi300x"},
        {"NVIDIA RTX PRO 6000 Blackwell Server Edition", "rtx_pro_6000"},
        {"NVIDIA RTX 6000 Ada Generation", "rtx_6000_ada"},
        {"Quadro RTX 6000", "quadro_rtx_6000"},
        {"rtx 8000", "quadro_rtx_8000"},
        {"NVIDIA A10G", "a10g"},
        {"A800", "a800_sxm_80gb"},
        {"NVIDIA H200 NVL", "h200_nvl"},
        {"GeForce RTX 4070 Ti SUPER", "rtx_4070_ti_super"},
        {"rtx 5060", "rtx_5060"},
        {"gtx 1080", "gtx_1080"},
        {"RTX 4060", "rtx_4060"},
        {"NVIDIA GeForce RTX 4060 Laptop GPU", "rtx_4060_laptop"},
        {"4090 laptop", "rtx_4090_laptop"},
        {"3080 Ti mobile", "rtx_3080_ti_laptop"},
        {"mi350x", "mi350x"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(cases[i].name, find(cases[i].typed).name);
}

static void expect_unknown(const char *name, const char *message)
{
    ft_device device;
    ft_error err = {0};
    assert_int_equal(FT_E_NAME, ft__catalogue_find(name, &device, &err));
    assert_string_equal(message, err.message);
}

static void an_ambiguous_name_lists_what_it_may_be(void **state)
{
    (void)state;
    expect_unknown("h100",
                   "\"h100\" may be any of h100_nvl, h100_pcie, h100_sxm: say which (clouds mostly have h100_sxm)");
    expect_unknown(
        "a100_80gb",
        "\"a100_80gb\" may be any of a100_pcie_80gb, a100_sxm_80gb: say which (clouds mostly have a100_sxm_80gb)");
    expect_unknown(
        "V100-SXM2",
        "\"V100-SXM2\" may be any of v100_sxm_16gb, v100_sxm_32gb: say which (clouds mostly have v100_sxm_16gb)");
    expect_unknown("RTX 6000", "\"RTX 6000\" may be any of rtx_6000_ada, rtx_pro_6000: say which");
    expect_unknown("h100_sxmm", "unknown GPU \"h100_sxmm\"; did you mean \"h100_sxm\"?"); /* a slip, no revision */
}

static void an_unknown_name_is_answered_with_the_nearest(void **state)
{
    (void)state;
    expect_unknown("h100_sxn", "unknown GPU \"h100_sxn\"; did you mean \"h100_sxm\"?");
    expect_unknown("H100 80GB",
                   "unknown GPU \"H100 80GB\"; of that kind the catalogue has h100_nvl, h100_pcie, h100_sxm");
    expect_unknown("5090 laptop", "unknown GPU \"5090 laptop\"; of that kind the catalogue has rtx_5090");
    expect_unknown("rtx_4091", "unknown GPU \"rtx_4091\"; did you mean \"rtx_4090\"?");
    ft_error err = {0};
    ft_device device;
    assert_int_equal(FT_E_NAME, ft__catalogue_find("toaster", &device, &err));
    assert_int_equal(FT_E_NAME, ft__catalogue_find("", &device, &err));
    assert_int_equal(FT_E_NAME, ft__catalogue_find("___", &device, &err));
    assert_int_equal(FT_E_NAME, ft__catalogue_find("h100_sxm_94gb", &device, &err)); /* not the 80 GB one */
    char endless[5000];
    memset(endless, 'h', sizeof endless - 1);
    endless[sizeof endless - 1] = '\0';
    assert_int_equal(FT_E_NAME, ft__catalogue_find(endless, &device, &err));
}

static ft_status find_once(void *name)
{
    ft_device device;
    return ft__catalogue_find(name, &device, NULL);
}

static void running_out_of_memory_is_said(void **state)
{
    (void)state;
    assert_true(failing_alloc_sweep(find_once, (void *)(uintptr_t) "h100_sxm") > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_promised_gpu_is_there),
        cmocka_unit_test(every_entry_is_complete_and_contradicts_nothing),
        cmocka_unit_test(every_figure_has_a_source),
        cmocka_unit_test(figures_that_the_field_knows),
        cmocka_unit_test(names_as_people_type_them),
        cmocka_unit_test(an_ambiguous_name_lists_what_it_may_be),
        cmocka_unit_test(an_unknown_name_is_answered_with_the_nearest),
        cmocka_unit_test(running_out_of_memory_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

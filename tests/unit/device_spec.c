/* Spec objects and files: what is taken, what follows from what, and what exactly is said of the rest. */
#include <stdio.h>
#include <stdlib.h>

#include "spec_help.h"

/* -- base -------------------------------------------------------------------------------------- */

static void a_base_lends_what_is_not_given(void **state)
{
    (void)state;
    const char *said;
    ft_device base = accepted("{\"base\": \"h100_sxm\", \"name\": \"x\"}", NULL);
    ft_device d = accepted("{\"base\": \"h100_sxm\", \"name\": \"h100_sxm_96gb_500w\", \"memory_gib\": 96,"
                           " \"memory_gbps\": 2400, \"tdp_w\": 500}",
                           &said);
    assert_string_equal("h100_sxm_96gb_500w", d.name);
    assert_string_equal("h100_sxm_96gb_500w", d.title);
    assert_string_equal("hopper", d.generation);
    assert_near(96, d.memory_gib, 0);
    assert_near(2400, d.memory_gbps, 0);
    assert_near(500, d.tdp_w, 0);
    assert_near(1980, d.boost_mhz, 0);
    assert_near(1830, d.matrix_mhz, 0);
    assert_memory_equal(base.peak_tflops, d.peak_tflops, sizeof d.peak_tflops);
    assert_memory_equal(base.vector_tflops, d.vector_tflops, sizeof d.vector_tflops);
    assert_string_equal("price_usd_per_hour not given: 3.92, the price of h100_sxm\n", said);
}

static void peaks_and_links_are_extended_key_by_key(void **state)
{
    (void)state;
    ft_device d = accepted("{\"base\": \"h100_sxm\", \"name\": \"x\", \"peak_tflops\": {\"fp64\": 1, \"int8\": null},"
                           " \"link\": {\"gbps_per_direction\": 200}}",
                           NULL);
    assert_near(1, d.peak_tflops[FT_FP64], 0);
    assert_near(0, d.peak_tflops[FT_INT8], 0);
    assert_near(989.4, d.peak_tflops[FT_BF16], 0);
    assert_string_equal("nvlink4", d.link_kind);
    assert_near(200, d.link_gbps_per_direction, 0);
    assert_int_equal(8, d.link_gpus);
}

static void another_link_brings_its_own_rate(void **state)
{
    (void)state;
    const char *said;
    ft_device d = accepted("{\"base\": \"h100_sxm\", \"name\": \"x\", \"link\": {\"kind\": \"pcie5\"}}", &said);
    assert_near(63, d.link_gbps_per_direction, 0);
    assert_int_equal(1, d.link_gpus);
    assert_says(said, "link.gbps_per_direction not given: 63 GB/s, as a GPU has over this kind of link\n");
}

static void fewer_sms_lower_the_peaks_that_are_not_given(void **state)
{
    (void)state;
    const char *said;
    ft_device d = accepted("{\"base\": \"h100_sxm\", \"name\": \"x\", \"sms\": 66, \"peak_tflops\": {\"fp8\": 900}}",
                           &said);
    assert_near(989.4 / 2, d.peak_tflops[FT_BF16], 1e-9);
    assert_near(66.9 / 2, d.peak_tflops[FT_FP32], 1e-9);
    assert_near(66.9 / 2, d.vector_tflops[FT_FP32], 1e-9);
    assert_near(900, d.peak_tflops[FT_FP8], 0);
    assert_says(said,
                "peaks of the matrix units that are not given follow units x clock: 0.5 times those of h100_sxm\n");
}

/* nvidia-smi --lock-gpu-clocks 1200: everything runs at 1,200 MHz, matrix units included. */
static void a_clock_below_the_base_is_a_cap(void **state)
{
    (void)state;
    ft_device d = accepted("{\"base\": \"h100_sxm\", \"name\": \"x\", \"clock_mhz\": 1200}", NULL);
    assert_near(1200, d.matrix_mhz, 0);
    assert_near(989.4 * 1200 / 1830, d.peak_tflops[FT_BF16], 1e-9);
    assert_near(66.9 * 1200 / 1980, d.peak_tflops[FT_FP32], 1e-9);
    assert_near(0, d.base_mhz, 0); /* 1590 no longer makes sense */
    d = accepted("{\"base\": \"h100_sxm\", \"name\": \"x\", \"clock_mhz\": 1900}", NULL);
    assert_near(1830, d.matrix_mhz, 0);
    assert_near(989.4, d.peak_tflops[FT_BF16], 0);
}

/* What an SM's units do without a cap: stated, implied by the rate with fp16 accumulation, or the base's. */
static void a_cap_shows_in_the_rates(void **state)
{
    (void)state;
    ft_device d = accepted("{\"base\": \"rtx_4090\", \"name\": \"x\", \"sms\": 76}", NULL);
    assert_near(512, d.uncapped_fma_per_clk_sm, 1);
    assert_near(2700, d.running_mhz, 0);
    d = accepted("{\"base\": \"rtx_4090\", \"name\": \"x\", \"clock_mhz\": 2000}", NULL);
    assert_near(0, d.running_mhz, 0); /* a cap on the clock holds for everything */
    d = accepted("{\"base\": \"rtx_a6000\", \"name\": \"x\", \"matrix_fma_per_clk_per_sm\": 256}", NULL);
    assert_near(512, d.uncapped_fma_per_clk_sm, 0);
    d = accepted("{\"base\": \"h100_sxm\", \"name\": \"x\"}", NULL);
    assert_near(2048, d.uncapped_fma_per_clk_sm, 0);
}

static void another_power_forgets_the_sustained_clock(void **state)
{
    (void)state;
    const char *said;
    assert_near(1920, accepted("{\"base\": \"b300_sxm\", \"name\": \"x\"}", NULL).sustained_mhz, 0);
    ft_device d = accepted("{\"base\": \"b300_sxm\", \"name\": \"x\", \"tdp_w\": 800}", &said);
    assert_near(0, d.sustained_mhz, 0);
    assert_says(said, "sustained_clock_mhz not given: unknown; b300_sxm sustains 1920 MHz at its own power\n");
}

static void a_base_may_be_a_file_beside_this_one(void **state)
{
    (void)state;
    ft_device d;
    ft_error err;
    scratch_text("middle.json", "{\"base\": \"a100_sxm_80gb\", \"name\": \"middle\", \"memory_gib\": 48}");
    const char *path = scratch_text("top.json", "{\"base\": \"./middle.json\", \"name\": \"top\", \"tdp_w\": 350}");
    if (ft__device_open(path, &d, NULL, &err) != FT_OK) fail_msg("%s: %s", err.where, err.message);
    assert_string_equal("top", d.name);
    assert_near(48, d.memory_gib, 0);
    assert_near(350, d.tdp_w, 0);
    assert_near(312, d.peak_tflops[FT_FP16], 0);
}

static void a_file_that_extends_itself_is_refused(void **state)
{
    (void)state;
    ft_device d;
    ft_error err = {0};
    const char *path = scratch_text("self.json", "{\"base\": \"./self.json\", \"name\": \"self\"}");
    assert_int_equal(FT_E_SPEC, ft__device_open(path, &d, NULL, &err));
    assert_string_equal("\"base\" leads through more than 8 files: does one extend itself?", err.message);
    assert_int_equal(FT_E_FILE, ft__device_open(scratch_path("absent.json"), &d, NULL, &err));
}

/* -- without a base ---------------------------------------------------------------------------- */

static void what_is_missing_is_named_with_its_value(void **state)
{
    (void)state;
    const char *said;
    ft_device d =
        accepted("{\"name\": \"h100_half\", \"architecture\": \"Hopper GH100\", \"sms\": 66, \"memory_gib\": 40,"
                 " \"memory_gbps\": 1675, \"peak_tflops\": {\"bf16\": 494.7, \"fp32\": 33.45}}",
                 &said);
    assert_string_equal("hopper", d.generation);
    assert_int_equal(FT_VENDOR_NVIDIA, d.vendor);
    assert_int_equal(128, d.lanes_per_sm);
    assert_near(2048, d.matrix_fma_per_clk_sm, 0);
    assert_near(1980, d.boost_mhz, 1);
    assert_near(1830, d.matrix_mhz, 1);
    assert_near(350, d.tdp_w, 1e-9);
    assert_near(25, d.l2_mib, 1e-9);
    assert_near(989.45, d.peak_tflops[FT_FP8], 0.5);
    assert_near(0, d.peak_tflops[FT_FP4], 0);
    assert_string_equal("pcie", d.link_kind);
    static const char *const lines[] = {
        "generation not given: hopper, by architecture\n",
        "fp32_lanes_per_sm not given: 128, as h100_sxm\n",
        "matrix_fma_per_clk_per_sm not given: 2048, as h100_sxm\n",
        "clock_mhz not given: 1979.",
        "tdp_w not given: 350 W, in proportion to the SMs of h100_sxm\n",
        "l2_mib not given: 25 MiB, in proportion to the SMs of h100_sxm\n",
        "smem_kib_per_sm not given: 228 KiB, as h100_sxm\n",
        "regs_per_sm not given: 65536 32-bit registers, as h100_sxm\n",
        "peak_tflops.fp8 not given: 989.4, by the rate per SM of h100_sxm (null if the GPU lacks it)\n",
        "memory_type not given: hbm\n",
        "pcie_gbps not given: 63 GB/s",
        "link not given: PCIe alone joins the GPUs\n",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) assert_says(said, lines[i]);
}

static void a_gpu_like_no_other_is_guessed_at(void **state)
{
    (void)state;
    const char *said;
    ft_device d =
        accepted("{\"name\": \"rubin\", \"sms\": 224, \"clock_mhz\": 2000, \"memory_gib\": 288, \"memory_gbps\": 20000,"
                 " \"peak_tflops\": {\"bf16\": 4000, \"fp32\": 130}}",
                 &said);
    assert_string_equal("unknown", d.generation);
    assert_int_equal(128, d.lanes_per_sm);
    assert_near(4096, d.matrix_fma_per_clk_sm, 0);
    assert_near(4000, d.peak_tflops[FT_FP16], 0);
    assert_near(0, d.peak_tflops[FT_FP8], 0);
    assert_true(d.memory_is_hbm);
    assert_says(said, "matrix_fma_per_clk_per_sm not given: 4096, the power of two that the peak implies\n");
    assert_says(said, "peak_tflops.fp16 not given: 4000, as bf16\n");
    assert_says(said, "peak_tflops.fp8 not given: the GPU lacks it\n");
}

static void every_generation_can_lend(void **state)
{
    (void)state;
    static const char *const capabilities[] = {"6.0",    "sm_61",  "7.0",    "7.5",    "8.0",  "8.6",
                                               "8.9",    "9.0",    "10.0",   "sm_103", "12.0", "gfx908",
                                               "gfx90a", "gfx942", "gfx950", "bmg_g21"};
    for (size_t i = 0; i < sizeof capabilities / sizeof *capabilities; i++) {
        char text[256];
        ft_device d;
        ft_error err = {0};
        snprintf(
            text, sizeof text,
            "{\"name\": \"x\", \"compute_capability\": \"%s\", \"sms\": 60, \"memory_gib\": 16, \"memory_gbps\": 900,"
            " \"clock_mhz\": 1500, \"peak_tflops\": {\"fp32\": 20}}",
            capabilities[i]);
        if (read_spec(text, &d, NULL, &err) != FT_OK) fail_msg("%s: %s", capabilities[i], err.message);
        assert_true(*d.generation && strcmp(d.generation, "unknown") != 0);
        assert_true(d.tdp_w > 0 && d.l2_mib > 0 && d.regs_kib_per_sm > 0 && d.max_warps_per_sm > 0);
        assert_true(d.peak_tflops[FT_FP16] > 0);
    }
}

static void the_minimum_is_asked_for_at_once(void **state)
{
    (void)state;
    refused("{}", FT_E_MISSING, "gpu.name",
            "a spec without \"base\" needs name, sms, memory_gib, memory_gbps and at least one peak in peak_tflops; "
            "missing: "
            "name, sms, memory_gib, memory_gbps, peak_tflops");
    refused("{\"name\": \"x\", \"sms\": 10, \"memory_gib\": 1, \"peak_tflops\": {\"fp32\": 1}}", FT_E_MISSING,
            "gpu.memory_gbps",
            "a spec without \"base\" needs name, sms, memory_gib, memory_gbps and at least one peak in peak_tflops; "
            "missing: "
            "memory_gbps");
}

/* Every spec printed in docs/devices.md works as printed. */
static void the_examples_of_the_manual_are_read(void **state)
{
    (void)state;
    const char *root = getenv("FORETELL_SOURCE_ROOT");
    if (!root) skip();
    char path[1024], *page;
    size_t length;
    snprintf(path, sizeof path, "%s/docs/devices.md", root);
    assert_int_equal(FT_OK, ft__file_read(path, 1 << 20, &page, &length, NULL));
    int examples = 0;
    for (char *at = page; (at = strstr(at, "```json\n")) != NULL; examples++) {
        char *end = strstr(at + 8, "```");
        assert_non_null(end);
        *end = '\0';
        accepted(at + 8, NULL);
        at = end + 1;
    }
    assert_int_equal(2, examples);
    free(page);
}

static ft_status read_once(void *text)
{
    json_t *json = NULL;
    ft_status status = ft__json_parse(text, strlen(text), "test", &json, NULL);
    if (status != FT_OK) return status;
    ft_device device;
    ft_text warnings = {0};
    status = ft__device_read(json, "gpu", &device, &warnings, NULL);
    ft__text_free(&warnings);
    json_decref(json);
    return status;
}

static void running_out_of_memory_is_said(void **state)
{
    (void)state;
    static char derived[] = "{\"base\": \"h100_sxm\", \"name\": \"x\", \"sms\": 100}";
    static char alone[] =
        "{\"name\": \"x\", \"generation\": \"ada\", \"sms\": 60, \"memory_gib\": 16, \"memory_gbps\": 700,"
        " \"peak_tflops\": {\"bf16\": 150}}";
    assert_true(failing_alloc_sweep(read_once, derived) > 20);
    assert_true(failing_alloc_sweep(read_once, alone) > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_base_lends_what_is_not_given),
        cmocka_unit_test(peaks_and_links_are_extended_key_by_key),
        cmocka_unit_test(another_link_brings_its_own_rate),
        cmocka_unit_test(fewer_sms_lower_the_peaks_that_are_not_given),
        cmocka_unit_test(a_clock_below_the_base_is_a_cap),
        cmocka_unit_test(a_cap_shows_in_the_rates),
        cmocka_unit_test(another_power_forgets_the_sustained_clock),
        cmocka_unit_test(a_base_may_be_a_file_beside_this_one),
        cmocka_unit_test(a_file_that_extends_itself_is_refused),
        cmocka_unit_test(what_is_missing_is_named_with_its_value),
        cmocka_unit_test(a_gpu_like_no_other_is_guessed_at),
        cmocka_unit_test(every_generation_can_lend),
        cmocka_unit_test(the_minimum_is_asked_for_at_once),
        cmocka_unit_test(the_examples_of_the_manual_are_read),
        cmocka_unit_test(running_out_of_memory_is_said),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}

/* Spec objects that are wrong: keys, types, units, figures that cannot be, or not together. */
#include "spec_help.h"

/* -- wrong keys, types and units --------------------------------------------------------------- */

#define H100 "{\"base\": \"h100_sxm\", \"name\": \"x\", "

static void wrong_input_is_named(void **state)
{
    (void)state;
    refused(H100 "\"clock_mhs\": 1}", FT_E_KEY, "gpu.clock_mhs",
            "unknown key \"clock_mhs\"; did you mean \"clock_mhz\"?");
    refused(H100 "\"peak_tflops\": {\"bf61\": 1}}", FT_E_KEY, "gpu.peak_tflops.bf61",
            "unknown key \"bf61\"; did you mean \"bf16\"?");
    refused(H100 "\"link\": {\"gbps\": 1}}", FT_E_KEY, "gpu.link.gbps",
            "unknown key \"gbps\"; did you mean \"gbps_per_direction\"?");
    refused(H100 "\"tdp_w\": \"700 W\"}", FT_E_TYPE, "gpu.tdp_w",
            "\"tdp_w\" must be a number, got the string \"700 W\"");
    refused(H100 "\"sms\": 0}", FT_E_RANGE, "gpu.sms", "\"sms\" must be greater than 0, got 0");
    refused(H100 "\"tdp_w\": -1}", FT_E_RANGE, "gpu.tdp_w", "\"tdp_w\" must be greater than 0, got -1");
    refused(H100 "\"sms\": 1.5}", FT_E_RANGE, "gpu.sms", "\"sms\" must be a whole number, got 1.5");
    refused(H100 "\"peak_tflops\": {\"fp8\": 0}}", FT_E_RANGE, "gpu.peak_tflops.fp8",
            "\"peak_tflops.fp8\" must be greater than 0, got 0; null says that there is none");
    refused(H100 "\"peak_tflops\": 989}", FT_E_TYPE, "gpu.peak_tflops",
            "\"peak_tflops\" must be an object of dense TFLOP/s by number format, like {\"bf16\": 989.4}");
    refused(H100 "\"vendor\": \"nvida\"}", FT_E_NAME, "gpu.vendor",
            "unknown vendor \"nvida\"; nvidia, amd, intel and other are known");
    refused("{\"base\": \"h100_sxn\", \"name\": \"x\"}", FT_E_NAME, "gpu.base",
            "unknown GPU \"h100_sxn\"; did you mean \"h100_sxm\"?");
    refused("{\"base\": 7}", FT_E_TYPE, "gpu.base", "\"base\" must be a string, got 7");
    refused("[]", FT_E_TYPE, "gpu", "an object is expected, got an array");
    refused(H100 "\"title\": \"a\\u0007b\"}", FT_E_RANGE, "gpu.title",
            "\"title\" holds a control character at position 2");
}

static void a_wrong_unit_is_refused(void **state)
{
    (void)state;
    refused(H100 "\"memory_gbps\": 1e6}", FT_E_SPEC, "gpu.memory_gbps",
            "\"memory_gbps\" is 1e+06 GB/s; a GPU has between 1 and 200000 GB/s: is the unit right?");
    refused(H100 "\"memory_gib\": 85899345920}", FT_E_SPEC, "gpu.memory_gib",
            "\"memory_gib\" is 8.58993e+10 GiB; a GPU has between 0.25 and 16384 GiB: is the unit right?");
    refused(H100 "\"regs_per_sm\": 256}", FT_E_SPEC, "gpu.regs_per_sm",
            "\"regs_per_sm\" is 256 32-bit registers; a GPU has between 1024 and 1.67772e+07 32-bit registers: is "
            "the unit "
            "right?");
}

/* -- figures that cannot be, or not together ---------------------------------------------------- */

static void impossible_figures_are_refused_with_the_numbers(void **state)
{
    (void)state;
    refused(H100 "\"peak_tflops\": {\"bf16\": 9890}}", FT_E_SPEC, "gpu.peak_tflops.bf16",
            "9890 TFLOP/s of bf16 are impossible: 132 SMs x 2048 FMA x 2 x 1830 MHz give 989.4");
    refused(H100 "\"peak_tflops\": {\"fp32\": 669}}", FT_E_SPEC, "gpu.peak_tflops.fp32",
            "669 TFLOP/s of fp32 are impossible: 132 SMs x 128 lanes x 2 x 1980 MHz give 66.91");
    refused(H100 "\"l2_mib\": 8192, \"memory_gib\": 4}", FT_E_SPEC, "gpu.l2_mib",
            "an L2 of 8192 MiB is larger than the memory of 4 GiB");
    refused(H100 "\"base_mhz\": 2500}", FT_E_SPEC, "gpu.base_mhz",
            "\"base_mhz\" is 2500 MHz, above the boost clock (clock_mhz) of 1980");
    refused(H100 "\"link\": {\"gbps_per_direction\": 7200}}", FT_E_SPEC, "gpu.link",
            "link carries 7200 GB/s, more than the memory's 3350: nothing could keep it busy");
    refused("{\"base\": \"p4\", \"name\": \"x\", \"peak_tflops\": {\"fp16\": 100}}", FT_E_SPEC, "gpu.peak_tflops.fp16",
            "100 TFLOP/s of fp16 need matrix units, and matrix_fma_per_clk_per_sm says there are none (fp32 lanes "
            "give 5.443)");
    refused(H100 "\"peak_tflops\": {\"fp64\": 6690}}", FT_E_SPEC, "gpu.peak_tflops.fp64",
            "6690 TFLOP/s of fp64 are impossible: neither 128 lanes per SM (66.91) nor the matrix units (989.4 in "
            "fp16) reach "
            "them");
}

static void sparse_figures_are_recognised(void **state)
{
    (void)state;
    const char *said;
    ft_device d = accepted("{\"base\": \"h200_sxm\", \"name\": \"x\", \"peak_tflops\": {\"bf16\": 1979}}", &said);
    assert_near(1979, d.peak_tflops[FT_BF16], 0);
    assert_says(said, "peak_tflops.bf16: 1979 looks like the figure with structured sparsity; the dense one is 989.5 "
                      "(132 SMs x 2048 FMA x 2 x 1830 MHz)\n");
    accepted("{\"base\": \"l40s\", \"name\": \"x\", \"peak_tflops\": {\"fp8\": 1466}}", &said);
    assert_says(said, "peak_tflops.fp8: 1466 looks like the figure with structured sparsity; the dense one is 733 ");
    accepted("{\"base\": \"mi355x\", \"name\": \"x\", \"peak_tflops\": {\"fp4\": 20100}}", &said);
    assert_says(said, "peak_tflops.fp4: 20100 looks like the figure with structured sparsity; the dense one is 10050 ");
    /* Also without a base, by the rate of the generation. */
    accepted("{\"name\": \"h100\", \"generation\": \"hopper\", \"sms\": 132, \"memory_gib\": 80, \"memory_gbps\": 3350,"
             " \"clock_mhz\": 1980, \"peak_tflops\": {\"bf16\": 1979}}",
             &said);
    assert_says(said, "peak_tflops.bf16: 1979 looks like the figure with structured sparsity; the dense one is 989.5 ");
    accepted("{\"base\": \"rtx_4090\", \"name\": \"x\", \"peak_tflops\": {\"fp16\": 330.3}}", &said);
    assert_says(said,
                "peak_tflops.fp16: 330.3 looks like the rate with fp16 accumulation; with fp32, as frameworks compute, "
                "it is 165.2\n");
}

static void contradictions_beyond_twelve_percent_are_said(void **state)
{
    (void)state;
    const char *said;
    accepted(
        "{\"base\": \"a100_sxm_80gb\", \"name\": \"x\", \"price_usd_per_hour\": 1, \"peak_tflops\": {\"bf16\": 345}}",
        &said);
    assert_string_equal("", said); /* 10.6 % */
    accepted(
        "{\"base\": \"a100_sxm_80gb\", \"name\": \"x\", \"price_usd_per_hour\": 1, \"peak_tflops\": {\"bf16\": 400}}",
        &said);
    assert_string_equal("peak_tflops.bf16 is 400, but 108 SMs x 1024 FMA x 2 x 1410 MHz give 311.9 (+28 %)\n", said);
    accepted(
        "{\"base\": \"a100_sxm_80gb\", \"name\": \"x\", \"price_usd_per_hour\": 1, \"peak_tflops\": {\"tf32\": 100}}",
        &said);
    assert_string_equal("peak_tflops.tf32 is 100, but 108 SMs x 512 FMA x 2 x 1410 MHz give 155.9 (-36 %)\n", said);
    accepted(
        "{\"base\": \"a100_sxm_80gb\", \"name\": \"x\", \"price_usd_per_hour\": 1, \"peak_tflops\": {\"fp32\": 15}}",
        &said);
    assert_string_equal(
        "fp32 without matrix units is 15 TFLOP/s, but 108 SMs x 64 lanes x 2 x 1410 MHz give 19.49 (-23 %)\n", said);
    accepted("{\"base\": \"a100_sxm_80gb\", \"name\": \"x\", \"price_usd_per_hour\": 1, \"link\": "
             "{\"gbps_per_direction\": 600}}",
             &said);
    assert_string_equal(
        "link.gbps_per_direction: 600 looks like the sum of both directions; one direction of nvlink3 is 300\n", said);
}

static void a_misspelt_generation_is_pointed_out(void **state)
{
    (void)state;
    const char *said;
    accepted("{\"name\": \"x\", \"generation\": \"hoper\", \"sms\": 132, \"memory_gib\": 80, \"memory_gbps\": 3350,"
             " \"peak_tflops\": {\"bf16\": 989}}",
             &said);
    assert_says(said, "generation \"hoper\" is new to the catalogue; did you mean \"hopper\"?\n");
}

static void a_catalogue_name_with_other_figures_is_pointed_out(void **state)
{
    (void)state;
    const char *said;
    accepted("{\"base\": \"t4\", \"name\": \"t4\", \"price_usd_per_hour\": 9, \"memory_gbps\": 300}", &said);
    assert_string_equal("name: t4 is in the catalogue with other figures; its measurements are taken for this GPU's\n",
                        said);
    accepted("{\"base\": \"t4\", \"name\": \"t4\", \"price_usd_per_hour\": 9}", &said);
    assert_string_equal("", said); /* a price changes no forecast */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_input_is_named),
        cmocka_unit_test(a_wrong_unit_is_refused),
        cmocka_unit_test(impossible_figures_are_refused_with_the_numbers),
        cmocka_unit_test(sparse_figures_are_recognised),
        cmocka_unit_test(contradictions_beyond_twelve_percent_are_said),
        cmocka_unit_test(a_misspelt_generation_is_pointed_out),
        cmocka_unit_test(a_catalogue_name_with_other_figures_is_pointed_out),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}

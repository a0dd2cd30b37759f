/* Traits: the catalogue states them, files without them get those of their base or their generation, and a GPU of a
 * generation nobody heard of is what its traits say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "device/fields.h"
#include "device/gpu.h"
#include "device/traits.h"

static const char *const chip_keys[] = {
    "matrix_issue",  "async_copy", "issue_lanes_per_sm", "dual_issue",        "dies",
    "l2_partitions", "inline_ecc", "matrix_pj_per_flop", "exp_per_clk_per_sm"};
enum { CHIP_KEYS = sizeof chip_keys / sizeof *chip_keys };

static ft_device catalogue(const char *name)
{
    ft_device device;
    assert_int_equal(FT_OK, ft__catalogue_find(name, &device, NULL));
    return device;
}

static json_t *sheet(const char *name)
{
    json_t *json = NULL;
    size_t length = 0, i = 0;
    while (i < ft__catalogue_count() && strcmp(ft__catalogue_name(i), name) != 0) i++;
    const char *text = ft__catalogue_json(i, &length);
    assert_non_null(text);
    assert_int_equal(FT_OK, ft__json_parse(text, length, name, &json, NULL));
    return json;
}

/* The warnings live until the next call. */
static ft_device read_json(json_t *json, const char **said)
{
    static ft_text warnings;
    ft__text_free(&warnings);
    ft_device device;
    ft_error err = {0};
    if (ft__device_read(json, "gpu", &device, &warnings, &err) != FT_OK) fail_msg("%s: %s", err.where, err.message);
    if (said) *said = warnings.at ? warnings.at : "";
    return device;
}

static ft_device read_text(const char *text, const char **said)
{
    json_t *json = NULL;
    assert_int_equal(FT_OK, ft__json_parse(text, strlen(text), "test", &json, NULL));
    ft_device device = read_json(json, said);
    json_decref(json);
    return device;
}

static void refused(const char *text, ft_status code, const char *where, const char *message)
{
    json_t *json = NULL;
    ft_device device;
    ft_error err = {0};
    assert_int_equal(FT_OK, ft__json_parse(text, strlen(text), "test", &json, NULL));
    assert_int_equal(code, ft__device_read(json, "gpu", &device, NULL, &err));
    assert_string_equal(message, err.message);
    assert_string_equal(where, err.where);
    json_decref(json);
}

static void assert_same_traits(const char *name, const ft_device *a, const ft_device *b)
{
    if (a->matrix_issue != b->matrix_issue || a->async_copy != b->async_copy ||
        a->issue_lanes_per_sm != b->issue_lanes_per_sm || a->dual_issue != b->dual_issue || a->dies != b->dies ||
        a->l2_partitions != b->l2_partitions || a->exp_per_clk_per_sm != b->exp_per_clk_per_sm ||
        a->matrix_pj_per_flop < b->matrix_pj_per_flop || a->matrix_pj_per_flop > b->matrix_pj_per_flop)
        fail_msg("%s: other traits of its chip", name);
    if (a->link_switched != b->link_switched || a->link_reduces != b->link_reduces) fail_msg("%s: another link", name);
    assert_int_equal(a->server_nic_gbit, b->server_nic_gbit);
}

static void every_sheet_states_its_traits(void **state)
{
    (void)state;
    for (size_t i = 0; i < ft__catalogue_count(); i++) {
        json_t *json = sheet(ft__catalogue_name(i)), *link = json_object_get(json, "link");
        for (int k = 0; k < CHIP_KEYS; k++)
            if (!json_object_get(json, chip_keys[k])) fail_msg("%s: no %s", ft__catalogue_name(i), chip_keys[k]);
        assert_true(json_is_boolean(json_object_get(link, "switched")));
        assert_true(json_is_boolean(json_object_get(link, "reduces")));
        assert_non_null(json_object_get(json, "server_nic_gbit"));
        json_decref(json);
    }
}

/* Files of before there were traits: what follows from generation, link and year is what the sheets state. */
static void a_file_without_traits_has_those_of_its_generation(void **state)
{
    (void)state;
    for (size_t i = 0; i < ft__catalogue_count(); i++) {
        json_t *json = sheet(ft__catalogue_name(i)), *link = json_object_get(json, "link");
        ft_device stated = catalogue(ft__catalogue_name(i));
        for (int k = 0; k < CHIP_KEYS; k++) json_object_del(json, chip_keys[k]);
        json_object_del(link, "switched");
        json_object_del(link, "reduces");
        json_object_del(json, "server_nic_gbit");
        ft_device derived = read_json(json, NULL);
        if (!strcmp(stated.name, "l4")) { /* measured far below the clock of its generation's other boards */
            assert_true(stated.matrix_pj_per_flop < derived.matrix_pj_per_flop);
            derived.matrix_pj_per_flop = stated.matrix_pj_per_flop;
        }
        assert_same_traits(stated.name, &stated, &derived);
        assert_false(derived.inline_ecc); /* a matter of the board: said or not had */
        json_decref(json);
    }
}

static void a_base_lends_its_traits(void **state)
{
    (void)state;
    for (size_t i = 0; i < ft__catalogue_count(); i++) {
        char text[128];
        snprintf(text, sizeof text, "{\"base\": \"%s\", \"name\": \"mine\", \"tdp_w\": 300}", ft__catalogue_name(i));
        ft_device stated = catalogue(ft__catalogue_name(i)), mine = read_text(text, NULL);
        assert_same_traits(stated.name, &stated, &mine);
        assert_int_equal(stated.inline_ecc, mine.inline_ecc);
    }
}

static void what_a_trait_stands_on_takes_it_along(void **state)
{
    (void)state;
    ft_device d = read_text("{\"base\": \"h100_sxm\", \"link\": {\"gpus\": 4}}", NULL);
    assert_false(d.link_switched || d.link_reduces);
    d = read_text("{\"base\": \"h100_sxm\", \"link\": {\"kind\": \"pcie5\"}}", NULL);
    assert_false(d.link_switched || d.link_reduces);
    d = read_text("{\"base\": \"h100_nvl\", \"link\": {\"gpus\": 8}}", NULL);
    assert_true(d.link_switched && d.link_reduces);
    d = read_text("{\"base\": \"a100_sxm_80gb\", \"link\": {\"gpus\": 16}}", NULL);
    assert_true(d.link_switched && !d.link_reduces);
    d = read_text("{\"base\": \"v100_sxm_32gb\", \"link\": {\"gpus\": 16}}", NULL);
    assert_false(d.link_switched);
    d = read_text("{\"base\": \"v100_sxm_32gb\", \"link\": {\"gpus\": 16, \"switched\": true}}", NULL); /* DGX-2 */
    assert_true(d.link_switched && !d.link_reduces);
    d = read_text("{\"base\": \"h100_sxm\", \"link\": {\"switched\": false}}", NULL);
    assert_false(d.link_switched || d.link_reduces);
    d = read_text("{\"base\": \"l40s\", \"memory_type\": \"hbm3\"}", NULL);
    assert_false(d.inline_ecc);
    d = read_text("{\"base\": \"h100_sxm\", \"year\": 2027}", NULL);
    assert_int_equal(800, d.server_nic_gbit);
    d = read_text("{\"base\": \"h100_sxm\", \"matrix_fma_per_clk_per_sm\": null, \"peak_tflops\": {\"tf32\": null, "
                  "\"fp16\": null, \"bf16\": null, \"fp8\": null, \"int8\": null}}",
                  NULL);
    assert_int_equal(FT_ISSUE_NONE, d.matrix_issue);
}

/* A GPU is one file: another word for its generation costs it the measurements of its kin and nothing else. */
static void a_new_generation_with_known_traits_is_the_same_hardware(void **state)
{
    (void)state;
    const char *said;
    json_t *json = sheet("b200_sxm");
    json_object_set_new(json, "name", json_string("r200"));
    json_object_set_new(json, "generation", json_string("rubin"));
    ft_device b200 = catalogue("b200_sxm"), invented = read_json(json, &said);
    assert_string_equal("generation \"rubin\" is new to the catalogue: forecasts rest on physics alone\n", said);
    assert_string_equal("rubin", invented.generation);
    memcpy(invented.name, b200.name, sizeof b200.name);
    memcpy(invented.generation, b200.generation, sizeof b200.generation);
    assert_true(ft__device_hash(&invented) == ft__device_hash(&b200));
    json_decref(json);
}

static const char unknown[] = "{\"name\": \"x\", \"vendor\": \"nvidia\", \"generation\": \"rubin\", \"sms\": 148, "
                              "\"clock_mhz\": 1900, \"memory_gib\": 288, \"memory_gbps\": 13000, \"peak_tflops\": "
                              "{\"bf16\": 4000, \"fp32\": 80}";

static void an_unknown_generation_with_a_known_capability_has_its_chip(void **state)
{
    (void)state;
    char text[512];
    const char *said;
    snprintf(text, sizeof text, "%s, \"compute_capability\": \"sm_100\"}", unknown);
    ft_device d = read_text(text, &said);
    assert_int_equal(FT_ISSUE_TCGEN05, d.matrix_issue);
    assert_int_equal(2, d.dies);
    assert_non_null(strstr(said, "traits that are not given: as b200_sxm, by compute_capability\n"));
    assert_int_equal(10, ft__compute_major(&d));
}

static void an_unknown_generation_without_traits_is_guessed_at_aloud(void **state)
{
    (void)state;
    char text[512];
    const char *said;
    snprintf(text, sizeof text, "%s}", unknown);
    ft_device d = read_text(text, &said);
    assert_int_equal(FT_ISSUE_MMA, d.matrix_issue);
    assert_int_equal(FT_COPY_NONE, d.async_copy);
    assert_int_equal(2, d.l2_partitions);
    assert_int_equal(0, ft__compute_major(&d));
    assert_non_null(strstr(said, "matrix_issue mma, async_copy none, dies 1, l2_partitions 2: guesses where they are "
                                 "not given\n"));
    snprintf(text, sizeof text, "%s, \"matrix_issue\": \"tcgen05\", \"async_copy\": \"tma\"}", unknown);
    d = read_text(text, &said);
    assert_int_equal(FT_ISSUE_TCGEN05, d.matrix_issue);
    assert_null(strstr(said, "matrix_issue"));
}

static void wrong_traits_are_refused(void **state)
{
    (void)state;
    refused("{\"base\": \"h100_sxm\", \"matrix_issue\": \"wgma\"}", FT_E_NAME, "gpu.matrix_issue",
            "\"matrix_issue\" is one of none, mma, wgmma, tcgen05, mfma, xmx, not \"wgma\"; did you mean \"wgmma\"?");
    refused("{\"base\": \"h100_sxm\", \"async_copy\": \"lorry\"}", FT_E_NAME, "gpu.async_copy",
            "\"async_copy\" is one of none, cp_async, tma, not \"lorry\"");
    refused("{\"base\": \"h100_sxm\", \"dies\": 1.5}", FT_E_RANGE, "gpu.dies",
            "\"dies\" must be a whole number, got 1.5");
    refused("{\"base\": \"h100_sxm\", \"matrix_pj_per_flop\": 760}", FT_E_SPEC, "gpu.matrix_pj_per_flop",
            "\"matrix_pj_per_flop\" is 760 pJ; a GPU has between 0.01 and 100 pJ: is the unit right?");
    refused("{\"base\": \"a100_sxm_80gb\", \"link\": {\"switched\": false, \"reduces\": true}}", FT_E_SPEC,
            "gpu.link.reduces", "\"link.reduces\" says that a switch adds, \"link.switched\" that there is none");
    json_t *json = json_pack("{s:s, s:i}", "base", "h100_sxm", "dual_issue", 1);
    ft_device device;
    ft_error err = {0};
    assert_int_equal(FT_E_TYPE, ft__device_read(json, "gpu", &device, NULL, &err));
    assert_string_equal("gpu.dual_issue", err.where);
    json_decref(json);
}

static void words_go_both_ways(void **state)
{
    (void)state;
    for (int i = 0; i < FT_ISSUE_COUNT; i++)
        for (int c = 0; c < FT_COPY_COUNT; c++) {
            char text[160];
            snprintf(text, sizeof text, "{\"base\": \"h100_sxm\", \"matrix_issue\": \"%s\", \"async_copy\": \"%s\"}",
                     ft__matrix_issue_name((ft_matrix_issue)i), ft__async_copy_name((ft_async_copy)c));
            ft_device d = read_text(text, NULL);
            assert_int_equal(i, d.matrix_issue);
            assert_int_equal(c, d.async_copy);
        }
    assert_string_equal("none", ft__matrix_issue_name((ft_matrix_issue)77));
    assert_string_equal("none", ft__async_copy_name((ft_async_copy)-1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_sheet_states_its_traits),
        cmocka_unit_test(a_file_without_traits_has_those_of_its_generation),
        cmocka_unit_test(a_base_lends_its_traits),
        cmocka_unit_test(what_a_trait_stands_on_takes_it_along),
        cmocka_unit_test(a_new_generation_with_known_traits_is_the_same_hardware),
        cmocka_unit_test(an_unknown_generation_with_a_known_capability_has_its_chip),
        cmocka_unit_test(an_unknown_generation_without_traits_is_guessed_at_aloud),
        cmocka_unit_test(wrong_traits_are_refused),
        cmocka_unit_test(words_go_both_ways),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Growable text, JSON strings, and the nearest name. */
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/software.h"
#include "base/text.h"
#include "failing_alloc.h"

static void pieces_join(void **state)
{
    (void)state;
    ft_text t = {0};
    ft__text_add(&t, "");
    assert_string_equal(t.at, "");
    ft__text_add(&t, "one");
    ft__text_add_n(&t, " two and a half", 4);
    ft__text_addf(&t, " %d", 3);
    assert_string_equal(t.at, "one two 3");
    assert_int_equal(t.length, 9);
    ft__text_clear(&t);
    assert_string_equal(t.at, "");
    assert_int_equal(t.length, 0);
    ft__text_free(&t);
    assert_null(t.at);
    ft__text_free(&t);
}

static void a_formatted_piece_of_any_length_fits(void **state)
{
    (void)state;
    ft_text t = {0};
    char *long_text = malloc(5001);
    memset(long_text, 'z', 5000);
    for (size_t length = 240; length < 5000; length += length < 270 ? 1 : 997) {
        long_text[length] = '\0';
        ft__text_clear(&t);
        ft__text_addf(&t, "<%s>", long_text);
        assert_int_equal(t.length, length + 2);
        assert_int_equal(t.at[0], '<');
        assert_int_equal(t.at[length], 'z');
        assert_string_equal(t.at + length + 1, ">");
        long_text[length] = 'z';
    }
    free(long_text);
    ft__text_free(&t);
}

static void the_cap_stops_growth_and_is_remembered(void **state)
{
    (void)state;
    ft_text t = {.cap = 10};
    ft__text_add(&t, "0123456789");
    assert_false(t.failed);
    ft__text_add(&t, "");
    assert_false(t.failed);
    ft__text_add(&t, "x");
    assert_true(t.failed);
    assert_string_equal(t.at, "0123456789");
    ft__text_clear(&t);
    assert_false(t.failed);
    ft__text_addf(&t, "%d", 42);
    assert_string_equal(t.at, "42");
    ft__text_addf(&t, "%0300d", 1);
    assert_true(t.failed);
    assert_string_equal(t.at, "42");
    ft__text_add(&t, "3"); /* after a failure nothing is added: no text with a hole in it */
    assert_string_equal(t.at, "42");
    ft__text_free(&t);
}

static const char *quoted(ft_text *t, const char *s)
{
    ft__text_clear(t);
    ft__text_add_json(t, s);
    return t->at;
}

static void json_strings_are_escaped(void **state)
{
    (void)state;
    ft_text t = {0};
    assert_string_equal(quoted(&t, ""), "\"\"");
    assert_string_equal(quoted(&t, "a\"b\\c/d"), "\"a\\\"b\\\\c/d\"");
    assert_string_equal(quoted(&t, "\n\r\t\b\f\x01\x1f\x7f"), "\"\\n\\r\\t\\b\\f\\u0001\\u001f\x7f\"");
    assert_string_equal(quoted(&t, "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"), "\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\"");
    ft__text_free(&t);
}

static void bytes_that_are_no_utf8_become_the_replacement_character(void **state)
{
    (void)state;
    ft_text t = {0};
    static const char *const wrong[] = {
        "\x80",
        "\xFF",
        "\xC0\xAF",
        "\xC3",
        "\xE2\x82",
        "\xE0\x80\x80",
        "\xED\xA0\x80",
        "\xF0\x80\x80\x80",
        "\xF4\x90\x80\x80",
        "\xF5\x80\x80\x80",
        "\xF0\x9F\x98",
        "a\xE2(b",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const char *s = quoted(&t, wrong[i]);
        assert_non_null(strstr(s, "\\ufffd"));
        json_t *back = json_loads(s, JSON_DECODE_ANY, NULL);
        if (!back) fail_msg("case %zu gives invalid JSON", i);
        json_decref(back);
    }
    assert_string_equal(quoted(&t, "a\xE2(b"), "\"a\\ufffd(b\"");
    ft__text_free(&t);
}

static void any_bytes_give_json_that_jansson_reads(void **state)
{
    (void)state;
    ft_text t = {0};
    uint32_t seed = 1;
    for (int i = 0; i < 20000; i++) {
        char bytes[12];
        size_t n = 0;
        for (; n < 11; n++) {
            seed = seed * 1664525u + 1013904223u;
            bytes[n] = (char)(seed >> 24);
            if (i % 2 && n > 0) bytes[n] = (char)(0x80 | (bytes[n] & 0x3F));
        }
        bytes[n] = '\0';
        json_t *back = json_loads(quoted(&t, bytes), JSON_DECODE_ANY, NULL);
        assert_non_null(back);
        json_decref(back);
    }
    ft__text_free(&t);
}

static void characters_are_measured_and_never_cut(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t room, length;
    } cases[] = {
        {"a", 1, 1},
        {"", 0, 0},
        {"\xC3\xA9", 2, 2},
        {"\xC3\xA9", 1, 0},
        {"\xE2\x82\xAC", 3, 3},
        {"\xE2\x82\xAC", 2, 0},
        {"\xF0\x9F\x98\x80", 4, 4},
        {"\xF0\x9F\x98\x80", 3, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(ft__utf8_length(cases[i].text, cases[i].room), cases[i].length);
    assert_int_equal(ft__utf8_cut("abc", 10), 3);
    assert_int_equal(ft__utf8_cut("abc", 3), 3);
    assert_int_equal(ft__utf8_cut("abc", 2), 2);
    assert_int_equal(ft__utf8_cut("a\xE2\x82\xAC", 3), 1);
    assert_int_equal(ft__utf8_cut("a\xE2\x82\xAC", 4), 4);
    assert_int_equal(ft__utf8_cut("\xE2\x82\xAC", 2), 0);
    assert_int_equal(ft__utf8_cut("", 0), 0);
}

static const char *const gpus[] = {
    "a100_pcie_40gb", "a100_sxm_80gb", "h100_nvl", "h100_pcie", "h100_sxm", "h200_sxm", "l4", "l40", "mi300x", "t4"};

static const char *nearest_gpu(const char *wanted)
{
    const char *name = ft__nearest(wanted, gpus, sizeof gpus / sizeof *gpus);
    return name ? name : "(none)";
}

static void the_nearest_name_is_what_was_meant(void **state)
{
    (void)state;
    assert_string_equal(nearest_gpu("h100_sxn"), "h100_sxm");
    assert_string_equal(nearest_gpu("h10_sxm"), "h100_sxm");
    assert_string_equal(nearest_gpu("h100sxm"), "h100_sxm");
    assert_string_equal(nearest_gpu("H200-SXM"), "h200_sxm");
    assert_string_equal(nearest_gpu("h2o0_sxm"), "h200_sxm");
    assert_string_equal(nearest_gpu("mi30x0"), "mi300x");
    assert_string_equal(nearest_gpu("a100"), "a100_sxm_80gb");
    assert_string_equal(nearest_gpu("h100"), "h100_nvl");
    assert_string_equal(nearest_gpu("l40s"), "l40");
    assert_string_equal(nearest_gpu("t5"), "t4");
    /* Separators cost nothing, a name that goes on stands before one that differs, of equals the shorter. */
    static const char *const models[] = {"megatron-22b", "gpt-22b", "gpt2",  "gpt2-xl",          "gpt3-175b",
                                         "mi100",        "mi300x",  "phi-4", "micro-batch-size", "batch"};
    size_t count = sizeof models / sizeof *models;
    assert_string_equal(ft__nearest("gpt-2", models, count), "gpt2");
    assert_string_equal(ft__nearest("gpt-4", models, count), "gpt2");
    assert_string_equal(ft__nearest("phi4", models, count), "phi-4");
    static const char *const llamas[] = {"llama-33b", "llama-3-8b"};
    assert_string_equal(ft__nearest("llama-3-9b", llamas, 2), "llama-3-8b"); /* separators are worth a little */
    assert_string_equal(ft__nearest("mi300", models, count), "mi300x");
    assert_string_equal(ft__nearest("mi-300", models, count), "mi300x");
    assert_string_equal(ft__nearest("micro-bach", models, count), "micro-batch-size");
    assert_null(ft__nearest("macro-cash", models, count));
}

static void software_has_other_names(void **state)
{
    (void)state;
    static const char *const engines[] = {"sglang", "trtllm", "trtllm-0.14", "vllm", "vllm-0.11"};
    static const char *const stacks[] = {"deepspeed", "fsdp",    "hf_trainer", "megatron",
                                         "nemo",      "pytorch", "torchtitan"};
    static const char *const frameworks[] = {"ddp", "deepspeed", "fsdp", "megatron", "nemo", "torchtitan"};
    static const struct {
        const char *typed, *engine, *stack, *framework;
    } cases[] = {
        {"tensorrt_llm", "trtllm", NULL, NULL},
        {"TensorRT-LLM", "trtllm", NULL, NULL},
        {"TRT-LLM", "trtllm", NULL, NULL},
        {"tensorrt-llm 1.0", "trtllm", NULL, NULL},
        {"vllm-v1", "vllm", NULL, NULL},
        {"sgl", "sglang", NULL, NULL},
        {"SGLang", "sglang", NULL, NULL},
        {"huggingface", NULL, "hf_trainer", "fsdp"},
        {"Megatron-LM", NULL, "megatron", "megatron"},
        {"mcore", NULL, "megatron", "megatron"},
        {"titan", NULL, "torchtitan", "torchtitan"},
        {"torch", NULL, "pytorch", "ddp"},
        {"llama_factory", NULL, "hf_trainer", NULL},
        {"lmdeploy", NULL, NULL, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *found[] = {ft__nearest_software(cases[i].typed, engines, 5),
                               ft__nearest_software(cases[i].typed, stacks, 7),
                               ft__nearest_software(cases[i].typed, frameworks, 6)};
        const char *wanted[] = {cases[i].engine, cases[i].stack, cases[i].framework};
        for (int k = 0; k < 3; k++)
            if (strcmp(found[k] ? found[k] : "", wanted[k] ? wanted[k] : "") != 0)
                fail_msg("%s: %s", cases[i].typed, found[k] ? found[k] : "(none)");
    }
}

static void edits_are_counted(void **state)
{
    (void)state;
    static const struct {
        const char *a;
        size_t length;
        const char *b;
        int edits;
    } rows[] = {{"infinband", 9, "infiniband", 1},
                {"NDR-400x", 8, "ndr400", 1},
                {"gpt_2", 5, "gpt2", 0},
                {"abcd", 2, "ba", 1},
                {"nvswitch", 8, "nvlink", 5},
                {"ethernet", 8, "ehternt", 2},
                {"x", 1, "y", 1},
                {"slingshot", 9, "tcp", 9}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_true(ft__within(rows[i].a, rows[i].length, rows[i].b, rows[i].edits));
        assert_false(ft__within(rows[i].a, rows[i].length, rows[i].b, rows[i].edits - 1));
    }
    char endless[200];
    memset(endless, 'h', sizeof endless - 1);
    endless[sizeof endless - 1] = '\0';
    assert_false(ft__within(endless, 199, "h", 1000) || ft__within("h", 1, endless, 1000));
}

static void what_is_far_from_all_is_not_guessed_at(void **state)
{
    (void)state;
    assert_string_equal(nearest_gpu("potato"), "(none)");
    assert_string_equal(nearest_gpu(""), "(none)");
    assert_string_equal(nearest_gpu("z"), "(none)");
    assert_string_equal(nearest_gpu("zz"), "(none)");
    assert_null(ft__nearest("h100", gpus, 0));
    char endless[200];
    memset(endless, 'h', sizeof endless - 1);
    endless[sizeof endless - 1] = '\0';
    assert_null(ft__nearest(endless, gpus, sizeof gpus / sizeof *gpus));
    const char *const names[] = {endless, "h"};
    assert_null(ft__nearest("potato", names, 2));
}

static ft_status write_text(void *context)
{
    (void)context;
    ft_text t = {0};
    for (int i = 0; i < 300; i++) {
        ft__text_addf(&t, "%d %0300d", i, i);
        ft__text_add_number(&t, i * 0.1, 6);
        ft__text_add_json(&t, "a\tb");
    }
    ft_status status = t.failed ? FT_E_MEMORY : FT_OK;
    if (status == FT_OK) assert_true(t.length > 300 * 300);
    ft__text_free(&t);
    return status;
}

static void any_allocation_may_fail(void **state)
{
    (void)state;
    assert_true(failing_alloc_sweep(write_text, NULL) > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_join),
        cmocka_unit_test(a_formatted_piece_of_any_length_fits),
        cmocka_unit_test(the_cap_stops_growth_and_is_remembered),
        cmocka_unit_test(json_strings_are_escaped),
        cmocka_unit_test(bytes_that_are_no_utf8_become_the_replacement_character),
        cmocka_unit_test(any_bytes_give_json_that_jansson_reads),
        cmocka_unit_test(characters_are_measured_and_never_cut),
        cmocka_unit_test(the_nearest_name_is_what_was_meant),
        cmocka_unit_test(software_has_other_names),
        cmocka_unit_test(edits_are_counted),
        cmocka_unit_test(what_is_far_from_all_is_not_guessed_at),
        cmocka_unit_test(any_allocation_may_fail),
    };
    return cmocka_run_group_tests_name("base_text", tests, NULL, NULL);
}

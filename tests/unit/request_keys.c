/* The table of request keys: every row makes sense, and what is read by it is written by it. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "comm/cluster.h"
#include "request/keys.h"
#include "request/tasks.h"
#include "request/words.h"

static void every_row_makes_sense(void **state)
{
    (void)state;
    for (int i = 0; i < FT_KEY_COUNT; i++) {
        const ft_key_row *k = &ft__keys[i];
        bool number = k->type == FT_KEY_WHOLE || k->type == FT_KEY_REAL || k->type == FT_KEY_WHOLES ||
                      k->type == FT_KEY_TRIED || k->type == FT_KEY_SHARE;
        bool worded = k->type == FT_KEY_WORD || k->type == FT_KEY_NAMES || k->type == FT_KEY_TRIED_WORDS;
        if (number && !(k->low < k->high)) fail_msg("\"%s\" has no range", k->key);
        if (k->type != FT_KEY_WHOLE && worded != (k->word_count > 0))
            fail_msg("\"%s\" has words and its type does not, or the reverse", k->key);
        if (number && !isnan(k->standard) && (k->standard < k->low || k->standard > k->high))
            fail_msg("\"%s\": its default is out of its range", k->key);
        if (k->type == FT_KEY_WORD && !isnan(k->standard) && !(k->standard < (double)k->word_count))
            fail_msg("\"%s\": its default is none of its words", k->key);
        if (k->flag && !*k->help) fail_msg("--%s has no help", k->flag);
        for (size_t w = 0; w < k->word_count; w++) assert_non_null(k->words[w]);
        for (int j = 0; j < i; j++)
            if (ft__keys[j].section == k->section && !strcmp(ft__keys[j].key, k->key))
                fail_msg("\"%s\" stands there twice", k->key);
    }
}

/* comm reads `cluster`, also from files: it must know the same keys. */
static void the_cluster_has_the_same_keys(void **state)
{
    (void)state;
    for (int i = 0; i < FT_KEY_COUNT; i++)
        if (ft__keys[i].section == FT_SECTION_CLUSTER && !ft__cluster_key(ft__keys[i].key))
            fail_msg("\"%s\" is no key of a cluster", ft__keys[i].key);
}

/* What docs/interface.md says of a key with words names each of them. */
static void docs_name_every_word(void **state)
{
    (void)state;
    for (int i = 0; i < FT_KEY_COUNT; i++) {
        const ft_key_row *k = &ft__keys[i];
        for (size_t w = 0; w < k->word_count && k->docs; w++) {
            char quoted[64];
            snprintf(quoted, sizeof quoted, "`%s`", k->words[w]);
            bool later = i == FT_KEY_ID_TASK && !strcmp(k->words[w], "trace");
            if (!later && !strstr(k->docs, quoted)) fail_msg("\"%s\": its docs lack %s", k->key, quoted);
        }
    }
}

/* As on a command line, each in its place. */
static void what_is_typed_stands_where_it_is_read(void **state)
{
    (void)state;
    static const struct {
        ft_key_id id;
        const char *text;
    } typed[] = {{FT_KEY_ID_MICRO_BATCH, "4"},
                 {FT_KEY_ID_TP, "8"},
                 {FT_KEY_ID_SP, NULL},
                 {FT_KEY_ID_RECOMPUTE_MODULES, "mlp,moe"},
                 {FT_KEY_ID_MEMORY_MARGIN, "4%"},
                 {FT_KEY_ID_EMIT, "megatron,srun"},
                 {FT_KEY_ID_ALLOW, "cp"},
                 {FT_KEY_ID_ADAPTER_DTYPE, "bf16"},
                 {FT_KEY_ID_OBJECTIVE, "time"},
                 {FT_KEY_ID_SEARCH, "tp=4|8"},
                 {FT_KEY_ID_RATE, "2.5"}};
    static const char expected[] =
        "{\"batch\":4,\"parallel\":{\"tp\":8,\"sp\":true},\"recompute_modules\":[\"mlp\",\"moe\"],\"constraints\":"
        "{\"memory_margin\":0.04},\"emit\":[\"megatron\",\"srun\"],\"allow\":[\"cp\"],\"lora\":{\"dtype\":\"bf16\"},"
        "\"objective\":\"time\",\"search\":\"tp=4|8\",\"rate\":2.5,\"seq\":[512,2048]}";
    json_t *made = json_object(), *wanted = json_loads(expected, 0, NULL);
    for (size_t i = 0; i < sizeof typed / sizeof *typed; i++)
        assert_true(ft__key_put(made, typed[i].id, ft__key_typed(typed[i].id, typed[i].text)));
    assert_true(ft__key_add(made, FT_KEY_ID_INFER_SEQS, ft__key_typed(FT_KEY_ID_INFER_SEQS, "512")));
    assert_true(ft__key_add(made, FT_KEY_ID_INFER_SEQS, ft__key_typed(FT_KEY_ID_INFER_SEQS, "2048")));
    assert_true(json_equal(made, wanted));
    assert_null(ft__key_typed(FT_KEY_ID_TP, "many"));
    assert_false(ft__key_put(made, FT_KEY_ID_TP, NULL));
    json_decref(made);
    json_decref(wanted);
}

/* Keys that a task refuses or cannot do without are its own; of two rows of one name the later section's holds. */
static void every_task_names_keys_that_it_has(void **state)
{
    (void)state;
    for (int t = 0; t < FT_ASK_COUNT; t++) {
        const ft_task_row *task = &ft__tasks[t];
        assert_in_range(task->count, 2, FT_TASK_SECTIONS);
        for (const char *at = task->needed; *at; at += strcspn(at, " "), at += *at == ' ') {
            char key[32] = "";
            memcpy(key, at, strcspn(at, " "));
            if (ft__task_key((ft_ask)t, key) == FT_KEY_COUNT)
                fail_msg("\"%s\" needs \"%s\", which it has not", ft__ask_words[t], key);
        }
    }
    assert_int_equal(ft__task_key(FT_ASK_INFER, "batch"), FT_KEY_ID_INFER_BATCHES);
    assert_int_equal(ft__task_key(FT_ASK_TRAIN, "batch"), FT_KEY_ID_MICRO_BATCH);
    assert_int_equal(ft__task_key(FT_ASK_LARGEST, "model"), FT_KEY_COUNT);
}

static void lists_are_numbers_in_their_range(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t count; /* 0: refused */
    } cases[] = {
        {"{\"tp\":[2,4]}", 2}, {"{\"tp\":8}", 1}, {"{\"tp\":[]}", 0}, {"{\"tp\":[0]}", 0}, {"{\"tp\":\"most\"}", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ft_said said;
        ft_error err = {0};
        int64_t out[4];
        size_t count = 0;
        json_t *in = json_loads(cases[i].text, 0, NULL);
        ft__said_init(&said);
        assert_int_equal(ft__said_read(in, FT_SECTION_SEARCH, &said, &err), FT_OK);
        ft_status status = ft__wholes_of(&said, FT_KEY_ID_TRIED_TP, "search.tp", out, 4, &count, &err);
        assert_int_equal(status == FT_OK, cases[i].count > 0);
        if (cases[i].count) assert_int_equal(count, cases[i].count);
        if (!cases[i].count) assert_string_equal(err.where, "search.tp");
        json_decref(in);
    }
}

static void defaults_are_the_table_s(void **state)
{
    (void)state;
    ft_said said;
    char room[32];
    ft__said_init(&said);
    assert_int_equal(ft__whole_of(&said, FT_KEY_ID_TP), 1);
    assert_int_equal(ft__word_of(&said, FT_KEY_ID_SCHEDULE), -1);
    assert_int_equal(ft__tristate_of(&said, FT_KEY_ID_OVERLAP), -1);
    assert_string_equal(ft__key_standard(&ft__keys[FT_KEY_ID_OPTIMIZER], room), "adamw");
    assert_string_equal(ft__key_standard(&ft__keys[FT_KEY_ID_QUANTILE], room), "0.9");
    assert_string_equal(ft__key_standard(&ft__keys[FT_KEY_ID_SEQ], room), "");
    assert_string_equal(ft__key_standard(&ft__keys[FT_KEY_ID_DTYPE], room), "bf16");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_makes_sense),
        cmocka_unit_test(the_cluster_has_the_same_keys),
        cmocka_unit_test(docs_name_every_word),
        cmocka_unit_test(defaults_are_the_table_s),
        cmocka_unit_test(what_is_typed_stands_where_it_is_read),
        cmocka_unit_test(every_task_names_keys_that_it_has),
        cmocka_unit_test(lists_are_numbers_in_their_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

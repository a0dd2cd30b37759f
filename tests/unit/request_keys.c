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

static void every_row_makes_sense(void **state)
{
    (void)state;
    for (int i = 0; i < FT_KEY_COUNT; i++) {
        const ft_key_row *k = &ft__keys[i];
        bool number = k->type == FT_KEY_WHOLE || k->type == FT_KEY_REAL;
        bool worded = k->type == FT_KEY_WORD || k->type == FT_KEY_NAMES;
        if (number && !(k->low < k->high)) fail_msg("\"%s\" has no range", k->key);
        if (worded != (k->word_count > 0)) fail_msg("\"%s\" has words and its type does not, or the reverse", k->key);
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

static void what_is_read_is_written(void **state)
{
    (void)state;
    static const struct {
        ft_section section;
        const char *text;
    } cases[] = {
        {FT_SECTION_PARALLEL, "{\"tp\":2,\"sp\":true,\"schedule\":\"gpipe\",\"overlap\":false,\"bucket_mib\":25.5}"},
        {FT_SECTION_MODEL, "{\"batch\":3,\"dtype\":\"amp_fp16\",\"recompute_modules\":[\"layernorm\",\"mlp\"],"
                           "\"read_as\":\"llama\",\"clip_grad\":true}"},
        {FT_SECTION_LOADER, "{\"workers\":4,\"worker_ms\":2.5,\"pinned\":true}"},
        {FT_SECTION_LORA, "{\"rank\":8,\"dtype\":\"autocast\",\"dropout\":0.5,\"dora\":true}"},
        {FT_SECTION_COMMON, "{\"quantile\":0.8}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ft_said said;
        ft_error err = {0};
        json_t *in = json_loads(cases[i].text, 0, NULL);
        ft__said_init(&said);
        assert_int_equal(ft__said_read(in, cases[i].section, &said, &err), FT_OK);
        json_t *out = ft__said_write(&said, cases[i].section);
        assert_true(json_equal(in, out));
        json_decref(out);
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
        cmocka_unit_test(every_row_makes_sense),    cmocka_unit_test(the_cluster_has_the_same_keys),
        cmocka_unit_test(docs_name_every_word),     cmocka_unit_test(what_is_read_is_written),
        cmocka_unit_test(defaults_are_the_table_s),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

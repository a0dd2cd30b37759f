/* Predictor files: what is written is read, nothing damaged is, and the right expert answers. */
#include <math.h>
#include <stdlib.h>

#include "predictor_files.h"

static void read_back(const small_file *f)
{
    ft_predictor p;
    ft_error err = {0};
    if (ft__predictor_read(f->bytes, f->length, "test.ftp", &p, &err) != FT_OK) fail_msg("%s", err.message);
    assert_int_equal(2, p.expert_count);
    assert_int_equal(3, p.trees.count);
    assert_memory_equal(f->experts, p.experts, sizeof f->experts);
    for (size_t t = 0; t < p.trees.count; t++) {
        ft_tree tree;
        ft__forest_tree(&p.trees, t, &tree);
        assert_memory_equal(&f->trees[t], &tree, sizeof tree);
    }
    assert_int_equal(strlen(meta), p.meta_length);
    assert_memory_equal(meta, p.meta, p.meta_length);
    assert_int_equal(FT_PREDICT_LEARNED, p.mode);
}

static void what_is_written_is_read(void **state)
{
    (void)state;
    small_file f = small();
    read_back(&f);
    void *again;
    size_t length;
    assert_int_equal(FT_OK, ft__predictor_write(f.experts, 2, f.trees, 3, meta, &again, &length, NULL));
    assert_int_equal(f.length, length);
    assert_memory_equal(f.bytes, again, length);
    free(again);
    free(f.bytes);

    ft_predictor p;
    assert_int_equal(FT_OK, ft__predictor_write(NULL, 0, NULL, 0, "", &again, &length, NULL));
    assert_int_equal(FT_OK, ft__predictor_read(again, length, "empty.ftp", &p, NULL));
    assert_int_equal(0, p.expert_count + p.trees.count + p.meta_length);
    free(again);
}

static void refused(const void *bytes, size_t length, const char *why)
{
    ft_predictor p;
    ft_error err = {0};
    assert_int_equal(FT_E_FORMAT, ft__predictor_read(bytes, length, "test.ftp", &p, &err));
    assert_string_equal("test.ftp", err.where);
    if (!strstr(err.message, why)) fail_msg("expected \"%s\" in \"%s\"", why, err.message);
}

static void other_files_are_told_apart(void **state)
{
    (void)state;
    small_file f = small();
    refused(f.bytes, 0, "0 bytes are less than its header");
    refused(f.bytes, 63, "63 bytes are less than its header");
    refused("PK\3\4 an archive, or anything else that is longer than sixty-four bytes", 70, "not a predictor file");
    f.bytes[8] = 99; /* the version, behind the magic */
    refused(f.bytes, f.length, "predictor version 99, this program reads version 2");
    free(f.bytes);
}

static void a_file_cut_anywhere_or_extended_is_refused(void **state)
{
    (void)state;
    small_file f = small();
    for (size_t length = 64; length < f.length; length++) refused(f.bytes, length, "truncated or extended");
    unsigned char *longer = calloc(1, f.length + 64);
    memcpy(longer, f.bytes, f.length);
    for (size_t extra = 1; extra <= 64; extra++) refused(longer, f.length + extra, "truncated or extended");
    free(longer);
    free(f.bytes);
}

/* Also in the header, which no checksum covers: every field there is checked against another. */
static void every_flipped_bit_is_noticed(void **state)
{
    (void)state;
    small_file f = small();
    for (size_t i = 0; i < f.length; i++)
        for (int bit = 0; bit < 8; bit++) {
            f.bytes[i] = (unsigned char)(f.bytes[i] ^ 1 << bit);
            ft_predictor p;
            if (ft__predictor_read(f.bytes, f.length, "test.ftp", &p, NULL) != FT_E_FORMAT)
                fail_msg("bit %d of byte %zu may be flipped", bit, i);
            f.bytes[i] = (unsigned char)(f.bytes[i] ^ 1 << bit);
        }
    read_back(&f);
    free(f.bytes);
}

/* Files whose checksum is right and whose contents are not: made by another program, or by malice. */
static void impossible_records_are_refused(void **state)
{
    (void)state;
    enum { CASES = 26 };
    for (int c = 0; c < CASES; c++) {
        small_file f = small();
        ft_expert *e = &f.experts[1];
        free(f.bytes);
        switch (c) {
        case 0: e->tree_count = 4; break;
        case 1: e->tree_first = 4; break;
        case 2: e->tree_first = 2, e->tree_count = 2; break;
        case 3: e->tree_first = UINT32_MAX, e->tree_count = 2; break; /* their sum overflows to 1 */
        case 4: e->tree_count = UINT32_MAX; break;
        case 5: e->sigma_count = 4; break;
        case 6: e->sigma_first = 3, e->sigma_count = 1; break;
        case 7: memset(e->family, 'x', sizeof e->family); break;
        case 8: memset(e->variant, 'x', sizeof e->variant); break;
        case 9: memset(e->gpu, 'x', sizeof e->gpu); break;
        case 10: memset(e->generation, 'x', sizeof e->generation); break;
        case 11: e->sigma_base = NAN; break;
        case 12: e->sigma_base = 1e30f; break;
        case 13: e->weight[2] = NAN; break;
        case 14: e->weight[0] = 1.5f; break;
        case 15: e->weight[1] = -0.5f; break;
        case 16: e->bias[1] = INFINITY; break;
        case 17: e->mape[0] = NAN; break;
        case 18: e->spread_low[0][0] = -1; break;
        case 19: e->spread_high[2][6] = 0.1f; break; /* 99 % of cases in less than 95 % need */
        case 20: e->spread_high[1][3] = NAN; break;
        case 21: e->theta[0] = 0; break; /* launches take time */
        case 22: e->theta[2] = 1e6; break;
        case 23: e->theta[3] = NAN; break;
        case 24: e->theta[FT_MAX_THETA - 1] = -1; break;
        case 25: e->feature_high[3] = NAN; break;
        default: fail();
        }
        write_small(&f);
        refused(f.bytes, f.length, "record 1 holds impossible figures");
        free(f.bytes);
    }
    for (int d = 0; d < FT_TREE_DEPTH; d++) {
        small_file f = small();
        free(f.bytes);
        f.trees[2].feature[d] = FT_MAX_FEATURES;
        write_small(&f);
        refused(f.bytes, f.length, "tree 2 is impossible");
        free(f.bytes);
    }
}

/* A family of a later version: nobody asks its experts, so its constants are its own affair. */
static void experts_of_unknown_families_do_no_harm(void **state)
{
    (void)state;
    small_file f = small();
    free(f.bytes);
    strcpy(f.experts[1].family, "quantum");
    f.experts[1].theta[0] = 0;
    f.experts[1].theta[5] = 1e6;
    write_small(&f);
    read_back(&f);
    free(f.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(other_files_are_told_apart),
        cmocka_unit_test(a_file_cut_anywhere_or_extended_is_refused),
        cmocka_unit_test(every_flipped_bit_is_noticed),
        cmocka_unit_test(impossible_records_are_refused),
        cmocka_unit_test(experts_of_unknown_families_do_no_harm),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}

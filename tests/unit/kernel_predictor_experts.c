/* Who answers: keys and trees, kinship from a GPU's own expert to the world's, files that are opened by name. */
#include <float.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>

#include "predictor_files.h"

/* -- keys and trees ------------------------------------------------------------------------------ */

static void keys_order_as_their_numbers_do(void **state)
{
    (void)state;
    const float ascending[] = {-INFINITY,     -FLT_MAX, -1e10f,       -3,      -2.5f,   -1, -FLT_MIN,
                               -FLT_TRUE_MIN, 0,        FLT_TRUE_MIN, FLT_MIN, 0.5f,    1,  1.0000001f,
                               2.5f,          3,        1e10f,        FLT_MAX, INFINITY};
    enum { COUNT = sizeof ascending / sizeof *ascending };
    for (int i = 0; i < COUNT; i++)
        for (int j = 0; j < COUNT; j++)
            assert_int_equal(i < j, ft__feature_key(ascending[i]) < ft__feature_key(ascending[j]));
    assert_int_equal(ft__feature_key(0.0f), ft__feature_key(-0.0f));
    random_source r = {12};
    for (int i = 0; i < 100000; i++) {
        float a = (float)(exp2(60 * random_unit(&r) - 30) * (random_bool(&r) ? 1 : -1));
        float b = random_below(&r, 4) ? (float)(exp2(60 * random_unit(&r) - 30) * (random_bool(&r) ? 1 : -1)) : a;
        assert_int_equal(a < b, ft__feature_key(a) < ft__feature_key(b));
        assert_int_equal(a > b, ft__feature_key(a) > ft__feature_key(b));
    }
    assert_true(ft__feature_key(INFINITY) < UINT32_MAX); /* the threshold that never passes */
}

/* As the definition says it, one bit after the other. */
static double naive_sum(const ft_tree *trees, size_t count, const uint32_t *key)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        int leaf = 0;
        for (int d = 0; d < FT_TREE_DEPTH; d++)
            if (key[trees[i].feature[d]] > trees[i].threshold[d]) leaf |= 1 << (FT_TREE_DEPTH - 1 - d);
        sum += ldexp((double)trees[i].leaf[leaf], trees[i].shift);
    }
    return sum * FT_LEAF_UNIT;
}

static void trees_add_up(void **state)
{
    (void)state;
    enum { TREES = 300 };
    static ft_tree trees[TREES];
    random_source r = {13};
    for (int t = 0; t < TREES; t++) trees[t] = tree(&r);
    for (int i = 0; i < 500; i++) {
        uint32_t key[FT_MAX_FEATURES];
        for (int k = 0; k < FT_MAX_FEATURES; k++) /* now and then exactly a threshold: equal does not pass */
            key[k] = random_below(&r, 3) ? ft__feature_key((float)(24 * random_unit(&r) - 12))
                                         : trees[random_below(&r, TREES)].threshold[random_below(&r, FT_TREE_DEPTH)];
        size_t count = (size_t)random_below(&r, TREES + 1);
        double expected = naive_sum(trees, count, key), got = ft__trees_sum(trees, count, key);
        if (fabs(expected - got) > 1e-9) fail_msg("%zu trees: %g, expected %g", count, got, expected);
    }
    assert_true(fabs(ft__trees_sum(trees, 0, NULL)) < 1e-15);
}

/* -- who answers --------------------------------------------------------------------------------- */

static void assert_answers(const ft_predictor *p, ft_dtype dtype, const char *gpu, const char *generation,
                           double balance, const ft_expert *who, ft_kinship how)
{
    ft_device device;
    ft_op op;
    int variant;
    ft_kinship kinship;
    memset(&device, 0, sizeof device);
    strcpy(device.name, gpu);
    strcpy(device.generation, generation);
    device.memory_gbps = 1000;
    device.peak_tflops[FT_FP16] = balance;
    assert_true(fabs(ft__device_balance(&device) - balance) < 1e-9);
    ft__op_init("gemm", &op);
    op.dtype = dtype;
    const ft_family *family = ft__family_of(&op, &variant);
    const ft_expert *e = ft__predictor_expert(p, family, variant, &device, &kinship);
    if (e != who)
        fail_msg("%s on %s: %s's %s answers", ft_dtype_name(dtype), gpu, e ? e->gpu : "nobody", e ? e->variant : "");
    if (who) assert_int_equal(how, kinship);
}

static void kinship_climbs_from_self_to_the_world(void **state)
{
    (void)state;
    ft_expert e[] = {
        expert(&ft__gemm_tensor_family, "half", "h100_sxm", "hopper", 500),
        expert(&ft__gemm_tensor_family, "half", "*", "", 9999),
        expert(&ft__gemm_tensor_family, "half", "h200_sxm", "hopper", 300),
        expert(&ft__gemm_tensor_family, "half", "h20", "hopper", 800),
        expert(&ft__gemm_tensor_family, "half", "b200_sxm", "blackwell", 700),
        expert(&ft__gemm_tensor_family, "fp8", "b200_sxm", "blackwell", 600),
        expert(&ft__gemm_vector_family, "fp32", "v100_pcie_32gb", "volta", 400),
        expert(&ft__gemm_tensor_family, "half", "h800", "hopper", 10000),
    };
    e[0].balance = 295, e[2].balance = 206, e[3].balance = 37;
    strcpy(e[7].family, "~gemm_tensor"); /* the linear baseline's record never answers for the family */
    ft_predictor p = {.experts = e, .expert_count = sizeof e / sizeof *e};
    ft__predictor_index(&p);
    assert_answers(&p, FT_BF16, "h100_sxm", "hopper", 295, &e[0], FT_KIN_SELF);
    assert_answers(&p, FT_FP16, "h200_sxm", "hopper", 206, &e[2], FT_KIN_SELF);
    assert_answers(&p, FT_FP16, "h200_sxm", "", 1, &e[2], FT_KIN_SELF); /* the name alone says who it is */
    /* Of three siblings the one whose arithmetic and bandwidth stand most alike, however many rows the others have. */
    assert_answers(&p, FT_BF16, "h800", "hopper", 290, &e[0], FT_KIN_SIBLING);
    assert_answers(&p, FT_BF16, "gh200", "hopper", 210, &e[2], FT_KIN_SIBLING);
    assert_answers(&p, FT_BF16, "h20_cut", "hopper", 40, &e[3], FT_KIN_SIBLING);
    e[2].balance = 295; /* equally alike: the one with most rows */
    assert_answers(&p, FT_BF16, "h800", "hopper", 290, &e[0], FT_KIN_SIBLING);
    e[2].rows = 501;
    assert_answers(&p, FT_BF16, "h800", "hopper", 290, &e[2], FT_KIN_SIBLING);
    assert_answers(&p, FT_BF16, "mi300x", "cdna3", 247, &e[1], FT_KIN_WORLD);
    assert_answers(&p, FT_BF16, "nobodys", "", 100, &e[1], FT_KIN_WORLD);
    /* fp8 is known on B200 alone: its sibling takes it; others fall back to half precision, never closer than kin. */
    assert_answers(&p, FT_FP8, "b200_sxm", "blackwell", 281, &e[5], FT_KIN_SELF);
    assert_answers(&p, FT_FP8, "gb200", "blackwell", 281, &e[5], FT_KIN_SIBLING);
    assert_answers(&p, FT_FP8, "h20", "hopper", 37, &e[3], FT_KIN_SIBLING);
    assert_answers(&p, FT_FP4, "b200_sxm", "blackwell", 281, &e[5], FT_KIN_SIBLING);
    assert_answers(&p, FT_FP8, "l4", "ada", 400, &e[1], FT_KIN_WORLD);
    assert_answers(&p, FT_FP32, "v100_pcie_32gb", "volta", 124, &e[6], FT_KIN_SELF);
    assert_answers(&p, FT_FP64, "v100_pcie_32gb", "volta", 124, &e[6], FT_KIN_SIBLING);
    assert_answers(&p, FT_FP32, "t4", "turing", 200, NULL, FT_KIN_WORLD); /* no world for fp32 in this one */
}

static void outside_of_its_rows_an_expert_is_less_sure(void **state)
{
    (void)state;
    ft_expert e = expert(&ft__gemm_tensor_family, "half", "h200_sxm", "hopper", 100);
    float x[3] = {5, 0.5f, 1};
    e.feature_low[0] = 0, e.feature_high[0] = 10;
    e.feature_low[1] = 0, e.feature_high[1] = 1;
    e.feature_low[2] = e.feature_high[2] = 1;
    assert_true(fabs(ft__expert_stretch(&e, x, 3)) < 1e-12);
    x[0] = 10, x[1] = 0;
    assert_true(fabs(ft__expert_stretch(&e, x, 3)) < 1e-12);
    x[0] = 12;
    assert_true(fabs(ft__expert_stretch(&e, x, 3) - 0.2) < 1e-6);
    x[0] = -3;
    assert_true(fabs(ft__expert_stretch(&e, x, 3) - 0.3) < 1e-6);
    x[0] = 1000; /* no feature counts more than its width */
    assert_true(fabs(ft__expert_stretch(&e, x, 3) - 1) < 1e-6);
    x[2] = 0;
    assert_true(fabs(ft__expert_stretch(&e, x, 3) - 1.25) < 1e-6);
}

/* -- opening ------------------------------------------------------------------------------------- */

static ft_status write_once(void *context)
{
    small_file *f = context;
    void *bytes;
    size_t length;
    ft_status s = ft__predictor_write(f->experts, 2, f->trees, 3, meta, &bytes, &length, NULL);
    if (s == FT_OK) free(bytes);
    return s;
}

static ft_status open_once(void *which)
{
    ft_predictor *p;
    ft_status s = ft__predictor_open(which, &p, NULL);
    if (s == FT_OK) ft__predictor_close(p);
    return s;
}

static ft_status forecast_once(void *path)
{
    ft_predictor *p;
    ft_device h200;
    ft_forecast f;
    ft_op op;
    ft_status s = ft__predictor_open(path, &p, NULL);
    if (s != FT_OK) return s;
    ft__op_init("gemm", &op);
    op.u.gemm.m = op.u.gemm.n = op.u.gemm.k = 4096;
    s = ft__catalogue_find("h200_sxm", &h200, NULL);
    if (s == FT_OK) s = ft__kernel_forecast(p, &h200, &op, 0.9, &f, NULL);
    ft__predictor_close(p);
    return s;
}

static void running_out_of_memory_is_said(void **state)
{
    (void)state;
    small_file f = small();
    static char path[1024];
    strcpy(path, scratch_file("small.ftp", f.bytes, f.length));
    assert_int_equal(7, failing_alloc_sweep(write_once, &f));
    assert_true(failing_alloc_sweep(open_once, path) >= 1);
    assert_true(failing_alloc_sweep(open_once, NULL) >= 1);
    assert_true(failing_alloc_sweep(forecast_once, path) >= 1);
    free(f.bytes);
}

static void files_are_opened_and_damage_is_said_with_their_name(void **state)
{
    (void)state;
    small_file f = small();
    ft_predictor *p;
    ft_error err = {0};
    char path[1024];
    strcpy(path, scratch_file("small.ftp", f.bytes, f.length));
    assert_int_equal(FT_OK, ft__predictor_open(path, &p, &err));
    assert_int_equal(2, p->expert_count);
    assert_memory_equal(f.experts, p->experts, sizeof f.experts);
    ft__predictor_close(p);
    f.bytes[f.length - 1] ^= 1;
    strcpy(path, scratch_file("flipped.ftp", f.bytes, f.length));
    assert_int_equal(FT_E_FORMAT, ft__predictor_open(path, &p, &err));
    assert_string_equal("checksum mismatch: the file is damaged", err.message);
    assert_string_equal(path, err.where);
    assert_int_equal(FT_E_FORMAT, ft__predictor_open(scratch_file("nothing.ftp", "", 0), &p, &err));
    assert_int_equal(FT_E_FILE, ft__predictor_open(scratch_path("absent.ftp"), &p, &err));
    assert_int_equal(FT_E_FILE, ft__predictor_open(scratch_path(""), &p, &err)); /* a folder */
    free(f.bytes);
}

/* Opening it skips the checks that would touch all its pages; here they are made. */
static void the_one_compiled_in_is_sound(void **state)
{
    (void)state;
    ft_predictor p;
    ft_error err = {0};
    size_t length = (size_t)(ft__default_predictor_end - ft__default_predictor);
    if (ft__predictor_read(ft__default_predictor, length, "built-in", &p, &err) != FT_OK) fail_msg("%s", err.message);
    for (size_t i = 0; i < p.expert_count; i++) {
        const ft_expert *e = &p.experts[i];
        int at = ft__family_find(e->family[0] == '~' ? e->family + 1 : e->family), variant = -1;
        assert_true(at >= 0);
        /* The row operators' table is as long as their list; its variant_count is only the most there could be. */
        int variants = ft__families[at] == &ft__row_family ? 2 * ft__row_op_count : ft__families[at]->variant_count;
        for (int v = 0; v < variants; v++)
            if (!strcmp(ft__families[at]->variant_name(v), e->variant)) variant = v;
        if (variant < 0) fail_msg("%s has no variant %s", e->family, e->variant);
        if (e->gpu[0] == '*') continue;
        ft_device device;
        assert_int_equal(FT_OK, ft__catalogue_find(e->gpu, &device, NULL));
        assert_string_equal(device.generation, e->generation);
    }
    json_error_t where;
    json_t *meta_read = json_loadb(p.meta, p.meta_length, 0, &where);
    if (!meta_read) fail_msg("line %d: %s", where.line, where.text);
    assert_true(json_array_size(json_object_get(meta_read, "errors")) > 0);
    json_decref(meta_read);
}

static void baselines_are_opened_by_name(void **state)
{
    (void)state;
    ft_predictor *p;
    ft_error err = {0};
    static const struct {
        const char *name;
        int mode;
    } modes[] = {{NULL, FT_PREDICT_LEARNED},
                 {"roofline", FT_PREDICT_ROOFLINE},
                 {"linear", FT_PREDICT_LINEAR},
                 {"scaling:v100_pcie_32gb", FT_PREDICT_SCALING}};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        if (ft__predictor_open(modes[i].name, &p, &err) != FT_OK) fail_msg("%s", err.message);
        assert_int_equal(modes[i].mode, p->mode);
        if (p->mode == FT_PREDICT_SCALING) assert_string_equal("v100_pcie_32gb", p->scaling_from);
        assert_true(p->expert_count > 50 && p->trees.count > 1000);
        ft__predictor_close(p);
    }
    char name[128] = "scaling:";
    assert_int_equal(FT_E_NAME, ft__predictor_open(name, &p, &err));
    memset(name + 8, 'x', 100);
    name[108] = 0;
    assert_int_equal(FT_E_NAME, ft__predictor_open(name, &p, &err));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_order_as_their_numbers_do),
        cmocka_unit_test(trees_add_up),
        cmocka_unit_test(kinship_climbs_from_self_to_the_world),
        cmocka_unit_test(outside_of_its_rows_an_expert_is_less_sure),
        cmocka_unit_test(running_out_of_memory_is_said),
        cmocka_unit_test(files_are_opened_and_damage_is_said_with_their_name),
        cmocka_unit_test(the_one_compiled_in_is_sound),
        cmocka_unit_test(baselines_are_opened_by_name),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}

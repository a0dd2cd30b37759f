/* Versions of NCCL: how they are written, and what they change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "comm/collective.h"
#include "comm/nccl.h"
#include "device/gpu.h"

static void versions_are_read_as_people_write_them(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int version; /* 0: none */
    } cases[] = {{"2.23", 223}, {"2.27.3", 227}, {"v2.29.2-1", 229}, {"2.4", 204},   {"", 0},     {"2", 0},
                 {"2.", 0},     {".27", 0},      {"2.123", 0},       {"22.1", 0},    {"-2.3", 0}, {"0.9", 0},
                 {"new", 0},    {"2.27x", 0},    {"2,27", 0},        {"2.27 rc", 0}, {"v", 0},    {"99999999999.1", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int version = 0;
        assert_int_equal(cases[i].version != 0, ft__nccl_parse(cases[i].text, &version));
        assert_int_equal(cases[i].version, version);
    }
}

static ft_status read(const char *text, ft_cluster *out, ft_error *err)
{
    ft_device d;
    assert_int_equal(FT_OK, ft__catalogue_find("h100_sxm", &d, NULL));
    json_t *object = text ? json_loads(text, 0, NULL) : NULL;
    ft_status s = ft__cluster_read(object, &d, 8, out, err);
    json_decref(object);
    return s;
}

static void a_cluster_says_its_version(void **state)
{
    (void)state;
    ft_cluster c;
    ft_error err;
    assert_int_equal(FT_OK, read(NULL, &c, &err));
    assert_int_equal(0, c.tier[0].nccl);
    assert_null(strstr(c.understood, "NCCL"));
    assert_int_equal(FT_OK, read("{\"nccl\": \"2.23.4\"}", &c, &err));
    assert_int_equal(223, c.tier[0].nccl);
    assert_non_null(strstr(c.understood, "; NCCL 2.23"));
    assert_int_equal(FT_E_RANGE, read("{\"nccl\": \"latest\"}", &c, &err));
    assert_non_null(strstr(err.message, "2.27"));
    assert_int_equal(FT_E_TYPE, read("{\"nccl\": 2.23}", &c, &err));
}

static ft_predictor *built_in;
static int open_predictor(void **state)
{
    (void)state;
    return ft__predictor_open(NULL, &built_in, NULL) == FT_OK ? 0 : -1;
}
static int close_predictor(void **state)
{
    (void)state;
    ft__predictor_close(built_in);
    return 0;
}

static ft_comm ask(const char *cluster, ft_collective op, double bytes, int narrow)
{
    ft_device d;
    ft_cluster c;
    ft_comm out;
    ft_group g = {.size = 8, .stride = 1, .narrow = narrow};
    assert_int_equal(FT_OK, ft__catalogue_find("h100_sxm", &d, NULL));
    assert_int_equal(FT_OK, read(cluster, &c, NULL));
    assert_int_equal(FT_OK, ft__collective_forecast(built_in, &d, &c, op, bytes, &g, 0.9, &out, NULL));
    return out;
}

/* nccl-tests on 8 H100, 64 MiB of int8 and of fp16: 371 and 323 us with 2.27. */
static void single_bytes_are_not_added_in_the_switch(void **state)
{
    (void)state;
    ft_comm wide = ask("{\"nccl\": \"2.27\"}", FT_COLLECTIVE_ALL_REDUCE, 67108864, 0);
    ft_comm narrow = ask("{\"nccl\": \"2.27\"}", FT_COLLECTIVE_ALL_REDUCE, 67108864, 1);
    assert_string_equal("nvls", wide.algorithm);
    assert_string_equal("ring", narrow.algorithm);
    assert_true(narrow.ms > 1.08 * wide.ms && narrow.ms < 1.25 * wide.ms);
    /* Nothing is added in a gather. */
    assert_float_equal(ask(NULL, FT_COLLECTIVE_ALL_GATHER, 1e6, 0).ms, ask(NULL, FT_COLLECTIVE_ALL_GATHER, 1e6, 1).ms,
                       1e-9);
}

/* 8 KiB gathered by 8 H100: 11.3 us with 2.23, 10.7 with 2.27. */
static void old_versions_start_later(void **state)
{
    (void)state;
    double before = ask("{\"nccl\": \"2.23\"}", FT_COLLECTIVE_ALL_GATHER, 8192, 0).ms;
    double since = ask("{\"nccl\": \"2.29\"}", FT_COLLECTIVE_ALL_GATHER, 8192, 0).ms;
    assert_true(before > 1.03 * since && before < 1.4 * since);
}

static void what_is_not_said_is_inside_the_interval(void **state)
{
    (void)state;
    for (double bytes = 1024; bytes < 1e9; bytes *= 8) {
        ft_comm open = ask(NULL, FT_COLLECTIVE_ALL_REDUCE, bytes, -1),
                narrow = ask("{\"nccl\": \"2.27\"}", FT_COLLECTIVE_ALL_REDUCE, bytes, 1);
        ft_comm said = ask("{\"nccl\": \"2.27\"}", FT_COLLECTIVE_ALL_REDUCE, bytes, 0);
        assert_float_equal(said.ms, open.ms, 1e-9);
        assert_true(open.low_ms <= narrow.ms && narrow.ms <= open.high_ms);
        assert_true(open.low_ms <= said.low_ms && said.high_ms <= open.high_ms);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(versions_are_read_as_people_write_them),   cmocka_unit_test(a_cluster_says_its_version),
        cmocka_unit_test(single_bytes_are_not_added_in_the_switch), cmocka_unit_test(old_versions_start_later),
        cmocka_unit_test(what_is_not_said_is_inside_the_interval),
    };
    return cmocka_run_group_tests(tests, open_predictor, close_predictor);
}

/* The typed door: what structs hold is checked as JSON's keys are, and programs older or newer than the library keep
 * working. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "foretell.h"

static ft_context *ft;
static ft_device h100;

static int open_context(void **state)
{
    (void)state;
    if (ft_open(&ft, NULL, NULL) != FT_OK) return -1;
    return ft_device_find(ft, "h100_sxm", &h100, NULL) == FT_OK ? 0 : -1;
}

static int close_context(void **state)
{
    (void)state;
    ft_close(ft);
    return 0;
}

static ft_op square(void)
{
    ft_op op;
    ft_op_init(&op, "gemm");
    op.u.gemm.m = op.u.gemm.n = op.u.gemm.k = 4096;
    return op;
}

static void an_operator_without_a_name_is_known_by_its_kind(void **state)
{
    (void)state;
    ft_op op = square();
    ft_forecast named, unnamed;
    ft_error err = {0};
    assert_int_equal(FT_OK, ft_kernel(ft, &h100, &op, &named, &err));
    op.name = NULL;
    assert_int_equal(FT_OK, ft_kernel(ft, &h100, &op, &unnamed, &err));
    assert_true(named.ms == unnamed.ms);
    ft_op_init(&op, "gelu");
    op.u.elementwise.numel = 1 << 20;
    op.name = NULL;
    assert_int_equal(FT_E_MISSING, ft_kernel(ft, &h100, &op, &named, &err));
    assert_string_equal("name", err.where);
}

static void members_that_select_something_are_in_their_lists(void **state)
{
    (void)state;
    ft_error err = {0};
    ft_forecast f;
    for (int i = 0; i < 6; i++) {
        static const char *const members[] = {"kind", "dtype", "kv_dtype", "pass", "timing", "engine"};
        static const int wrong[] = {77, -1, 1 << 30};
        for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
            ft_op op = square();
            unsigned char *at = i == 0   ? (unsigned char *)&op.kind
                                : i == 1 ? (unsigned char *)&op.dtype
                                : i == 2 ? (unsigned char *)&op.kv_dtype
                                : i == 3 ? (unsigned char *)&op.pass
                                : i == 4 ? (unsigned char *)&op.timing
                                         : (unsigned char *)&op.engine;
            memcpy(at, &wrong[k], sizeof wrong[k]);
            assert_int_equal(FT_E_RANGE, ft_kernel(ft, &h100, &op, &f, &err));
            assert_string_equal(members[i], err.where);
            assert_int_equal(FT_E_RANGE, ft_op_check(&op, &h100, NULL));
        }
    }
    assert_int_equal(FT_E_USAGE, ft_kernel(ft, &h100, NULL, &f, &err));
    assert_int_equal(FT_E_USAGE, ft_kernel(ft, NULL, &(ft_op){0}, &f, &err));
    assert_int_equal(FT_E_MISSING, ft_device_find(ft, NULL, &h100, &err));
}

static void a_device_that_cannot_be_is_refused(void **state)
{
    (void)state;
    ft_op op = square();
    ft_forecast f;
    ft_error err = {0};
    ft_device d = {0};
    assert_int_equal(FT_E_SPEC, ft_kernel(ft, &d, &op, &f, &err));
    d = h100;
    d.memory_gbps = NAN;
    assert_int_equal(FT_E_SPEC, ft_kernel(ft, &d, &op, &f, &err));
    assert_string_equal("memory_gbps", err.where);
    d = h100;
    d.sms = -3;
    assert_int_equal(FT_E_SPEC, ft_kernel(ft, &d, &op, &f, &err));
    d = h100;
    memset(d.generation, 'x', sizeof d.generation);
    assert_int_equal(FT_E_SPEC, ft_kernel(ft, &d, &op, &f, &err));
    assert_string_equal("generation", err.where);
}

static void a_spec_may_come_as_json(void **state)
{
    (void)state;
    static const char spec[] = "{\"base\":\"h100_sxm\",\"name\":\"mine\",\"memory_gib\":96}";
    ft_device d;
    ft_error err = {0};
    assert_int_equal(FT_OK, ft_device_read(ft, spec, strlen(spec), &d, &err));
    assert_string_equal("mine", d.name);
    assert_true(d.memory_gib == 96 && d.sms == h100.sms);
    assert_int_equal(FT_E_SYNTAX, ft_device_read(ft, spec, 9, &d, &err));
    assert_int_equal(FT_E_SYNTAX, ft_device_read(ft, NULL, 9, &d, &err));
}

/* A program made when structs were shorter hands over less and gets less; one made for longer ones is refused only if
 * it uses what this library does not know. */
static void structs_may_grow(void **state)
{
    (void)state;
    ft_op op = square();
    ft_forecast f, whole;
    ft_error err = {0};
    memset(&f, 0x5a, sizeof f);
    size_t old = offsetof(ft_forecast, note);
    assert_int_equal(FT_OK, ft_kernel(ft, &h100, &op, &whole, &err));
    assert_int_equal(FT_OK, ft_kernel_sized(ft, &h100, sizeof h100, &op, sizeof op, &f, old, &err));
    assert_true(f.ms == whole.ms);
    assert_int_equal(0x5a, f.note[0]);
    struct {
        ft_op op;
        long more;
    } newer = {op, 0};
    assert_int_equal(FT_OK, ft_kernel_sized(ft, &h100, sizeof h100, &newer.op, sizeof newer, &f, sizeof f, &err));
    newer.more = 1;
    assert_int_equal(FT_E_UNSUPPORTED,
                     ft_kernel_sized(ft, &h100, sizeof h100, &newer.op, sizeof newer, &f, sizeof f, &err));
    struct {
        ft_forecast f;
        long more;
    } longer = {.more = 7};
    assert_int_equal(FT_OK, ft_kernel_sized(ft, &h100, sizeof h100, &op, sizeof op, &longer.f, sizeof longer, &err));
    assert_int_equal(0, longer.more);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_operator_without_a_name_is_known_by_its_kind),
        cmocka_unit_test(members_that_select_something_are_in_their_lists),
        cmocka_unit_test(a_device_that_cannot_be_is_refused),
        cmocka_unit_test(a_spec_may_come_as_json),
        cmocka_unit_test(structs_may_grow),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}

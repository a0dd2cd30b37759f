/* A device's sum tells devices apart by every field and by nothing else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "device/gpu.h"
#include "every_field.h"

static ft_device catalogue(const char *name)
{
    ft_device device;
    assert_int_equal(FT_OK, ft__catalogue_find(name, &device, NULL));
    return device;
}

static void another_value_of_any_field_gives_another_sum(void **state)
{
    (void)state;
    const ft_device b200 = catalogue("b200_sxm");
    uint64_t seen[EVERY_FIELD];
    for (int i = 0; i < EVERY_FIELD; i++) {
        ft_device other = b200;
        change_field(&other, i);
        seen[i] = ft__device_hash(&other);
        if (seen[i] == ft__device_hash(&b200)) fail_msg("the sum does not look at %s", field_name(i));
        for (int j = 0; j < i; j++)
            if (seen[i] == seen[j]) fail_msg("%s and %s have one sum", field_name(i), field_name(j));
    }
}

static void each_rate_counts(void **state)
{
    (void)state;
    const ft_device b200 = catalogue("b200_sxm");
    for (int d = 0; d < FT_DTYPE_COUNT; d++) {
        ft_device peak = b200, vector = b200;
        peak.peak_tflops[d] += 1;
        vector.vector_tflops[d] += 1;
        assert_true(ft__device_hash(&peak) != ft__device_hash(&b200));
        assert_true(ft__device_hash(&vector) != ft__device_hash(&b200));
        assert_true(ft__device_hash(&vector) != ft__device_hash(&peak));
    }
}

/* Fields are set one by one into memory full of `fill`, as a caller of the C interface may. */
static void copy_into(ft_device *to, const ft_device *from, int fill)
{
    memset(to, fill, sizeof *to);
#define TEXT(field) memcpy(to->field, from->field, strlen(from->field) + 1);
#define VALUE(field) to->field = from->field;
#define RATES(field) memcpy(to->field, from->field, sizeof to->field);
    FT_DEVICE_FIELDS(TEXT, VALUE, VALUE, RATES)
#undef TEXT
#undef VALUE
#undef RATES
}

static void what_lies_between_and_behind_does_not_count(void **state)
{
    (void)state;
    ft_device a, b, h100 = catalogue("h100_sxm");
    copy_into(&a, &h100, 0x00);
    copy_into(&b, &h100, 0xab);
    assert_memory_not_equal(&a, &b, sizeof a);
    assert_true(ft__device_hash(&a) == ft__device_hash(&h100));
    assert_true(ft__device_hash(&b) == ft__device_hash(&h100));
}

static void a_text_without_an_end_is_read_to_its_room(void **state)
{
    (void)state;
    ft_device a = catalogue("h100_sxm");
    memset(a.name, 'x', sizeof a.name);
    assert_true(ft__device_hash(&a) != 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_value_of_any_field_gives_another_sum),
        cmocka_unit_test(each_rate_counts),
        cmocka_unit_test(what_lies_between_and_behind_does_not_count),
        cmocka_unit_test(a_text_without_an_end_is_read_to_its_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

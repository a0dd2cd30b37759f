/* Layers of one model by kinds: what differs in any field is another kind, what differs in none is the same one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "model/plan.h"

static int32_t kinds_of(const ft_layer_shape *first, const ft_layer_shape *second)
{
    static ft_arch a;
    ft_layer_shape layers[2];
    memcpy(&layers[0], first, sizeof *first); /* with the bytes between the fields */
    memcpy(&layers[1], second, sizeof *second);
    memset(&a, 0, sizeof a);
    a.layers = 2;
    assert_true(ft__plan(&a, layers));
    assert_int_equal(a.order[0], 0);
    assert_int_equal(a.order[1], a.kind_count - 1);
    return a.kind_count;
}

static void every_field_makes_another_kind(void **state)
{
    (void)state;
    const ft_layer_shape plain = {0};
    ft_layer_shape other;
    assert_int_equal(kinds_of(&plain, &plain), 1);
#define DIFFERS(name, what) \
    other = plain;          \
    other.name = 1;         \
    assert_int_equal(kinds_of(&plain, &other), 2);
    DIFFERS(mixer, "")
    DIFFERS(feed, "")
    FT_LAYER_SIZES(DIFFERS)
    FT_LAYER_FLAGS(DIFFERS)
#undef DIFFERS
}

static void bytes_between_fields_make_none(void **state)
{
    (void)state;
    ft_layer_shape clean, dirty;
    memset(&clean, 0, sizeof clean);
    memset(&dirty, 0xa5, sizeof dirty);
    dirty.mixer = clean.mixer;
    dirty.feed = clean.feed;
#define TAKEN(name, what) dirty.name = clean.name;
    FT_LAYER_SIZES(TAKEN)
    FT_LAYER_FLAGS(TAKEN)
#undef TAKEN
    assert_true(memcmp(&clean, &dirty, sizeof clean) != 0);
    assert_int_equal(kinds_of(&clean, &dirty), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_field_makes_another_kind),
                                       cmocka_unit_test(bytes_between_fields_make_none)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

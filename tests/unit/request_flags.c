/* Every key of a request is a flag of `foretell kernel`, and every such flag is a key. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "graph/operator.h"
#include "request/keys.h"
#include "request/request.h"

static void every_key_has_its_flag(void **state)
{
    (void)state;
    for (int kind = 0; kind < FT_OP_KIND_COUNT; kind++) {
        size_t count;
        const ft_field *fields = ft__request_fields((ft_op_kind)kind, &count);
        if (kind == FT_OP_COLLECTIVE) continue; /* a task of its own */
        assert_true(count > 0);
        for (size_t i = 0; i < count; i++) {
            ft_key_id id = ft__key_find(FT_SECTION_OPERATOR, fields[i].key);
            if (id == FT_KEY_COUNT || !ft__keys[id].flag)
                fail_msg("\"%s\" has no flag in request/keys_kernel.h", fields[i].key);
        }
    }
}

static void every_flag_has_its_key(void **state)
{
    (void)state;
    for (int k = 0; k < FT_KEY_COUNT; k++) {
        if (ft__keys[k].section != FT_SECTION_OPERATOR) continue;
        bool found = false;
        for (int kind = 0; kind < FT_OP_KIND_COUNT; kind++) {
            size_t count;
            const ft_field *fields = ft__request_fields((ft_op_kind)kind, &count);
            for (size_t i = 0; i < count; i++) found = found || !strcmp(ft__keys[k].key, fields[i].key);
        }
        if (!found) fail_msg("--%s is no key of any operator", ft__keys[k].flag);
    }
}

/* What `help kernel` and completion list is what the reader takes as more than a heap of bytes. */
static void every_listed_operator_is_known(void **state)
{
    (void)state;
    size_t count;
    const char *const *names = ft__request_op_names(&count);
    for (size_t i = 0; i < count; i++) {
        ft_op op;
        ft__op_init(names[i], &op);
        if (op.kind == FT_OP_OTHER) fail_msg("\"%s\" is listed and unknown", names[i]);
    }
    for (int i = 0; i < ft__row_op_count; i++) {
        bool listed = false;
        for (size_t k = 0; k < count; k++) listed = listed || !strcmp(names[k], ft__row_ops[i].name);
        if (!listed) fail_msg("\"%s\" is known and not listed", ft__row_ops[i].name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_key_has_its_flag),
        cmocka_unit_test(every_flag_has_its_key),
        cmocka_unit_test(every_listed_operator_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

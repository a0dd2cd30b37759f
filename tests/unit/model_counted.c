/* Graphs as the catalogue stores them: values without names, which are given back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "import/graphfile/graphfile.h"

static json_t *read(const char *text)
{
    char quoted[2048];
    json_t *file = NULL;
    assert_true(strlen(text) < sizeof quoted);
    strcpy(quoted, text);
    for (char *c = quoted; *c; c++)
        if (*c == '\'') *c = '"';
    assert_int_equal(FT_OK, ft__json_parse(quoted, strlen(quoted), "", &file, NULL));
    return file;
}

static void assert_spelled(const char *stored, const char *meant)
{
    json_t *got = read(stored), *wanted = read(meant);
    assert_int_equal(FT_OK, ft__graphfile_spell(got, NULL));
    char *said = json_dumps(got, JSON_SORT_KEYS);
    if (!json_equal(got, wanted)) fail_msg("%s: %s", stored, said);
    free(said);
    json_decref(got);
    json_decref(wanted);
}

/* What is left out, distances, and what has its name. */
static void values_get_names_by_their_distance(void **state)
{
    (void)state;
    assert_spelled("{'blocks':[{'out':1,'nodes':[{'op':'relu','in':'x'},{'op':'linear','features':4},"
                   "{'op':'add','in':[2,1]}]},{'in':1,'out':1,'nodes':[{'op':'mul','in':['w',3]}]}]}",
                   "{'blocks':[{'out':'_2','nodes':[{'op':'relu','in':'x','out':'_0'},"
                   "{'op':'linear','features':4,'in':'_0','out':'_1'},{'op':'add','in':['_0','_1'],'out':'_2'}]},"
                   "{'in':'_2','out':'_3','nodes':[{'op':'mul','in':['w','_0'],'out':'_3'}]}]}");
}

/* A parameter takes no operand; a split makes several values, one of which may be known; a cast makes one anew. */
static void several_results_and_none(void **state)
{
    (void)state;
    assert_spelled(
        "{'blocks':[{'out':3,'nodes':[{'op':'parameter','in':0,'out':'w'},{'op':'split','in':'x','out':[0,0]},"
        "{'op':'split','out':[0,2]},{'op':'cast','like':2,'out':3},{'op':'sync','in':0,'out':[]}]}]}",
        "{'blocks':[{'out':'_0','nodes':[{'op':'parameter','out':'w'},"
        "{'op':'split','in':'x','out':['_0','_1']},{'op':'split','in':'_1','out':['_2','_0']},"
        "{'op':'cast','in':'_2','like':'_1','out':'_0'},{'op':'sync','out':[]}]}]}");
}

static void a_value_that_was_not_made_is_refused(void **state)
{
    static const char *const stored[] = {"{'blocks':[{'out':1,'nodes':[{'op':'relu'}]}]}",
                                         "{'blocks':[{'out':2,'nodes':[{'op':'relu','in':'x'}]}]}",
                                         "{'blocks':[{'out':1,'nodes':[{'op':'add','in':['x',1]}]}]}",
                                         "{'blocks':[{'out':1,'nodes':[{'op':'relu','in':'x','out':1}]}]}"};
    (void)state;
    for (size_t i = 0; i < sizeof stored / sizeof *stored; i++) {
        json_t *file = read(stored[i]);
        assert_int_not_equal(FT_OK, ft__graphfile_spell(file, NULL));
        json_decref(file);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(values_get_names_by_their_distance),
                                       cmocka_unit_test(several_results_and_none),
                                       cmocka_unit_test(a_value_that_was_not_made_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Which sizes a graph file fixes: what a request without sizes means, what it may say, what the rates count. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/json.h"
#include "import/config/config.h"
#include "import/graphfile/graphfile.h"

#define HEAD(more, inputs) "{'foretell_graph':1," more "'inputs':{" inputs "},'blocks':[{'name':'b','out':'y','nodes':["
#define TAIL "]}]}"
#define RELU "{'op':'relu','in':'x','out':'y'}"

static ft_arch arch_of(const char *text, ft_status expected)
{
    char quoted[2048];
    json_t *file = NULL;
    ft_arch arch = {0};
    ft_error err = {0};
    assert_true(strlen(text) < sizeof quoted);
    strcpy(quoted, text);
    for (char *c = quoted; *c; c++)
        if (*c == '\'') *c = '"';
    if (ft__json_parse(quoted, strlen(quoted), "", &file, &err) != FT_OK) fail_msg("%s: %s", err.message, quoted);
    ft_status status = ft__config_read(file, NULL, "model", &arch, &err);
    if (status != expected) fail_msg("%d, not %d: %s: %s", status, expected, err.message, text);
    ft__arch_release(&arch);
    json_decref(file);
    return arch;
}

static void assert_sizes(const char *text, int64_t batch, int64_t seq, bool samples)
{
    ft_arch a = arch_of(text, FT_OK);
    if (a.fixed_batch != batch || a.fixed_seq != seq || a.samples != samples)
        fail_msg("batch %lld, seq %lld, %s of %s", (long long)a.fixed_batch, (long long)a.fixed_seq,
                 a.samples ? "samples" : "tokens", text);
}

static void numbers_are_fixed(void **state)
{
    (void)state;
    assert_sizes(HEAD("", "'x':{'shape':[32,3,224,224]}") RELU TAIL, 32, 0, true);
    assert_sizes(HEAD("", "'x':{'shape':[8,2048],'dtype':'int64'}") RELU TAIL, 8, 2048, false);
    assert_sizes(HEAD("", "'x':{'shape':[8,2048]}") RELU TAIL, 8, 0, true); /* features, not tokens */
    assert_sizes(HEAD("", "'x':{'shape':[8,64]},'t':{'shape':[8,77],'dtype':'int32'}") RELU TAIL, 8, 77, false);
    assert_sizes(HEAD("", "") "{'op':'zeros','shape':[4,4],'out':'y'}" TAIL, 1, 0, true);
}

static void words_follow_the_request(void **state)
{
    (void)state;
    assert_sizes(HEAD("", "'x':{'shape':['batch','seq'],'dtype':'int64'}") RELU TAIL, 0, 0, false);
    assert_sizes(HEAD("", "'x':{'shape':['batch',3,32,32]}") RELU TAIL, 0, 0, true);
    assert_sizes(HEAD("", "'x':{'shape':['batch',77],'dtype':'int64'}") RELU TAIL, 0, 77, false);
    /* inside formulas, and where no input has them */
    assert_sizes(HEAD("", "'x':{'shape':['2*batch',64]}") RELU TAIL, 0, 0, true);
    assert_sizes(HEAD("", "") "{'op':'zeros','shape':['seq/2+batch',4],'out':'y'}" TAIL, 0, 0, false);
    assert_sizes(HEAD("", "'x':{'shape':[4,64]}") "{'op':'linear','in':'x','features':'seq','out':'y'}" TAIL, 4, 0,
                 false);
    /* a tensor called batch is not a size */
    assert_sizes(HEAD("", "'batch':{'shape':[16,64]}") "{'op':'relu','name':'seq','in':'batch','out':'y'}" TAIL, 16, 0,
                 true);
}

static void the_file_knows_its_sizes(void **state)
{
    (void)state;
    /* the batch need not be the first axis */
    assert_sizes(HEAD("'batch':8,'seq':128,", "'x':{'shape':[128,8,64]}") RELU TAIL, 8, 128, false);
    ft_arch a = arch_of(HEAD("'batch':8,'seq':128,", "'x':{'shape':['batch','seq'],'dtype':'int64'}") RELU TAIL, FT_OK);
    assert_int_equal(a.fixed_batch, 0); /* any will do; these are meant where none is said */
    assert_int_equal(a.fixed_seq, 0);
    assert_int_equal(a.usual_batch, 8);
    assert_int_equal(a.usual_seq, 128);
    arch_of(HEAD("'batch':0,", "'x':{'shape':[8,64]}") RELU TAIL, FT_E_RANGE);
    arch_of(HEAD("'seq':'long',", "'x':{'shape':[8,64]}") RELU TAIL, FT_E_TYPE);
}

static void other_sizes_cannot_be_had(void **state)
{
    (void)state;
    ft_arch arch = {.design = FT_CUSTOM, .fixed_batch = 8};
    ft_graph *g = NULL;
    ft_error err = {0};
    ft_workload work = {.task = FT_TRAIN, .dtype = FT_BF16, .batch = 9, .seq = 128, .accumulate = 1};
    ft_arena *arena = ft__arena_new(0);
    assert_non_null(arena);
    assert_int_equal(ft__model_graph(&arch, &work, arena, &g, &err), FT_E_RANGE);
    ft__arena_free(arena);
    assert_string_equal(err.message, "the file fixes its sizes: batch 9 and seq 128 are not possible with it");
}

#define VIDEO(tokens) HEAD("'tokens':" tokens ",", "'x':{'shape':['batch','seq',64]}") RELU TAIL

/* 21 latent frames of 16 by 22 tokens; an image in rows of 32. */
static void lengths_of_pictures_and_videos(void **state)
{
    (void)state;
    ft_arch a = arch_of(VIDEO("{'pixels':32,'span':8,'height':512,'width':704,'frames':161}"), FT_OK);
    assert_int_equal(a.usual_seq, 21 * 16 * 22);
    a = arch_of(VIDEO("{'pixels':32,'row':32,'height':1024,'width':1024}"), FT_OK);
    assert_int_equal(a.usual_seq, 32);
    arch_of(VIDEO("{'pixels':32,'height':500,'width':704}"), FT_E_RANGE);
    arch_of(VIDEO("{'pixels':32,'span':8,'height':512,'width':704,'frames':160}"), FT_E_RANGE);
    arch_of(VIDEO("{'height':512,'width':704}"), FT_E_MISSING);
    arch_of(VIDEO("{'pixels':32,'height':512,'width':704,'length':3}"), FT_E_KEY);
    arch_of(VIDEO("7"), FT_E_TYPE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_fixed),
        cmocka_unit_test(words_follow_the_request),
        cmocka_unit_test(the_file_knows_its_sizes),
        cmocka_unit_test(other_sizes_cannot_be_had),
        cmocka_unit_test(lengths_of_pictures_and_videos),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

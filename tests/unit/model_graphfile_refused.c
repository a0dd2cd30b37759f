/* Graph files that are refused: names that nobody made, shapes that do not fit, wrong keys and numbers. */
#include "graphfile_try.h"

#define LINEAR(more) "{\"op\":\"linear\",\"in\":\"x\",\"features\":64" more ",\"out\":\"y\"}"

static void refused(const char *text, ft_status code, const char *message)
{
    ft_error err = {0};
    if (graph_of(text, FT_TRAIN, &err)) fail_msg("not refused: %s", text);
    assert_string_equal(message, err.message);
    assert_int_equal(code, err.code);
    assert_string_equal("model", err.where);
}

/* -- what is refused --------------------------------------------------------------------------- */

static void names_that_nobody_made(void **state)
{
    (void)state;
    refused(OF("{\"op\":\"relu\",\"in\":\"xx\",\"out\":\"y\"}"), FT_E_NAME,
            "block \"b\", node 1 (relu): \"xx\" was not made before; did you mean \"x\"?");
    refused(OF("{\"op\":\"add\",\"name\":\"sum\",\"in\":[\"x\",\"y\"],\"out\":\"z\"},{\"op\":\"relu\",\"in\":\"z\","
               "\"out\":\"y\"}"),
            FT_E_NAME,
            "block \"b\", node 1 (sum): \"y\" is made later: nodes run in the order of the list, without cycles");
    refused(OF("{\"op\":\"relu\",\"in\":\"x\",\"out\":\"z\"}"), FT_E_NAME,
            "block \"b\": its result \"y\" is made by none of its nodes");
    refused(FILE_OF(",\"in\":\"q\"", LINEAR("")), FT_E_NAME, "block \"b\": its input \"q\" was not made before");
    refused(OF(LINEAR(",\"weight\":\"x\"")), FT_E_RANGE,
            "block \"b\", node 1 (linear): the weight has 256 elements, not 64 x 64");
    refused(OF("{\"op\":\"add\",\"in\":\"x\",\"out\":\"y\"}"), FT_E_MISSING,
            "block \"b\", node 1 (add): operand 2 is missing in \"in\"");
    refused(OF("{\"op\":\"cross_entropy\",\"in\":[\"x\",\"labels\"],\"out\":\"y\"}"), FT_E_NAME,
            "block \"b\", node 1 (cross_entropy): \"labels\" was not made before");
    refused(OF("{\"op\":\"relu\",\"in\":\"x\"}"), FT_E_MISSING,
            "block \"b\", node 1 (relu): \"out\" must name the result");
}

static void shapes_that_do_not_fit(void **state)
{
    (void)state;
    refused(OF("{\"op\":\"matmul\",\"in\":[\"x\",\"w\"],\"out\":\"y\"}"), FT_E_RANGE,
            "block \"b\", node 1 (matmul): the operands' inner sizes differ: 64 and 9");
    refused(OF("{\"op\":\"add\",\"in\":[\"x\",\"w\"],\"out\":\"y\"}"), FT_E_RANGE,
            "block \"b\", node 1 (add): operands of 256 and 36 elements: sizes must be equal or 1 in each of their "
            "last axes");
    refused(OF("{\"op\":\"view\",\"in\":\"x\",\"shape\":[\"batch\",65],\"out\":\"y\"}"), FT_E_RANGE,
            "block \"b\", node 1 (view): view of 256 elements cannot give 260");
    refused(OF("{\"op\":\"cat\",\"in\":[\"x\",\"x\"],\"shape\":[\"batch\",64],\"out\":\"y\"}"), FT_E_RANGE,
            "block \"b\", node 1 (cat): 2 tensors of 512 elements together cannot give 256");
    refused(OF("{\"op\":\"attention\",\"in\":[\"x\",\"x\",\"x\"],\"out\":\"y\"}"), FT_E_RANGE,
            "block \"b\", node 1 (attention): attention takes q, k, v as [batch, heads, length, dim]: one batch, k and "
            "v of "
            "equal heads and lengths, q and k of equal dim, heads of q a multiple of k's");
    refused(OF("{\"op\":\"cross_entropy\",\"in\":\"x\",\"pixels\":[8,8],\"out\":\"y\"}"), FT_E_RANGE,
            "block \"b\", node 1 (cross_entropy): \"pixels\" must have the axes of an image behind its channels");
    refused(OF("{\"op\":\"conv2d\",\"in\":\"x\",\"k\":1,\"r\":1,\"out\":\"y\"}"), FT_E_RANGE,
            "block \"b\", node 1 (conv2d): a convolution takes [n, c, h, w], got 2 axes");
    refused(FILE_OF(",\"repeat\":3,\"in\":\"x\"", "{\"op\":\"linear\",\"in\":\"x\",\"features\":8,\"out\":\"y\"}"),
            FT_E_RANGE, "block \"b\" repeats, but its result has 32 elements and its input 256");
    refused(
        OF("{\"op\":\"view\",\"in\":\"x\",\"shape\":[],\"out\":\"y\"}"), FT_E_TYPE,
        "block \"b\", node 1 (view): \"shape\" must be a list of 1 to 8 sizes: whole numbers, \"batch\", \"seq\" or "
        "formulas of them, up to 2^40 each and 2^60 together");
}

static void keys_and_numbers(void **state)
{
    (void)state;
    refused(OF(LINEAR(",\"biass\":true")), FT_E_KEY,
            "block \"b\", node 1 (linear): unknown key \"biass\"; did you mean \"bias\"?");
    refused(OF(LINEAR(",\"bias\":1")), FT_E_TYPE,
            "block \"b\", node 1 (linear): \"bias\" must be true, false or the name of a parameter");
    refused(FILE_OF(",\"repeats\":2", LINEAR("")), FT_E_KEY,
            "block \"b\": unknown key \"repeats\"; did you mean \"repeat\"?");
    refused(FILE_OF(",\"repeat\":1000000000,\"in\":\"x\"", LINEAR("")), FT_E_RANGE,
            "block \"b\": \"repeat\" must be a whole number from 1 to 1000000");
    refused(FILE_OF(",\"repeat\":2", LINEAR("")), FT_E_MISSING,
            "block \"b\" repeats: it needs \"in\", what walks from one iteration to the next");
    refused(
        OF("{\"op\":\"linear\",\"in\":\"x\",\"features\":-1,\"out\":\"y\"}"), FT_E_RANGE,
        "block \"b\", node 1 (linear): \"features\" must be a whole number from 1 to 1099511627776, or a formula with "
        "\"batch\" and \"seq\"");
    refused(
        OF("{\"op\":\"sofmax\",\"in\":\"x\",\"out\":\"y\"}"), FT_E_NAME,
        "block \"b\", node 1 (sofmax): unknown operator \"sofmax\"; did you mean \"softmax\"? one that is really new "
        "needs \"bytes\" and \"shape\"");
    refused(OF("{\"op\":\"dropout\",\"in\":\"x\",\"p\":\"half\",\"out\":\"y\"}"), FT_E_RANGE,
            "block \"b\", node 1 (dropout): \"p\" must be a number from 0 to 1, 1 excluded");
    refused(OF("{\"op\":\"relu\",\"in\":[\"x\",\"w\"],\"out\":\"y\"}"), FT_E_RANGE,
            "block \"b\", node 1 (relu): it takes 1 operands at most, got 2");
    refused(OF("7"), FT_E_TYPE, "block \"b\", node 1 must be an object");
    refused("{\"foretell_graph\":1,\"inputs\":{\"x\":{\"shape\":[0]}},\"blocks\":[{}]}", FT_E_TYPE,
            "input \"x\": \"shape\" must be a list of 1 to 8 sizes: whole numbers, \"batch\", \"seq\" or formulas of "
            "them, up "
            "to 2^40 each and 2^60 together");
    refused("{\"foretell_graph\":1,\"inputs\":{},\"blocks\":[]}", FT_E_MISSING,
            "a graph file needs \"inputs\", an object of shapes, and \"blocks\", a list");
}

static ft_status attempt(void *context)
{
    ft_error err = {0};
    json_t *file = NULL;
    ft_arch arch = {0};
    ft_workload work = workload(FT_TRAIN);
    ft_graph *graph = NULL;
    const char *text = context;
    ft_arena *mine = ft__arena_new(0);
    ft_status status = mine ? ft__json_parse(text, strlen(text), "", &file, &err) : FT_E_MEMORY;
    if (status == FT_OK) status = ft__config_read(file, NULL, "model", &arch, &err);
    if (status == FT_OK) status = ft__model_graph(&arch, &work, mine, &graph, &err);
    ft__arch_release(&arch);
    json_decref(file);
    ft__arena_free(mine);
    if (status != FT_OK && status != FT_E_MEMORY) fail_msg("%s", err.message);
    return status;
}

static void running_out_of_memory_is_an_error(void **state)
{
    (void)state;
    static char text[] = OF(LINEAR(",\"bias\":true"));
    assert_true(failing_alloc_sweep(attempt, text) > 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_that_nobody_made),
        cmocka_unit_test(shapes_that_do_not_fit),
        cmocka_unit_test(keys_and_numbers),
        cmocka_unit_test(running_out_of_memory_is_an_error),
    };
    return cmocka_run_group_tests(tests, open_arena, close_arena);
}

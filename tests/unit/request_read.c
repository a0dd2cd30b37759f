/* Requests: what each key means, what may be left out, and what exactly is said of the rest. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "device/gpu.h"
#include "failing_alloc.h"
#include "graph/operator.h"
#include "request/request.h"

/* A source that knows the catalogue alone. */
static ft_status from_catalogue(void *source, const json_t *gpu, const ft_device **out, ft_error *err)
{
    ft_device *place = source;
    FT_TRY(ft__catalogue_find(json_string_value(gpu), place, err));
    *out = place;
    return FT_OK;
}

static ft_status read_request(const char *text, json_t **document, ft_request *out, ft_error *err)
{
    static ft_device device;
    *document = NULL;
    FT_TRY(ft__json_parse(text, strlen(text), "", document, err));
    return ft__request_read(*document, from_catalogue, &device, out, err);
}

/* The op that `keys` describe on an h200_sxm. Names are compared before the document goes. */
static ft_op taken(const char *keys, const char *name)
{
    char text[512];
    json_t *document;
    ft_request request;
    ft_error err = {0};
    assert_true(strlen(keys) < 400);
    strcpy(text, "{\"task\":\"kernel\",\"gpu\":\"h200_sxm\",");
    strcat(text, keys);
    strcat(text, "}");
    if (read_request(text, &document, &request, &err) != FT_OK) fail_msg("%s: %s: %s", keys, err.where, err.message);
    assert_string_equal(name, request.op.name);
    assert_string_equal("h200_sxm", request.device->name);
    json_decref(document);
    request.op.name = NULL;
    return request.op;
}

static void refused(const char *keys, ft_status code, const char *where, const char *message)
{
    char text[512];
    json_t *document;
    ft_request request;
    ft_error err = {0};
    strcpy(text, "{\"task\":\"kernel\",\"gpu\":\"h200_sxm\",");
    strcat(text, keys);
    strcat(text, "}");
    ft_status status = read_request(text, &document, &request, &err);
    json_decref(document);
    if (status != code)
        fail_msg("%s: %s (%s), expected %s", keys, ft_status_name(status), err.message, ft_status_name(code));
    assert_string_equal(message, err.message);
    assert_string_equal(where, err.where);
}

/* -- operators --------------------------------------------------------------------------------- */

static void a_gemm_is_bf16_and_nt_unless_said_otherwise(void **state)
{
    (void)state;
    ft_op op = taken("\"op\":\"gemm\",\"m\":1,\"n\":2,\"k\":3", "gemm");
    assert_int_equal(FT_OP_GEMM, op.kind);
    assert_int_equal(FT_BF16, op.dtype);
    assert_int_equal(FT_PASS_FWD, op.pass);
    assert_int_equal(FT_TIMING_DEVICE, op.timing);
    assert_int_equal(1, op.u.gemm.b);
    assert_int_equal(1, op.u.gemm.m);
    assert_int_equal(2, op.u.gemm.n);
    assert_int_equal(3, op.u.gemm.k);
    assert_string_equal("nt", op.u.gemm.layout);
    assert_int_equal(-1, op.u.gemm.quantized);
    op = taken(
        "\"op\":\"bmm\",\"b\":9,\"m\":1e3,\"n\":2.0,\"k\":3,\"layout\":\"tn\",\"dtype\":\"fp8\",\"quantized\":false,"
        "\"bias\":true,\"timing\":\"op\"",
        "bmm");
    assert_int_equal(9, op.u.gemm.b);
    assert_int_equal(1000, op.u.gemm.m);
    assert_string_equal("tn", op.u.gemm.layout);
    assert_int_equal(FT_FP8, op.dtype);
    assert_int_equal(0, op.u.gemm.quantized);
    assert_true(op.u.gemm.bias);
    assert_int_equal(FT_TIMING_OP, op.timing);
}

static void attention_fills_what_follows_from_the_rest(void **state)
{
    (void)state;
    ft_op op = taken("\"op\":\"attention\",\"heads\":32,\"q_len\":128,\"head_dim\":64", "attention");
    assert_int_equal(1, op.u.attention.batch);
    assert_int_equal(32, op.u.attention.kv_heads);
    assert_int_equal(128, op.u.attention.kv_len);
    assert_int_equal(64, op.u.attention.v_dim);
    assert_false(op.u.attention.causal);
    assert_int_equal(FT_BF16, op.kv_dtype);
    op = taken(
        "\"op\":\"attention\",\"heads\":32,\"kv_heads\":8,\"q_len\":1,\"kv_len\":4096,\"head_dim\":64,\"causal\":true,"
        "\"window\":0,\"dtype\":\"fp16\",\"kv_dtype\":\"fp8\",\"pass\":\"fwd_bwd\"",
        "attention");
    assert_int_equal(8, op.u.attention.kv_heads);
    assert_int_equal(4096, op.u.attention.kv_len);
    assert_true(op.u.attention.causal);
    assert_int_equal(FT_FP16, op.dtype);
    assert_int_equal(FT_FP8, op.kv_dtype);
    assert_int_equal(FT_PASS_FWD_BWD, op.pass);
}

static void latent_attention_has_deepseeks_sizes(void **state)
{
    (void)state;
    ft_op op = taken("\"op\":\"mla\",\"heads\":128,\"q_len\":1,\"kv_len\":1024", "mla");
    assert_int_equal(512, op.u.mla.kv_lora);
    assert_int_equal(64, op.u.mla.rope_dim);
    assert_int_equal(128, op.u.mla.nope_dim);
    assert_int_equal(128, op.u.mla.v_dim);
}

static void elementwise_inputs_follow_the_name(void **state)
{
    (void)state;
    ft_op op = taken("\"op\":\"elementwise\",\"name\":\"add\",\"numel\":10", "add");
    assert_int_equal(FT_OP_ELEMENTWISE, op.kind);
    assert_int_equal(2, op.u.elementwise.inputs);
    op = taken("\"op\":\"elementwise\",\"name\":\"add\",\"inputs\":5,\"numel\":10", "add");
    assert_int_equal(5, op.u.elementwise.inputs);
    op = taken("\"op\":\"where\",\"numel\":10", "where");
    assert_int_equal(FT_OP_ELEMENTWISE, op.kind);
    assert_int_equal(3, op.u.elementwise.inputs);
    op = taken("\"op\":\"elementwise\",\"name\":\"of_my_own\",\"numel\":10", "of_my_own");
    assert_int_equal(1, op.u.elementwise.inputs);
}

static void a_row_operators_backward_may_be_its_name(void **state)
{
    (void)state;
    ft_op op = taken("\"op\":\"layernorm_backward\",\"rows\":4,\"cols\":5", "layernorm");
    assert_int_equal(FT_OP_ROW, op.kind);
    assert_int_equal(FT_PASS_BWD, op.pass);
    op = taken("\"op\":\"layernorm\",\"rows\":4,\"cols\":5,\"pass\":\"bwd\"", "layernorm");
    assert_int_equal(FT_PASS_BWD, op.pass);
    /* gelu_backward is an operator by its own name, and stays one. */
    op = taken("\"op\":\"gelu_backward\",\"numel\":4", "gelu_backward");
    assert_int_equal(FT_OP_ELEMENTWISE, op.kind);
    assert_int_equal(FT_PASS_FWD, op.pass);
}

static void every_row_operator_is_known(void **state)
{
    (void)state;
    for (int i = 0; i < ft__row_op_count; i++) {
        char keys[128] = "\"op\":\"";
        strcat(keys, ft__row_ops[i].name);
        strcat(keys, "\",\"rows\":4,\"cols\":5");
        ft_op op = taken(keys, ft__row_ops[i].name);
        assert_int_equal(FT_OP_ROW, op.kind);
        assert_int_equal(4, op.u.row.rows);
        assert_int_equal(5, op.u.row.cols);
    }
}

static void a_convolution_is_square_nhwc_and_dense_by_default(void **state)
{
    (void)state;
    ft_op op = taken("\"op\":\"conv2d\",\"n\":1,\"c\":2,\"h\":8,\"w\":9,\"k\":4,\"r\":3", "conv2d");
    assert_int_equal(3, op.u.conv.s);
    assert_int_equal(1, op.u.conv.stride);
    assert_int_equal(0, op.u.conv.pad);
    assert_int_equal(1, op.u.conv.groups);
    assert_true(op.u.conv.nhwc);
    op =
        taken("\"op\":\"conv2d\",\"n\":1,\"c\":2,\"h\":8,\"w\":9,\"k\":4,\"r\":3,\"s\":1,\"pad\":0,\"layout\":\"nchw\"",
              "conv2d");
    assert_int_equal(1, op.u.conv.s);
    assert_false(op.u.conv.nhwc);
}

static void an_unknown_operator_is_its_bytes(void **state)
{
    (void)state;
    ft_op op = taken("\"op\":\"frobnicate\",\"bytes\":1e9", "frobnicate");
    assert_int_equal(FT_OP_OTHER, op.kind);
    assert_true(op.u.other.bytes == 1e9);
    /* two inputs and one output of a hundred fp32 elements each */
    op = taken("\"op\":\"frobnicate\",\"numel\":100,\"inputs\":2,\"dtype\":\"fp32\"", "frobnicate");
    assert_true(op.u.other.bytes == 1200);
    op = taken("\"op\":\"frobnicate\",\"rows\":10,\"cols\":10,\"flops\":7", "frobnicate");
    assert_true(op.u.other.bytes == 400 && op.u.other.flops == 7);
    /* a name close to a known one is believed when its bytes are given */
    op = taken("\"op\":\"gem\",\"bytes\":10", "gem");
    assert_int_equal(FT_OP_OTHER, op.kind);
}

/* -- what is refused --------------------------------------------------------------------------- */

static void sizes_are_whole_and_in_range(void **state)
{
    (void)state;
    static const char *const bad[] = {"0", "-1", "2.5", "4611686018427387904", "1e300", "1099511627777"};
    static const char *const shown[] = {"0", "-1", "2.5", "4611686018427387904", "1e+300", "1099511627777"};
    for (int i = 0; i < 6; i++) {
        char keys[160] = "\"op\":\"gemm\",\"n\":2,\"k\":3,\"m\":",
             message[160] = "\"m\" must be a whole number from 1 to 2^40, got ";
        strcat(keys, bad[i]);
        strcat(message, shown[i]);
        refused(keys, FT_E_RANGE, "m", message);
    }
    refused("\"op\":\"gemm\",\"m\":\"1\",\"n\":2,\"k\":3", FT_E_TYPE, "m",
            "\"m\" must be a whole number from 1 to 2^40, got the string \"1\"");
    refused("\"op\":\"gemm\",\"m\":null,\"n\":2,\"k\":3", FT_E_TYPE, "m",
            "\"m\" must be a whole number from 1 to 2^40, got null");
    refused("\"op\":\"conv2d\",\"n\":1,\"c\":2,\"h\":8,\"w\":9,\"k\":4,\"r\":3,\"pad\":-1", FT_E_RANGE, "pad",
            "\"pad\" must be a whole number from 0 to 2^40, got -1");
    refused("\"op\":\"gelu\",\"inputs\":0,\"numel\":5", FT_E_RANGE, "inputs",
            "\"inputs\" must be a whole number from 1 to 1024, got 0");
}

static void names_offer_the_nearest(void **state)
{
    (void)state;
    refused("\"op\":\"gem\",\"m\":1,\"n\":2,\"k\":3", FT_E_NAME, "op", "unknown op \"gem\"; did you mean \"gemm\"?");
    refused("\"op\":\"softmx\",\"rows\":1,\"cols\":2", FT_E_NAME, "op",
            "unknown op \"softmx\"; did you mean \"softmax\"?");
    refused("\"op\":\"gemm\",\"m\":1,\"n\":2,\"k\":3,\"dtype\":\"bf17\"", FT_E_NAME, "dtype",
            "unknown dtype \"bf17\"; did you mean \"bf16\"?");
    refused("\"op\":\"gemm\",\"m\":1,\"n\":2,\"k\":3,\"dtype\":\"amp_fp16\"", FT_E_UNSUPPORTED, "dtype",
            "\"amp_fp16\" is a recipe for whole models; ask for one kernel in the dtype of its operands, \"fp16\"");
    refused("\"op\":\"gemm\",\"m\":1,\"n\":2,\"k\":3,\"layuot\":\"nt\"", FT_E_KEY, "layuot",
            "unknown key \"layuot\"; did you mean \"layout\"?");
    refused("\"op\":\"gemm\",\"m\":1,\"n\":2,\"k\":3,\"layout\":\"xy\"", FT_E_NAME, "layout",
            "unknown layout \"xy\"; it is one of nn, nt, tn, tt");
    refused("\"op\":\"optimizer\",\"name\":\"adamvv\",\"params\":5", FT_E_NAME, "name",
            "unknown optimizer \"adamvv\"; did you mean \"adamw\"?");
    refused("\"op\":\"\",\"bytes\":1", FT_E_NAME, "op", "\"op\" is empty");
}

static void what_is_missing_is_named(void **state)
{
    (void)state;
    refused("\"op\":\"gemm\",\"m\":1,\"n\":2", FT_E_MISSING, "k", "\"k\" is missing");
    refused("\"m\":1", FT_E_MISSING, "op", "\"op\" is missing");
    refused("\"op\":\"elementwise\",\"numel\":1", FT_E_MISSING, "name",
            "\"name\" is missing: which elementwise operator (add, gelu, ...)? A fused chain gives "
            "\"ops_per_element\" instead");
    refused("\"op\":\"frobnicate\"", FT_E_NAME, "op",
            "unknown op \"frobnicate\": an unknown operator is forecast from the memory it moves; give \"bytes\", "
            "\"numel\" "
            "or \"rows\" and \"cols\"");
}

static void a_pass_that_does_not_exist_is_refused(void **state)
{
    (void)state;
    refused("\"op\":\"argmax\",\"rows\":1,\"cols\":2,\"pass\":\"bwd\"", FT_E_UNSUPPORTED, "pass",
            "\"argmax\" has no backward pass; leave \"pass\" out");
    refused("\"op\":\"argmax_backward\",\"rows\":1,\"cols\":2", FT_E_UNSUPPORTED, "pass",
            "\"argmax\" has no backward pass; leave \"pass\" out");
    refused("\"op\":\"gelu\",\"numel\":1,\"pass\":\"bwd\"", FT_E_KEY, "pass",
            "unknown key \"pass\": \"gelu\" takes name, inputs, numel, ops_per_element");
}

static void whole_requests_are_checked(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        ft_status code;
        const char *where, *message;
    } cases[] = {
        {"{}", FT_E_UNSUPPORTED, "task", "one kernel is \"task\": \"kernel\""},
        {"{\"op\":\"gemm\"}", FT_E_MISSING, "task",
         "\"task\" is missing: one operator is \"task\": \"kernel\"; the default is \"train\""},
        {"{\"task\":\"kernl\"}", FT_E_NAME, "task", "unknown task \"kernl\"; did you mean \"kernel\"?"},
        {"{\"task\":5}", FT_E_TYPE, "task", "\"task\" must be a string, got 5"},
        {"[1]", FT_E_TYPE, "", "a request is one JSON object, {\"task\": \"train\", ...}"},
        {"{\"id\":{},\"task\":\"kernel\"}", FT_E_TYPE, "id", "\"id\" must be a string, a number, true, false or null"},
        {"{\"task\":\"kernel\",\"op\":\"gemm\",\"m\":1,\"n\":1,\"k\":1}", FT_E_MISSING, "gpu",
         "\"gpu\" is missing: a name (h100_sxm), a file or a spec object"},
        {"{\"task\":\"kernel\",\"op\":\"gemm\",\"m\":1,\"n\":1,\"k\":1,\"gpu\":\"a100_sxm_80gb\",\"dtype\":\"fp8\"}",
         FT_E_UNSUPPORTED, "dtype", "a100_sxm_80gb has no fp8; frameworks would run bf16 instead"},
        {"{\"task\":\"kernel\",\"op\":\"gemm\",\"m\":1,\"n\":1,\"k\":1,\"gpu\":\"h200_sxm\",\"quantile\":0.2}",
         FT_E_RANGE, "quantile", "\"quantile\" must be a number from 0.5 to 0.99, got 0.2"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *document;
        ft_request request;
        ft_error err = {0};
        ft_status status = read_request(cases[i].text, &document, &request, &err);
        json_decref(document);
        if (status != cases[i].code) fail_msg("%s: %s: %s", cases[i].text, ft_status_name(status), err.message);
        assert_string_equal(cases[i].message, err.message);
        assert_string_equal(cases[i].where, err.where);
    }
}

static ft_status attempt(void *context)
{
    json_t *document;
    ft_request request;
    ft_error err = {0};
    ft_status status = read_request(context, &document, &request, &err);
    json_decref(document);
    return status;
}

static void running_out_of_memory_is_an_answer(void **state)
{
    (void)state;
    char text[] =
        "{\"task\":\"kernel\",\"op\":\"gemm\",\"m\":1,\"n\":1,\"k\":1,\"gpu\":\"h200_sxm\",\"dtype\":\"fp8\"}";
    assert_true(failing_alloc_sweep(attempt, text) > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gemm_is_bf16_and_nt_unless_said_otherwise),
        cmocka_unit_test(attention_fills_what_follows_from_the_rest),
        cmocka_unit_test(latent_attention_has_deepseeks_sizes),
        cmocka_unit_test(elementwise_inputs_follow_the_name),
        cmocka_unit_test(a_row_operators_backward_may_be_its_name),
        cmocka_unit_test(every_row_operator_is_known),
        cmocka_unit_test(a_convolution_is_square_nhwc_and_dense_by_default),
        cmocka_unit_test(an_unknown_operator_is_its_bytes),
        cmocka_unit_test(sizes_are_whole_and_in_range),
        cmocka_unit_test(names_offer_the_nearest),
        cmocka_unit_test(what_is_missing_is_named),
        cmocka_unit_test(a_pass_that_does_not_exist_is_refused),
        cmocka_unit_test(whole_requests_are_checked),
        cmocka_unit_test(running_out_of_memory_is_an_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* fields.c: the keys of every operator.
 *
 * A row is a key: its type, its place in ft_op, whether it must be given. The reader, the list of known keys and the
 * program's flags all follow these tables, so a new size is one line here (and one in keys_kernel.h).
 */
#include "graph/operator.h"
#include "request/request.h"

#define IN(member) offsetof(ft_op, u.member)
#define SIZE(key, member) key, FT_FIELD_SIZE, IN(member), FT_REQUIRED, 1
#define SIZE_OR_DEFAULT(key, member) key, FT_FIELD_SIZE, IN(member), FT_OPTIONAL, 1
#define PASS "pass", FT_FIELD_PASS, offsetof(ft_op, pass), FT_OPTIONAL, 0
#define ENGINE "engine", FT_FIELD_ENGINE, offsetof(ft_op, engine), FT_OPTIONAL, 0
#define WEIGHTS "weights_dtype", FT_FIELD_STORAGE, offsetof(ft_op, weights), FT_OPTIONAL, 0
#define COUNT(array) (sizeof(array) / sizeof *(array))

static const ft_field gemm_fields[] = {
    {SIZE_OR_DEFAULT("b", gemm.b)},
    {SIZE("m", gemm.m)},
    {SIZE("n", gemm.n)},
    {SIZE("k", gemm.k)},
    {"layout", FT_FIELD_LAYOUT, IN(gemm.layout), FT_OPTIONAL, 0},
    {"bias", FT_FIELD_SWITCH, IN(gemm.bias), FT_OPTIONAL, 0},
    {"quantized", FT_FIELD_TRISTATE, IN(gemm.quantized), FT_OPTIONAL, 0},
    {WEIGHTS},
    {"weight_kernel", FT_FIELD_WEIGHT_KERNEL, IN(gemm.by), FT_OPTIONAL, 0},
    {PASS},
};
static const ft_field attention_fields[] = {
    {SIZE_OR_DEFAULT("batch", attention.batch)},
    {SIZE("heads", attention.heads)},
    {SIZE_OR_DEFAULT("kv_heads", attention.kv_heads)},
    {SIZE("q_len", attention.q_len)},
    {SIZE_OR_DEFAULT("kv_len", attention.kv_len)},
    {SIZE("head_dim", attention.head_dim)},
    {SIZE_OR_DEFAULT("v_dim", attention.v_dim)},
    {"window", FT_FIELD_SIZE, IN(attention.window), FT_OPTIONAL, 0},
    {"causal", FT_FIELD_SWITCH, IN(attention.causal), FT_OPTIONAL, 0},
    {"attention", FT_FIELD_LIBRARY, IN(attention.library), FT_OPTIONAL, 0},
    {"kv_dtype", FT_FIELD_DTYPE, offsetof(ft_op, kv_dtype), FT_OPTIONAL, 0},
    {ENGINE},
    {PASS},
};
static const ft_field mla_fields[] = {
    {SIZE_OR_DEFAULT("batch", mla.batch)},
    {SIZE("heads", mla.heads)},
    {SIZE("q_len", mla.q_len)},
    {SIZE_OR_DEFAULT("kv_len", mla.kv_len)},
    {SIZE_OR_DEFAULT("kv_lora", mla.kv_lora)},
    {SIZE_OR_DEFAULT("rope_dim", mla.rope_dim)},
    {SIZE_OR_DEFAULT("nope_dim", mla.nope_dim)},
    {SIZE_OR_DEFAULT("v_dim", mla.v_dim)},
    {"causal", FT_FIELD_SWITCH, IN(mla.causal), FT_OPTIONAL, 0},
    {"kv_dtype", FT_FIELD_DTYPE, offsetof(ft_op, kv_dtype), FT_OPTIONAL, 0},
};
static const ft_field elementwise_fields[] = {
    {"name", FT_FIELD_NAME, offsetof(ft_op, name), FT_OPTIONAL, 0},
    {"inputs", FT_FIELD_SMALL, IN(elementwise.inputs), FT_OPTIONAL, 1},
    {SIZE("numel", elementwise.numel)},
    {"ops_per_element", FT_FIELD_REAL, IN(elementwise.ops_per_element), FT_OPTIONAL, 0},
};
static const ft_field row_fields[] = {
    {SIZE("rows", row.rows)},
    {SIZE("cols", row.cols)},
    {SIZE_OR_DEFAULT("vocab", row.vocab)},
    {PASS},
};
static const ft_field conv_fields[] = {
    {SIZE("n", conv.n)},
    {SIZE("c", conv.c)},
    {SIZE("h", conv.h)},
    {SIZE("w", conv.w)},
    {SIZE("k", conv.k)},
    {SIZE("r", conv.r)},
    {SIZE_OR_DEFAULT("s", conv.s)},
    {SIZE_OR_DEFAULT("stride", conv.stride)},
    {"pad", FT_FIELD_SIZE, IN(conv.pad), FT_OPTIONAL, 0},
    {SIZE_OR_DEFAULT("groups", conv.groups)},
    {"layout", FT_FIELD_IMAGE, IN(conv.nhwc), FT_OPTIONAL, 0},
    {PASS},
};
static const ft_field moe_fields[] = {
    {SIZE("tokens", moe.tokens)},
    {SIZE("hidden", moe.hidden)},
    {SIZE("inter", moe.inter)},
    {SIZE("topk", moe.topk)},
    {SIZE("experts", moe.experts)},
    {"skew", FT_FIELD_REAL, IN(moe.skew), FT_OPTIONAL, 0},
    {"routing", FT_FIELD_ROUTING, IN(moe.drawn), FT_OPTIONAL, 0},
    {SIZE_OR_DEFAULT("ep", moe.ep)},
    {"gated", FT_FIELD_UNLESS, IN(moe.ungated), FT_OPTIONAL, 0},
    {WEIGHTS},
    {"moe_backend", FT_FIELD_MOE_BACKEND, IN(moe.backend), FT_OPTIONAL, 0},
    {ENGINE},
};
static const ft_field optimizer_fields[] = {
    {"name", FT_FIELD_NAME, offsetof(ft_op, name), FT_REQUIRED, 0},
    {SIZE("params", optimizer.params)},
    {SIZE_OR_DEFAULT("tensors", optimizer.tensors)},
};
static const ft_field quantize_fields[] = {
    {SIZE("rows", quantize.rows)},
    {SIZE("cols", quantize.cols)},
};
/* An operator nobody knows: its bytes as given. Elements in their place are request.c's to count. */
static const ft_field other_fields[] = {
    {"bytes", FT_FIELD_REAL, IN(other.bytes), FT_OPTIONAL, 1},
    {"flops", FT_FIELD_REAL, IN(other.flops), FT_OPTIONAL, 0},
};

const ft_field *ft__request_fields(ft_op_kind kind, size_t *count)
{
    static const struct {
        const ft_field *fields;
        size_t count;
    } lists[FT_OP_KIND_COUNT] = {
        [FT_OP_GEMM] = {gemm_fields, COUNT(gemm_fields)},
        [FT_OP_ATTENTION] = {attention_fields, COUNT(attention_fields)},
        [FT_OP_MLA] = {mla_fields, COUNT(mla_fields)},
        [FT_OP_ELEMENTWISE] = {elementwise_fields, COUNT(elementwise_fields)},
        [FT_OP_ROW] = {row_fields, COUNT(row_fields)},
        [FT_OP_CONV2D] = {conv_fields, COUNT(conv_fields)},
        [FT_OP_MOE] = {moe_fields, COUNT(moe_fields)},
        [FT_OP_OPTIMIZER] = {optimizer_fields, COUNT(optimizer_fields)},
        [FT_OP_QUANTIZE] = {quantize_fields, COUNT(quantize_fields)},
        [FT_OP_OTHER] = {other_fields, COUNT(other_fields)},
    };
    *count = lists[kind].count;
    return lists[kind].fields;
}

const char *const *ft__request_exchange_names(size_t *count)
{
    *count = FT_COLLECTIVE_COUNT;
    return ft__collective_names;
}

const char *const *ft__request_op_names(size_t *count)
{
    static const char *const names[] = {
        "gemm",
        "linear",
        "matmul",
        "bmm",
        "attention",
        "mla",
        "elementwise",
        "conv2d",
        "moe",
        "optimizer",
        "quantize",
        "quantize_rows",
        "quantize_static",
        "quantize_cast",
        "dequantize",
        "scale_matrix",
        "copy",
        "softmax",
        "log_softmax",
        "layernorm",
        "rmsnorm",
        "cross_entropy",
        "embedding",
        "cumsum",
        "argmax",
        "sum_rows",
        "sum_cols",
        "mean_all",
        "transpose_copy",
        "cat_halves",
        "bias_add",
        "dropout",
    };
    *count = COUNT(names);
    return names;
}

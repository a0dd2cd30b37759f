/* node.c: one node of a graph file: which operator it is, which keys and how many operands that takes. */
#include <string.h>

#include "base/text.h"
#include "graph/emit.h"
#include "import/graphfile/reader.h"
#include "import/site.h"

enum { MOST_KEYS = 13, MANY = 4096 };

typedef struct kind {
    const char *op;
    int least, most; /* operands */
    ft_node_reader *read;
    const char *keys[MOST_KEYS]; /* beside those that every node has */
} kind;

#define CONV_KEYS \
    "k", "r", "s", "stride", "pad", "dilation", "groups", "bias", "weight", "transposed", "output_pad", "held_bytes"
static const kind kinds[] = {
    {"linear", 1, 1, ft__read_linear, {"features", "bias", "weight", "weight_layout", "activation"}},
    {"matmul", 2, 2, ft__read_matmul, {"transposed"}},
    {"attention",
     3,
     4,
     ft__read_attention,
     {"causal", "masked", "window", "dropout", "softcap", "softmax_fp32", "heads_out", "backend", "scale",
      "mask_in_order"}},
    {"conv1d", 1, 2, ft__read_conv, {CONV_KEYS}},
    {"conv2d", 1, 2, ft__read_conv, {CONV_KEYS}},
    {"conv3d", 1, 2, ft__read_conv, {CONV_KEYS, "t"}},
    {"recurrence",
     1,
     2,
     ft__read_recurrence,
     {"kind", "steps", "layers", "inputs", "weight", "bias", "weight_reverse", "bias_reverse"}},
    {"embedding", 1, 1, ft__read_embedding, {"rows", "features", "table", "bag"}},
    {"experts", 2, 3, ft__read_experts, {"experts", "topk", "inter", "bias", "activation", "up", "down"}},
    {"grouped_mm", 1, 2, ft__read_grouped, {"experts", "topk", "features", "bias", "weight"}},
    {"parameter", 0, 0, ft__read_parameter, {"shape", "trained", "shared"}},
    {"buffer", 0, 0, ft__read_buffer, {"shape"}},
    {"view", 1, 1, ft__read_view, {"shape", "strided"}},
    {"reshape", 1, 1, ft__read_view, {"shape"}},
    {"transpose", 1, 1, ft__read_transpose, {"shape", "axes"}},
    {"slice", 1, 1, ft__read_part, {"shape", "axis"}},
    {"expand", 1, 1, ft__read_part, {"shape", "overlap"}},
    {"detach", 1, 1, ft__read_part, {NULL}},
    {"contiguous", 1, 1, ft__read_copy, {"shape", "across"}},
    {"copy", 1, 1, ft__read_copy, {"shape", "across"}},
    {"cat", 1, MANY, ft__read_cat, {"shape", "axis"}},
    {"split", 1, 1, ft__read_split, {"sizes", "axis"}},
    {"unbind", 1, 1, ft__read_split, {"axis"}},
    {"sum", 1, 1, ft__read_reduced, {"axis", "axes", "keepdim"}},
    {"mean", 1, 1, ft__read_reduced, {"axis", "axes", "keepdim"}},
    {"amax", 1, 1, ft__read_reduced, {"axis", "axes", "keepdim"}},
    {"amin", 1, 1, ft__read_reduced, {"axis", "axes", "keepdim"}},
    {"prod", 1, 1, ft__read_reduced, {"axis", "axes", "keepdim"}},
    {"norm", 1, 1, ft__read_reduced, {"axis", "axes", "keepdim"}},
    {"var", 1, 1, ft__read_reduced, {"axis", "axes", "keepdim"}},
    {"std", 1, 1, ft__read_reduced, {"axis", "axes", "keepdim"}},
    {"logsumexp", 1, 1, ft__read_reduced, {"axis", "axes", "keepdim"}},
    {"any", 1, 1, ft__read_reduced, {"axis", "axes", "keepdim"}},
    {"all", 1, 1, ft__read_reduced, {"axis", "axes", "keepdim"}},
    {"argmax", 1, 1, ft__read_reduced, {"axis", "axes", "keepdim"}},
    {"argmin", 1, 1, ft__read_reduced, {"axis", "axes", "keepdim"}},
    {"softmax", 1, 1, ft__read_row, {"axis"}},
    {"log_softmax", 1, 1, ft__read_row, {"axis"}},
    {"cumsum", 1, 1, ft__read_row, {"axis"}},
    {"topk", 1, 1, ft__read_best, {"k", "axis"}},
    {"sort", 1, 1, ft__read_best, {"axis"}},
    {"layernorm", 1, 2, ft__read_norm, {"bias", "weight", "last"}},
    {"rmsnorm", 1, 2, ft__read_norm, {"weight", "last"}},
    {"batchnorm", 1, 2, ft__read_picture_norm, {"bias", "weight", "statistics"}},
    {"groupnorm", 1, 2, ft__read_picture_norm, {"bias", "weight", "groups"}},
    {"maxpool", 1, 1, ft__read_pool, {"window", "stride", "pad", "dilation", "ceil"}},
    {"avgpool", 1, 1, ft__read_pool, {"window", "stride", "pad", "ceil"}},
    {"adaptive_avgpool", 1, 1, ft__read_resized, {"shape"}},
    {"upsample", 1, 1, ft__read_resized, {"shape", "mode", "antialias"}},
    {"pad", 1, 1, ft__read_resized, {"shape"}},
    {"grid_sample", 2, 2, ft__read_sampled, {"mode", "border"}},
    {"unfold", 1, 1, ft__read_windows, {"window", "stride", "shape"}},
    {"fold", 1, 1, ft__read_windows, {"window", "stride", "shape"}},
    {"weight_norm", 2, 2, ft__read_weight_norm, {"last"}},
    {"gather", 1, 2, ft__read_pick, {"rows", "shape"}},
    {"index_select", 1, 2, ft__read_pick, {"shape"}},
    {"index", 1, 2, ft__read_pick, {"shape"}},
    {"take_along", 1, 2, ft__read_pick, {"shape"}},
    {"masked_select", 1, 2, ft__read_pick, {"shape"}},
    {"nonzero", 1, 1, ft__read_pick, {"shape"}},
    {"scatter", 2, 3, ft__read_scatter, {"in_place", "part"}},
    {"scatter_add", 2, 3, ft__read_scatter, {"in_place"}},
    {"index_add", 2, 3, ft__read_scatter, {"in_place"}},
    {"index_put", 2, 3, ft__read_scatter, {"in_place"}},
    {"index_fill", 1, 2, ft__read_scatter, {"in_place", "count"}},
    {"masked_scatter", 2, 3, ft__read_scatter, {"in_place"}},
    {"one_hot", 1, 1, ft__read_one_hot, {"classes"}},
    {"fill", 0, 0, ft__read_fill, {"shape"}},
    {"arange", 0, 0, ft__read_fill, {"shape"}},
    {"full", 0, 0, ft__read_fill, {"shape"}},
    {"zeros", 0, 0, ft__read_fill, {"shape"}},
    {"ones", 0, 0, ft__read_fill, {"shape"}},
    {"rand", 0, 0, ft__read_fill, {"shape"}},
    {"empty", 0, 0, ft__read_fill, {"shape"}},
    {"sync", 0, 1, ft__read_sync, {NULL}},
    {"dropout", 1, 1, ft__read_dropout, {"p"}},
    {"cast", 1, 1, ft__read_cast, {"to", "like"}},
    {"cross_entropy", 1, 2, ft__read_loss, {"fp32", "pixels"}},
    {"nll_loss", 1, 2, ft__read_loss, {NULL}},
    {"mse_loss", 1, 2, ft__read_loss, {NULL}},
    {"l1_loss", 1, 2, ft__read_loss, {NULL}},
    {"smooth_l1_loss", 1, 2, ft__read_loss, {NULL}},
    {"bce_with_logits", 1, 2, ft__read_loss, {NULL}},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* False after an error: an operator that nobody knows. */
static bool find_kind(ft_graph_reader *r, const char *op, kind *out)
{
    static const kind other = {"", 0, FT_NODE_INPUTS, ft__read_other, {"bytes", "flops", "shape"}};
    for (size_t i = 0; i < KINDS; i++)
        if (*kinds[i].op == *op && !strcmp(kinds[i].op, op)) {
            *out = kinds[i];
            return true;
        }
    int least, most = ft__graphfile_pointwise(op, &least);
    if (most > 0) {
        *out = (kind){op, least, most, ft__read_pointwise, {"in_place", "across"}};
        return true;
    }
    *out = other;
    if (json_object_get(r->at, "bytes")) return true;
    const char *known[KINDS + 10] = {"add", "mul",   "gelu",    "silu",    "relu",
                                     "cos", "where", "sigmoid", "maximum", "clamp"};
    for (size_t i = 0; i < KINDS; i++) known[10 + i] = kinds[i].op;
    const char *near = ft__nearest(op, known, sizeof known / sizeof *known);
    ft__graphfile_fail(
        r, FT_E_NAME, "unknown operator \"%.*s\"%s%s%s one that is really new needs \"bytes\" and \"shape\"",
        (int)ft__utf8_cut(op, 40), op, near ? "; did you mean \"" : ";", near ? near : "", near ? "\"?" : "");
    return false;
}

/* False after an error: a key that nobody knows. */
static bool keys_are_known(ft_graph_reader *r, const kind *k)
{
    const char *known[7 + MOST_KEYS] = {"op", "name", "in", "out", "module", "host_ops", "dtype"};
    size_t count = 7;
    for (int i = 0; i < MOST_KEYS && k->keys[i]; i++) known[count++] = k->keys[i];
    ft_error err = {0};
    if (ft__json_known_keys(r->at, known, count, "", &err) == FT_OK) return true;
    ft__graphfile_fail(r, err.code, "%s", err.message);
    return false;
}

/* Operators of the framework behind the node go to its last kernel. */
static void set_host_ops(ft_graph_reader *r, int32_t first)
{
    ft_build *b = ft__graphfile_build(r);
    if (!json_object_get(r->at, "host_ops")) return;
    int64_t ops = ft__graphfile_whole(r, "host_ops", 1, 0, 100000);
    for (int32_t i = b->g->node_count - 1; i >= first && !ft__graphfile_failed(r); i--)
        if (ft__node_runs(&b->g->nodes[i])) {
            b->g->nodes[i].host_ops = (float)ops;
            return;
        }
}

/* Names that operators give to one of their results are as the node says; the others go without. */
void ft__graphfile_node(ft_graph_reader *r)
{
    const char *op = json_string_value(json_object_get(r->at, "op"));
    kind k;
    if (!op) {
        ft__graphfile_fail(r, FT_E_MISSING, "\"op\" must name the operator");
        return;
    }
    if (!find_kind(r, op, &k) || !keys_are_known(r, &k)) return;
    size_t count = ft__graphfile_operands(r);
    if (count > (size_t)k.most) {
        ft__graphfile_fail(r, FT_E_RANGE, "it takes %d operands at most, got %d", k.most, (int)count);
        return;
    }
    /* Those that an operator only reads (labels, indices) must be there too. */
    ft_named x;
    for (size_t i = 0; i < count || i < (size_t)k.least; i++)
        if (!ft__graphfile_operand(r, i, &x)) return;
    const char *name = json_string_value(json_object_get(r->at, "name"));
    if (!name) name = json_string_value(json_object_get(r->at, "module"));
    if (!name && (k.read == ft__read_parameter)) name = json_string_value(json_object_get(r->at, "out"));
    const ft_graph *g = ft__graphfile_build(r)->g;
    int32_t first = g->node_count;
    r->first_fresh = g->tensor_count;
    ft_at at = ft__import_site(ft__graphfile_build(r)->g, name ? name : op);
    if (!at) ft__graphfile_fail(r, FT_E_MEMORY, "out of memory");
    if (ft__graphfile_failed(r)) return;
    k.read(r, at);
    set_host_ops(r, first);
}

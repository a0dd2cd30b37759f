/* weights.c: which initialisers training changes, and what nodes are called in reports.
 *
 * ONNX does not tell parameters from tables that somebody computed beforehand. What a product, a convolution, a norm or
 * a lookup reads as its weight is a parameter; so is what is added or multiplied, when its name is one that a module
 * would give and not one that an exporter made up (val_12, onnx::Mul_7, unsqueeze_3). Running statistics, masks and
 * rotary frequencies are not. */
#include <ctype.h>
#include <string.h>

#include "import/onnx/graph.h"

/* -- names ----------------------------------------------------------------------------------------- */

static bool ends_with(const char *text, const char *end)
{
    size_t a = strlen(text), b = strlen(end);
    return a >= b && !strcmp(text + a - b, end);
}

/* Buffers of PyTorch modules, by the last part of their names. */
static bool names_a_buffer(const char *name)
{
    static const char *const ends[] = {"inv_freq",
                                       "running_mean",
                                       "running_var",
                                       "num_batches_tracked",
                                       "position_ids",
                                       "masked_bias",
                                       "attn_mask",
                                       "relative_position_index",
                                       "cos_cached",
                                       "sin_cached",
                                       "relative_coords_table",
                                       "cos_cache",
                                       "sin_cache",
                                       ".mask",
                                       "_mask",
                                       "embed_positions.weights",
                                       "freqs_cis",
                                       "token_type_ids"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (ends_with(name, ends[i])) return true;
    return false;
}

/* "val_12", "onnx::Mul_345", "unsqueeze_3", "/model/Constant_1_output_0": nobody's parameter. */
static bool made_up(const char *name)
{
    static const char *const starts[] = {"onnx::", "val_",   "_val_",    "/",      "const",
                                         "Const",  "scalar", "c_lifted", "tensor_"};
    static const char *const operators[] = {
        "add",      "alias",  "arange",   "bitwise_and", "bitwise_or", "cat",       "clone",     "copy",
        "cos",      "cumsum", "detach",   "div",         "einsum",     "embedding", "eq",        "exp",
        "expand",   "eye",    "full",     "ge",          "gt",         "index",     "le",        "lift_fresh_copy",
        "linspace", "log",    "lt",       "masked_fill", "matmul",     "mean",      "mm",        "mul",
        "neg",      "ones",   "outer",    "permute",     "pow",        "rsqrt",     "rsub",      "select",
        "sigmoid",  "sin",    "slice",    "softmax",     "squeeze",    "stack",     "sub",       "sum",
        "t",        "to",     "_to_copy", "transpose",   "tril",       "triu",      "unsqueeze", "view",
        "where",    "zeros",  "reshape",  "rotary",      "type_as",    "flip"};
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (!strncmp(name, starts[i], strlen(starts[i]))) return true;
    size_t length = strlen(name);
    while (length > 0 && isdigit((unsigned char)name[length - 1])) length--;
    if (!length) return true; /* digits alone: exporters of long ago */
    if (name[length] && name[length - 1] == '_') length--;
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (strlen(operators[i]) == length && !memcmp(operators[i], name, length)) return true;
    return false;
}

/* -- weights --------------------------------------------------------------------------------------- */

typedef enum use { NOTHING, AS_OPERAND, AS_WEIGHT, AS_STATISTIC, AS_SHAPE } use;

static bool is(const ft_onnx_node *n, const char *op) { return !strcmp(n->op, op); }

/* Operators that hand their first operand on in other clothes. */
static bool passes(const ft_onnx_node *n)
{
    static const char *const ops[] = {"Identity", "Transpose",        "Reshape", "Cast",
                                      "Squeeze",  "Unsqueeze",        "Flatten", "Expand",
                                      "Slice",    "DequantizeLinear", "Split",   "CastLike"};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (is(n, ops[i])) return true;
    return false;
}

/* What operand `k` is to node n. */
static use use_of(const ft_onnx_node *n, int32_t k)
{
    static const struct {
        const char *op;
        int first, last; /* operands that are weights */
    } weights[] = {{"MatMul", 0, 1},
                   {"Gemm", 0, 2},
                   {"Conv", 1, 2},
                   {"ConvTranspose", 1, 2},
                   {"DeformConv", 1, 4},
                   {"Einsum", 0, 7},
                   {"Gather", 0, 0},
                   {"LayerNormalization", 1, 2},
                   {"RMSNormalization", 1, 1},
                   {"SimplifiedLayerNormalization", 1, 1},
                   {"SkipLayerNormalization", 2, 4},
                   {"SkipSimplifiedLayerNormalization", 2, 3},
                   {"EmbedLayerNormalization", 2, 6},
                   {"GroupNormalization", 1, 2},
                   {"InstanceNormalization", 1, 2},
                   {"BatchNormalization", 1, 2},
                   {"PRelu", 1, 1},
                   {"LSTM", 1, 3},
                   {"GRU", 1, 3},
                   {"RNN", 1, 3},
                   {"Attention", 1, 2},
                   {"QAttention", 1, 2},
                   {"MultiHeadAttention", 3, 3},
                   {"FusedMatMul", 0, 1},
                   {"FusedConv", 1, 2},
                   {"BiasGelu", 1, 1},
                   {"FastGelu", 1, 1},
                   {"MatMulNBits", 1, 1},
                   {"MatMulInteger", 0, 1},
                   {"ConvInteger", 1, 1},
                   {"QLinearConv", 3, 3},
                   {"QLinearMatMul", 0, 3},
                   {"MatMulIntegerToFloat", 1, 1},
                   {"DynamicQuantizeMatMul", 1, 1},
                   {"QGemm", 3, 3}};
    if (is(n, "BatchNormalization") && k > 2) return AS_STATISTIC;
    if (is(n, "QuantizeLinear") || is(n, "DequantizeLinear")) return k ? AS_SHAPE : AS_OPERAND;
    if (is(n, "QLinearMatMul") && k != 0 && k != 3) return AS_SHAPE;
    for (size_t i = 0; i < sizeof weights / sizeof *weights; i++)
        if (is(n, weights[i].op)) return k >= weights[i].first && k <= weights[i].last ? AS_WEIGHT : AS_SHAPE;
    if (k > 0 && (is(n, "Resize") || is(n, "Upsample") || is(n, "Pad") || is(n, "Clip") || is(n, "Dropout")))
        return AS_SHAPE;
    return AS_OPERAND;
}

/* Positions times frequencies: a product over an axis of one is nobody's weight. */
static bool outer_product(const ft_onnx_tensor *t, int32_t k)
{
    return t && t->dims >= 2 && t->dim[t->dims - (k ? 2 : 1)] == 1;
}

/* The strongest use of each value, from the last node to the first, so that what passes through others is known. */
static void find_uses(const ft_onnx *o, uint8_t *uses)
{
    for (int32_t i = o->node_count - 1; i >= 0; i--) {
        const ft_onnx_node *n = &o->nodes[o->order[i]];
        for (int32_t k = 0; k < n->in_count; k++) {
            if (n->in[k] < 0) continue;
            uint8_t *mine = &uses[n->in[k]];
            use found = use_of(n, k);
            if (found == AS_WEIGHT && is(n, "MatMul") && outer_product(o->values[n->in[k]].tensor, k))
                found = AS_OPERAND;
            if (passes(n)) found = k == 0 && n->out_count > 0 && n->out[0] >= 0 ? (use)uses[n->out[0]] : AS_SHAPE;
            bool better = found == AS_WEIGHT || *mine == NOTHING || (*mine == AS_SHAPE && found != NOTHING);
            if (better && *mine != AS_WEIGHT) *mine = (uint8_t)found;
        }
    }
}

static double elements(const ft_onnx_tensor *t)
{
    double count = 1;
    for (int i = 0; i < t->dims; i++) count *= (double)t->dim[i];
    return count;
}

static bool is_weight(const ft_onnx_value *v, use how)
{
    const ft_onnx_tensor *t = v->tensor;
    bool floats = ft__onnx_type_floats(t->type);
    double bytes = ft__onnx_type_bytes(t->type), count = elements(t);
    bool packed = bytes > 0 && bytes <= 1 && t->type != FT_ONNX_BOOL; /* quantised */
    if (v->literal && count <= 4096) return false;
    if (how == NOTHING || how == AS_STATISTIC || how == AS_SHAPE || count < 1 || names_a_buffer(v->name)) return false;
    if (how == AS_WEIGHT) return (floats || packed) && !(count <= 1 && made_up(v->name)); /* a zero, spread out */
    if (!floats || made_up(v->name)) return false;
    return count > 1 || strchr(v->name, '.') || !strncmp(v->name, "logit_", 6); /* clip's, at the top of its modules */
}

/* -- labels ---------------------------------------------------------------------------------------- */

/* "/encoder/layer.0/attention/query/MatMul_3" and "encoder.layer.0.attention.query.weight" become
 * "encoder/layer/attention/query": what layers have in common, without dots, which mean modules to the timeline. */
static const char *label(ft_onnx *o, const char *path, bool weight)
{
    char out[96];
    size_t length = 0, last = 0;
    if (weight) { /* without its own last word */
        const char *dot = strrchr(path, '.');
        last = dot ? (size_t)(dot - path) : strlen(path);
    } else {
        last = strlen(path);
        while (last > 0 && isdigit((unsigned char)path[last - 1])) last--;
        if (!path[last] || last == 0 || path[last - 1] != '_')
            last = strlen(path);
        else
            last--;
    }
    for (size_t i = 0; i < last;) {
        size_t word = strcspn(path + i, "./:");
        if (i + word > last) word = last - i;
        bool digits = word > 0;
        for (size_t k = 0; k < word; k++) digits &= isdigit((unsigned char)path[i + k]) != 0;
        if (word && !digits) {
            while (length + word + 2 > sizeof out && length) { /* the end of a path tells more than its beginning */
                char *slash = memchr(out, '/', length);
                size_t gone = slash ? (size_t)(slash - out) + 1 : length;
                memmove(out, out + gone, length - gone);
                length -= gone;
            }
            if (word + 2 > sizeof out) return NULL;
            if (length) out[length++] = '/';
            memcpy(out + length, path + i, word);
            length += word;
        }
        i += word + 1;
    }
    return length ? ft__arena_copy(o->arena, out, length) : NULL;
}

static const char *label_of(ft_onnx *o, const ft_onnx_node *n)
{
    const char *found = NULL;
    for (int32_t k = 0; k < n->in_count && !found; k++) {
        const ft_onnx_value *v = n->in[k] >= 0 ? &o->values[n->in[k]] : NULL;
        /* Through the transpositions that exporters leave between a weight and its product. */
        for (int step = 0; v && step < 4 && v->maker >= 0 && passes(&o->nodes[v->maker]); step++)
            v = o->nodes[v->maker].in_count && o->nodes[v->maker].in[0] >= 0 ? &o->values[o->nodes[v->maker].in[0]]
                                                                             : NULL;
        if (v && v->weight && strchr(v->name, '.') && !made_up(v->name)) found = label(o, v->name, true);
    }
    /* An exporter that folded the transposition has renamed the weight, but not the bias. */
    const ft_onnx_value *bias = n->bias >= 0 ? &o->values[n->bias] : NULL;
    if (!found && bias && strchr(bias->name, '.') && !made_up(bias->name)) found = label(o, bias->name, true);
    if (!found && strncmp(n->name, "node_", 5) != 0 && strchr(n->name, '/')) found = label(o, n->name, false);
    return found ? found : n->op;
}

/* -- the pass -------------------------------------------------------------------------------------- */

static void find_main_float(ft_onnx *o)
{
    double bytes[FT_ONNX_TYPES] = {0};
    o->main_float = FT_ONNX_FLOAT;
    for (int32_t i = 0; i < o->value_count; i++) {
        const ft_onnx_tensor *t = o->values[i].tensor;
        if (t && ft__onnx_type_floats(t->type)) bytes[t->type] += elements(t) * ft__onnx_type_bytes(t->type);
    }
    for (int type = 0; type < FT_ONNX_TYPES; type++)
        if (bytes[type] > bytes[o->main_float]) o->main_float = type;
}

ft_status ft__onnx_weights(ft_onnx *o, ft_error *err)
{
    uint8_t *uses = ft__arena_alloc(o->arena, (size_t)o->value_count + 1);
    if (!uses) return ft__no_memory(err);
    find_uses(o, uses);
    for (int32_t i = 0; i < o->value_count; i++)
        if (o->values[i].tensor) o->values[i].weight = is_weight(&o->values[i], (use)uses[i]);
    find_main_float(o);
    return FT_OK;
}

void ft__onnx_labels(ft_onnx *o)
{
    for (int32_t i = 0; i < o->node_count; i++) o->nodes[i].label = label_of(o, &o->nodes[i]);
}

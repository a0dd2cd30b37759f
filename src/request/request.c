/* request.c: reading `"task": "kernel"`. Which keys an operator has stands in fields.c.
 *
 * Sizes are checked twice on purpose: here each by itself (a whole number, at least 0 or 1, at most 2^40), with the
 * key in the error; in ft__op_check together (products, what the device can do).
 *
 * What this leaves out: whole models (model.c).
 */
#include "request/request.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "graph/operator.h"
#include "kernel/kernel.h"
#include "request/keys.h"
#include "request/words.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define LARGEST_REAL 1e18   /* beyond any machine's bytes or operations */
enum { MOST_SMALL = 1024 }; /* of counts: experts of a token, inputs of an operator */

/* Elements of an unknown operator, in place of its bytes (see read_other). */
static const char *const other_elements[] = {"numel", "rows", "cols", "inputs"};

/* -- formats ----------------------------------------------------------------------------------- */

static ft_status read_dtype(const json_t *object, const char *key, ft_dtype *out, ft_error *err)
{
    const char *name = NULL;
    FT_TRY(ft__json_string(object, key, FT_OPTIONAL, &name, "", err));
    if (!name || ft_dtype_parse(name, out)) return FT_OK;
    if (!strncmp(name, "amp_", 4))
        return ft__fail_at(
            err, FT_E_UNSUPPORTED, key, 0, 0,
            "\"%.20s\" is a recipe for whole models; ask for one kernel in the dtype of its operands, \"%s\"", name,
            strcmp(name, "amp_fp16") ? "bf16" : "fp16");
    int ignored = 0;
    return ft__request_word(object, key, ft__dtype_words, COUNT(ft__dtype_words), &ignored, err);
}

/* Weights in the format of the arithmetic, or wider names of it, are stored as computed. */
static ft_status read_storage(const json_t *object, const char *key, ft_dtype math, ft_storage *out, ft_error *err)
{
    const char *name = NULL;
    ft_dtype wide;
    int word = FT_STORED_AS_COMPUTED;
    FT_TRY(ft__json_string(object, key, FT_OPTIONAL, &name, "", err));
    if (!name) return FT_OK;
    if (!strcmp(name, "fp4")) name = "nvfp4";
    if (ft_dtype_parse(name, &wide) && ft_dtype_bytes(wide) >= 2) {
        if (ft_dtype_bytes(wide) <= ft_dtype_bytes(math)) return FT_OK;
        return ft__fail_at(err, FT_E_RANGE, key, 0, 0,
                           "\"%s\" \"%s\" is wider than \"dtype\" \"%s\": expected weights of as many bits or fewer",
                           key, name, ft_dtype_name(math));
    }
    FT_TRY(ft__request_word_said(name, key, key, ft__storage_words, FT_STORAGE_COUNT, &word, err));
    *out = (ft_storage)word;
    return FT_OK;
}

/* -- fields ------------------------------------------------------------------------------------ */

/* Fields that hold the place of a word in a list, as an int or as an enum. */
static const struct {
    const char *const *words;
    size_t count;
} words_of[] = {
    [FT_FIELD_PASS] = {ft__pass_words, COUNT(ft__pass_words)},
    [FT_FIELD_ENGINE] = {ft__engine_words, COUNT(ft__engine_words)},
    [FT_FIELD_LIBRARY] = {ft__library_words, COUNT(ft__library_words)},
    [FT_FIELD_MOE_BACKEND] = {ft__moe_backend_words, COUNT(ft__moe_backend_words)},
    [FT_FIELD_WEIGHT_KERNEL] = {ft__weight_kernel_words, COUNT(ft__weight_kernel_words)},
};
_Static_assert(sizeof(ft_pass) == sizeof(int) && sizeof(ft_engine) == sizeof(int) &&
                   sizeof(ft_attention_library) == sizeof(int),
               "fields of words are read as int");

/* Whether the field is given, and what it says. */
static ft_status read_switch(const json_t *object, const ft_field *field, bool *given, bool *on, ft_error *err)
{
    *given = json_object_get(object, field->key) != NULL;
    return *given ? ft__json_bool(object, field->key, field->need, on, "", err) : FT_OK;
}

static ft_status read_field(const json_t *object, const ft_field *field, ft_op *op, ft_error *err)
{
    void *at = (char *)op + field->offset;
    int64_t whole = 0;
    int word = -1;
    bool given, on = false;
    switch (field->type) {
    case FT_FIELD_SIZE:
        return ft__json_whole(object, field->key, field->need, field->low, FT_LARGEST_SIZE, at, "", err);
    case FT_FIELD_SMALL:
        whole = *(int *)at;
        FT_TRY(ft__json_whole(object, field->key, field->need, field->low, MOST_SMALL, &whole, "", err));
        *(int *)at = (int)whole;
        return FT_OK;
    case FT_FIELD_REAL:
        return ft__json_number(object, field->key, field->need, (double)field->low, LARGEST_REAL, at, "", err);
    case FT_FIELD_SWITCH: return ft__json_bool(object, field->key, field->need, at, "", err);
    case FT_FIELD_TRISTATE:
        FT_TRY(read_switch(object, field, &given, &on, err));
        if (given) *(int *)at = on;
        return FT_OK;
    case FT_FIELD_UNLESS:
        FT_TRY(read_switch(object, field, &given, &on, err));
        if (given) *(bool *)at = !on;
        return FT_OK;
    case FT_FIELD_LAYOUT:
        FT_TRY(ft__request_word(object, field->key, ft__kernel_layout_words, 4, &word, err));
        if (word >= 0) memcpy(at, ft__kernel_layout_words[word], 3);
        return FT_OK;
    case FT_FIELD_IMAGE: /* nhwc, nchw */
        FT_TRY(ft__request_word(object, field->key, ft__image_words, COUNT(ft__image_words), &word, err));
        if (word >= 0) *(bool *)at = word == 0;
        return FT_OK;
    case FT_FIELD_ROUTING: /* even, random */
        FT_TRY(ft__request_word(object, field->key, ft__moe_routing_words, COUNT(ft__moe_routing_words), &word, err));
        if (word >= 0) *(bool *)at = word == 1;
        return FT_OK;
    case FT_FIELD_PASS:
    case FT_FIELD_ENGINE:
    case FT_FIELD_LIBRARY:
    case FT_FIELD_MOE_BACKEND:
    case FT_FIELD_WEIGHT_KERNEL:
        return ft__request_word(object, field->key, words_of[field->type].words, words_of[field->type].count, at, err);
    case FT_FIELD_STORAGE: return read_storage(object, field->key, op->dtype, at, err);
    case FT_FIELD_DTYPE: return read_dtype(object, field->key, at, err);
    case FT_FIELD_NAME: return ft__json_string(object, field->key, field->need, at, "", err);
    }
    return ft__fail(err, FT_E_BUG, "field \"%s\" has no type", field->key);
}

static bool names_a_field(const char *key)
{
    for (int kind = 0; kind < FT_OP_KIND_COUNT; kind++) {
        size_t count;
        const ft_field *fields = ft__request_fields((ft_op_kind)kind, &count);
        for (size_t i = 0; i < count; i++)
            if (!strcmp(fields[i].key, key)) return true;
    }
    return false;
}

/* A size of another operator is no slip of the pen: what this one takes helps more than the nearest key would. */
static ft_status check_foreign_keys(const json_t *object, const char *op_name, const char *const *known, size_t count,
                                    size_t common, ft_error *err)
{
    json_t *readable = (json_t *)(uintptr_t)object; /* Jansson's iterators take a non-const object, change nothing */
    int unknown = 0;
    for (void *it = json_object_iter(readable); it && unknown < FT_MOST_UNKNOWN;
         it = json_object_iter_next(readable, it)) {
        const char *key = json_object_iter_key(it);
        bool mine = false;
        for (size_t i = 0; i < count && !mine; i++) mine = !strcmp(known[i], key);
        unknown += !mine;
        if (mine || (!names_a_field(key) && ft__nearest(key, known, count))) continue;
        char list[240] = "";
        for (size_t i = common, at = 0; i < count && at < sizeof list; i++)
            at += (size_t)snprintf(list + at, sizeof list - at, "%s%s", i > common ? ", " : "", known[i]);
        return ft__fail_at(err, FT_E_KEY, key, 0, 0, "unknown key \"%s\": \"%.60s\" takes %s", key, op_name, list);
    }
    return FT_OK;
}

static ft_status check_keys(const json_t *object, const char *op_name, const ft_op *op, ft_error *err)
{
    static const char *const common[] = {"id", "task", "op", "gpu", "dtype", "timing", "quantile"};
    const char *known[COUNT(common) + COUNT(other_elements) + 16];
    size_t count = 0, field_count;
    for (size_t i = 0; i < COUNT(common); i++) known[count++] = common[i];
    const ft_field *fields = ft__request_fields(op->kind, &field_count);
    for (size_t i = 0; i < field_count; i++) known[count++] = fields[i].key;
    if (op->kind == FT_OP_OTHER)
        for (size_t i = 0; i < COUNT(other_elements); i++) known[count++] = other_elements[i];
    ft_status status = ft__json_known_keys(object, known, count, "", err);
    if (status != FT_E_KEY) return status;
    FT_TRY(check_foreign_keys(object, op_name, known, count, COUNT(common), err));
    return status;
}

/* What the user may leave out follows from what was said. */
static void fill_defaults(ft_op *op)
{
    switch (op->kind) {
    case FT_OP_ATTENTION:
        if (!op->u.attention.batch) op->u.attention.batch = 1;
        if (!op->u.attention.kv_heads) op->u.attention.kv_heads = op->u.attention.heads;
        if (!op->u.attention.kv_len) op->u.attention.kv_len = op->u.attention.q_len;
        if (!op->u.attention.v_dim) op->u.attention.v_dim = op->u.attention.head_dim;
        if (op->u.attention.library && op->engine == FT_ENGINE_ANY) op->engine = FT_ENGINE_BARE;
        break;
    case FT_OP_MLA: /* the latent sizes of DeepSeek-V2 and V3, which brought MLA (arXiv 2405.04434, 2412.19437) */
        if (!op->u.mla.batch) op->u.mla.batch = 1;
        if (!op->u.mla.kv_len) op->u.mla.kv_len = op->u.mla.q_len;
        if (!op->u.mla.kv_lora) op->u.mla.kv_lora = 512;
        if (!op->u.mla.rope_dim) op->u.mla.rope_dim = 64;
        if (!op->u.mla.nope_dim) op->u.mla.nope_dim = 128;
        if (!op->u.mla.v_dim) op->u.mla.v_dim = 128;
        break;
    case FT_OP_CONV2D:
        if (!op->u.conv.s) op->u.conv.s = op->u.conv.r;
        break;
    default: break;
    }
}

/* -- operators --------------------------------------------------------------------------------- */

/* Names are offered from everything `op` accepts: the list above, every pointwise and every row operator. */
static const char *nearest_op(const char *name)
{
    const char *names[192];
    size_t base, count = 0;
    const char *const *listed = ft__request_op_names(&base);
    for (size_t i = 0; i < base; i++) names[count++] = listed[i];
    for (int i = 0; i < ft__row_op_count && count < COUNT(names); i++) names[count++] = ft__row_ops[i].name;
    for (int i = 0; i < ft__pointwise_op_count && count < COUNT(names); i++) names[count++] = ft__pointwise_ops[i].name;
    return ft__nearest(name, names, count);
}

/* An unknown operator is memory-bound by its bytes: given, or counted from its elements as one pass over each input
 * and the output. Without either, a name close to a known one was a slip of the pen. */
static ft_status read_other(const json_t *object, ft_op *op, ft_error *err)
{
    if (ft__key_get(object, FT_KEY_ID_BYTES)) return FT_OK;
    const char *nearest = nearest_op(op->name);
    if (nearest)
        return ft__fail_at(err, FT_E_NAME, "op", 0, 0, "unknown op \"%.60s\"; did you mean \"%s\"?", op->name, nearest);
    int64_t numel = 0, rows = 0, cols = 0, inputs = 1;
    FT_TRY(ft__json_whole(object, FT_KEY(NUMEL), FT_OPTIONAL, 1, FT_LARGEST_SIZE, &numel, "", err));
    FT_TRY(ft__json_whole(object, FT_KEY(ROWS), FT_OPTIONAL, 1, FT_LARGEST_SIZE, &rows, "", err));
    FT_TRY(ft__json_whole(object, FT_KEY(COLS), FT_OPTIONAL, 1, FT_LARGEST_SIZE, &cols, "", err));
    FT_TRY(ft__json_whole(object, FT_KEY(INPUTS), FT_OPTIONAL, 1, 1024, &inputs, "", err));
    double elements = numel ? (double)numel : (double)rows * (double)cols;
    if (elements <= 0)
        return ft__fail_at(
            err, FT_E_NAME, "op", 0, 0,
            "unknown op \"%.60s\": an unknown operator is forecast from the memory it moves; give \"bytes\", "
            "\"numel\" or \"rows\" and \"cols\"",
            op->name);
    op->u.other.bytes = elements * ft_dtype_bytes(op->dtype) * (double)(inputs + 1);
    return FT_OK;
}

static ft_status read_elementwise(const json_t *object, const char *op_name, ft_op *op, ft_error *err)
{
    /* A fused chain has no name, but says how much it computes per element. */
    bool described = ft__key_get(object, FT_KEY_ID_NAME) || ft__key_get(object, FT_KEY_ID_OPS_PER_ELEMENT);
    if (!strcmp(op_name, "elementwise") && !described)
        return ft__fail_at(err, FT_E_MISSING, "name", 0, 0,
                           "\"name\" is missing: which elementwise operator (add, gelu, ...)? A fused chain gives "
                           "\"ops_per_element\" instead");
    if (ft__key_get(object, FT_KEY_ID_INPUTS)) return FT_OK;
    int known = ft__pointwise_op_find(op->name);
    if (known >= 0) op->u.elementwise.inputs = ft__pointwise_ops[known].inputs;
    return FT_OK;
}

static ft_status check_pass(const ft_op *op, ft_error *err)
{
    if (op->kind != FT_OP_ROW || op->pass == FT_PASS_FWD) return FT_OK;
    int at = ft__row_op_find(op->name);
    if (at >= 0 && ft__row_ops[at].back_reads + ft__row_ops[at].back_writes > 0) return FT_OK;
    return ft__fail_at(err, FT_E_UNSUPPORTED, "pass", 0, 0, "\"%s\" has no backward pass; leave \"pass\" out",
                       op->name);
}

/* The names PyTorch users give their steps. A name outside this list would be costed as plain SGD without a word. */
static ft_status check_optimizer(const ft_op *op, ft_error *err)
{
    static const char *const names[] = {"adamw",         "adamw_fused",  "adamw_foreach",      "adamw_loop",
                                        "adamw_8bit",    "adam",         "adafactor",          "bert_adam",
                                        "sgd",           "sgd_fused",    "sgd_foreach",        "muon",
                                        "lamb",          "sgd_momentum", "sgd_momentum_fused", "sgd_momentum_foreach",
                                        "clip_grad_norm"};
    if (op->kind != FT_OP_OPTIMIZER) return FT_OK;
    for (size_t i = 0; i < COUNT(names); i++)
        if (!strcmp(names[i], op->name)) return FT_OK;
    const char *nearest = ft__nearest(op->name, names, COUNT(names));
    if (nearest)
        return ft__fail_at(err, FT_E_NAME, "name", 0, 0, "unknown optimizer \"%.60s\"; did you mean \"%s\"?", op->name,
                           nearest);
    return ft__fail_at(
        err, FT_E_NAME, "name", 0, 0,
        "unknown optimizer \"%.60s\"; known are adamw, adamw_foreach, adamw_fused, adamw_loop, adamw_8bit, "
        "adafactor, bert_adam, sgd, sgd_momentum, muon, clip_grad_norm",
        op->name);
}

static ft_status read_op(const json_t *object, const char *name, ft_op *op, ft_error *err)
{
    ft__op_init(name, op);
    if (op->kind == FT_OP_COLLECTIVE)
        return ft__fail_at(err, FT_E_NAME, "op", 0, 0,
                           "\"%s\" is an exchange among GPUs: ask with \"task\": \"collective\"", name);
    FT_TRY(read_dtype(object, "dtype", &op->dtype, err));
    op->kv_dtype = op->dtype;
    if (op->kind == FT_OP_OTHER) FT_TRY(read_other(object, op, err));
    FT_TRY(check_keys(object, name, op, err));
    size_t count;
    const ft_field *fields = ft__request_fields(op->kind, &count);
    for (size_t i = 0; i < count; i++) FT_TRY(read_field(object, &fields[i], op, err));
    if (op->kind == FT_OP_ELEMENTWISE) FT_TRY(read_elementwise(object, name, op, err));
    FT_TRY(check_pass(op, err));
    FT_TRY(check_optimizer(op, err));
    fill_defaults(op);
    return FT_OK;
}

/* -- the request ------------------------------------------------------------------------------- */

ft_status ft__request_task(const json_t *object, ft_ask *out, ft_error *err)
{
    if (!json_is_object(object))
        return ft__fail_at(err, FT_E_TYPE, "", 0, 0, "a request is one JSON object, {\"task\": \"train\", ...}");
    const json_t *id = ft__key_get(object, FT_KEY_ID_ID);
    if (json_is_object(id) || json_is_array(id))
        return ft__fail_at(err, FT_E_TYPE, "id", 0, 0, "\"id\" must be a string, a number, true, false or null");
    int task = FT_ASK_TRAIN; /* the contract's default */
    FT_TRY(ft__request_word(object, "task", ft__ask_words, COUNT(ft__ask_words), &task, err));
    if (!ft__key_get(object, FT_KEY_ID_TASK) && ft__key_get(object, FT_KEY_ID_OP) &&
        !ft__key_get(object, FT_KEY_ID_MODEL))
        return ft__fail_at(err, FT_E_MISSING, "task", 0, 0,
                           "\"task\" is missing: one operator is \"task\": \"kernel\"; the default is \"train\"");
    bool serves = ft__key_get(object, FT_KEY_ID_SLO) || ft__key_get(object, FT_KEY_ID_RATE);
    *out = task == FT_ASK_PLAN && serves     ? FT_ASK_PLAN_SERVE
           : task == FT_ASK_CHOOSE && serves ? FT_ASK_CHOOSE_SERVE
                                             : (ft_ask)task;
    return FT_OK;
}

ft_status ft__request_read(const json_t *object, ft_device_source find, void *source, ft_request *out, ft_error *err)
{
    ft_ask ask = FT_ASK_KERNEL;
    memset(out, 0, sizeof *out);
    FT_TRY(ft__request_task(object, &ask, err));
    if (ask != FT_ASK_KERNEL)
        return ft__fail_at(err, FT_E_UNSUPPORTED, "task", 0, 0, "one kernel is \"task\": \"kernel\"");
    const char *name = NULL;
    FT_TRY(ft__json_string(object, FT_KEY(OP), FT_REQUIRED, &name, "", err));
    if (!*name) return ft__fail_at(err, FT_E_NAME, "op", 0, 0, "\"op\" is empty");
    FT_TRY(read_op(object, name, &out->op, err));

    int timing = FT_TIMING_DEVICE;
    FT_TRY(ft__request_word(object, "timing", ft__timing_words, COUNT(ft__timing_words), &timing, err));
    out->op.timing = (ft_timing)timing;
    FT_TRY(ft__json_number(object, FT_KEY(QUANTILE), FT_OPTIONAL, 0.5, 0.99, &out->quantile, "", err));

    const json_t *gpu = ft__key_get(object, FT_KEY_ID_GPU);
    if (!gpu)
        return ft__fail_at(err, FT_E_MISSING, "gpu", 0, 0,
                           "\"gpu\" is missing: a name (h100_sxm), a file or a spec object");
    FT_TRY(find(source, gpu, &out->device, err));
    return ft__op_check(&out->op, out->device, err);
}

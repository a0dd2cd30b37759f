/* aten.c: scan operators up. */
#include "trace/aten.h"

#include <string.h>

#include "trace/aten_entry.h"

/* Operators that look like any other and have their own one pass: one unit of arithmetic. */
static const char *const plain[] = {
    "abs",
    "clamp",
    "clamp_max",
    "log",
    "log1p",
    "log2",
    "erf",
    "floor",
    "ceil",
    "round",
    "trunc",
    "sign",
    "reciprocal",
    "softplus",
    "leaky_relu",
    "elu",
    "mish",
    "hardtanh",
    "hardswish",
    "triu",
    "tril",
    "arange",
    "normal",
    "uniform",
    "random",
    "bernoulli",
    "expm1",
    "square",
    "remainder",
    "fmod",
    "hardsigmoid",
    "mse_loss",
    "erfinv",
    "repeat",
    "threshold",
    "randint",
    "exponential",
    "leaky_relu_backward",
    "softplus_backward",
    "elu_backward",
    "hardswish_backward",
    "mish_backward",
    "hardtanh_backward",
    "mse_loss_backward",
};

/* No kernel: other views of the same memory, allocations, questions; and operators that only call others. */
static const char *const nothing[] = {
    "view",
    "reshape",
    "transpose",
    "permute",
    "expand",
    "slice",
    "select",
    "unsqueeze",
    "squeeze",
    "t",
    "as_strided",
    "empty",
    "empty_like",
    "empty_strided",
    "detach",
    "alias",
    "split",
    "chunk",
    "unbind",
    "narrow",
    "_unsafe_view",
    "unflatten",
    "flatten",
    "expand_as",
    "view_as",
    "lift_fresh",
    "result_type",
    "item",
    "_local_scalar_dense",
    "resolve_conj",
    "resolve_neg",
    "resize_",
    "set_",
    "set_data",
    "is_nonzero",
    "numpy_T",
    "split_with_sizes",
    "_reshape_alias",
    "diagonal",
    "unfold",
    "movedim",
    "swapaxes",
    "to",
    "contiguous",
    "zeros",
    "ones",
    "full",
    "new_zeros",
    "new_empty",
    "new_ones",
    "new_full",
    "matmul",
    "einsum",
    "layer_norm",
    "batch_norm",
    "softmax",
    "log_softmax",
    "dropout",
    "cross_entropy_loss",
    "nll_loss",
    "nll_loss_nd",
    "conv1d",
    "conv2d",
    "conv3d",
    "_convolution",
    "scaled_dot_product_attention",
    "_scaled_dot_product_attention_math",
    "adaptive_avg_pool2d",
    "max_pool2d",
    "rms_norm",
    "feature_dropout",
    "type_as",
    "float",
    "half",
    "bfloat16",
    "repeat_interleave",
    "index_put_",
    "broadcast_tensors",
    "meshgrid",
    "data_ptr",
    "requires_grad_",
    "retain_grad",
    "detach_",
    "embedding_backward",
    "_has_compatible_shallow_copy_type",
    "squeeze_",
    "unsqueeze_",
    "transpose_",
    "t_",
    "record_stream",
    "_nested_tensor_from_mask",
    "scalar_tensor",
    "pin_memory",
    "is_pinned",
    "_pin_memory",
    "_fused_sdp_choice",
    "broadcast_to",
    "unsafe_split",
    "unsafe_chunk",
    "hstack",
    "concat",
    "concatenate",
    "_foreach_tensor_list",
    "_assert_async",
    "_assert_scalar",
};

static const char *bare(const char *name)
{
    const char *last = strrchr(name, ':');
    return last && last > name && last[-1] == ':' ? last + 1 : name;
}

static bool among(const char *const *list, size_t count, const char *name, size_t length)
{
    for (size_t i = 0; i < count; i++)
        if (strlen(list[i]) == length && !memcmp(list[i], name, length)) return true;
    return false;
}

static const ft_aten_entry *find(const char *name)
{
    size_t length = strlen(name);
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < ft__aten_table_count; i++)
            if (strlen(ft__aten_table[i].name) == length && !memcmp(ft__aten_table[i].name, name, length))
                return &ft__aten_table[i];
        if (length < 2 || name[length - 1] != '_') return NULL;
        length--;
    }
    return NULL;
}

static bool is_plain(const char *name)
{
    size_t n = strlen(name);
    if (among(plain, sizeof plain / sizeof *plain, name, n)) return true;
    return n > 1 && name[n - 1] == '_' && among(plain, sizeof plain / sizeof *plain, name, n - 1);
}

/* -- what makers use ----------------------------------------------------------------------------- */

ft_called_part *ft__call_add(const ft_calling *c, ft_op op)
{
    if (c->out->count == FT_CALLED_PARTS) return NULL;
    op.timing = FT_TIMING_DEVICE;
    ft_called_part *part = &c->out->part[c->out->count++];
    *part = (ft_called_part){.op = op, .times = 1};
    return part;
}

const ft_input *ft__call_input(const ft_calling *c, int at)
{
    static const ft_input empty = {.concrete = ""};
    return at >= 0 && at < c->in->count ? &c->in->at[at] : &empty;
}

ft_dtype ft__call_dtype(const ft_calling *c, const ft_input *x)
{
    if (x->floating && x->element_bytes > 0) return x->dtype;
    if (x->element_bytes > 0) return x->element_bytes >= 4 ? FT_FP32 : x->element_bytes >= 2 ? FT_BF16 : FT_INT8;
    return c->usual;
}

double ft__call_bytes(const ft_calling *c, const ft_input *x) { return ft__input_bytes(x, ft_dtype_bytes(c->usual)); }

/* -- the doors ----------------------------------------------------------------------------------- */

bool ft__aten_call(const char *name, const ft_inputs *in, const char *kernel, double blocks, ft_dtype usual,
                   ft_called *out)
{
    static const int8_t once[6] = {10, 10}, all[6] = {0};
    memset(out, 0, sizeof *out);
    out->class = FT_CALLED_OTHER;
    const char *own = bare(name);
    ft_calling c = {own, in, kernel ? kernel : "", blocks > 0 ? blocks : 0, usual, "", once, out};
    const ft_aten_entry *e = find(own);
    if (e) {
        out->class = e->class;
        out->known = true;
        c.word = e->word;
        c.p = e->p;
        if (e->make(&c) && out->count > 0) return true;
        out->count = 0;
        out->known = false;
    } else if (is_plain(own)) {
        out->class = FT_CALLED_POINTWISE;
        out->known = true;
        c.word = "other";
        c.p = all;
        return ft__call_pointwise(&c) && out->count > 0;
    } else if (ft__aten_free(name) && !*c.kernel) {
        return false;
    }
    /* Anything else is taken to read all of its tensors and to write as much as the largest has. */
    if (!strncmp(own, "triton_", 7)) {
        out->class = strstr(own, "_tem_")             ? FT_CALLED_PRODUCT
                     : strncmp(own, "triton_poi", 10) ? FT_CALLED_NORM
                                                      : FT_CALLED_POINTWISE;
        return ft__call_generated(&c) && out->count > 0;
    }
    c.word = "other";
    return ft__call_passes(&c) && out->count > 0;
}

bool ft__aten_whole(const char *name)
{
    const ft_aten_entry *e = find(bare(name));
    return e && e->role == FT_ATEN_WHOLE;
}

bool ft__aten_wraps(const char *name)
{
    const ft_aten_entry *e = find(bare(name));
    return e && e->role == FT_ATEN_WRAPS;
}

bool ft__aten_runs(const char *name)
{
    const char *own = bare(name);
    return find(own) || is_plain(own);
}

bool ft__aten_free(const char *name)
{
    const char *own = bare(name);
    return among(nothing, sizeof nothing / sizeof *nothing, own, strlen(own));
}

const char *ft__called_class_name(ft_called_class c)
{
    static const char *const names[FT_CALLED_CLASSES] = {"products", "norms",     "elementwise",
                                                         "memory",   "optimizer", "other"};
    return (unsigned)c < FT_CALLED_CLASSES ? names[c] : "";
}

/* aten_dense.c: products, attention, convolutions, optimizer steps. */
#include <math.h>
#include <string.h>

#include "graph/emit.h"
#include "trace/aten_entry.h"

/* fp32 products run as TF32 where the kernel's name says so; without a name TF32 is off, as PyTorch starts. */
static ft_dtype math_of(const ft_calling *c, const ft_input *x)
{
    ft_dtype d = ft__call_dtype(c, x);
    if (d != FT_FP32 || !*c->kernel) return d;
    return strstr(c->kernel, "tf32") || strstr(c->kernel, "s1688") || strstr(c->kernel, "s16816") ||
                   strstr(c->kernel, "f32_f32_f32_f32_f32_tn_n_tilesize") || !strncmp(c->kernel, "nvjet_sm", 8)
               ? FT_TF32
               : d;
}

/* 'n': rows of the last two axes lie one after the other in memory; 't': columns do. */
static char order(const ft_input *x)
{
    if (x->rank < 2 || !x->strides_known) return 'n';
    int64_t row = x->stride[x->rank - 2], column = x->stride[x->rank - 1];
    if (x->dim[x->rank - 1] == 1 && x->dim[x->rank - 2] > 1) return row == 1 && column != 1 ? 't' : 'n';
    return column != 1 && row == 1 ? 't' : 'n';
}

/* p: A, B, bias (-1: none); p[3] 1: B is a Linear's weight, [n, k]. */
bool ft__call_product(const ft_calling *c)
{
    const ft_input *a = ft__call_input(c, c->p[0]), *b = ft__call_input(c, c->p[1]);
    if (a->rank < 1 || b->rank < 1) return false;
    int64_t k = ft__input_last(a), m = a->rank > 1 ? a->dim[a->rank - 2] : 1, n, batch = 1;
    bool weight = c->p[3] == 1;
    if (b->rank == 1) {
        n = 1;
    } else {
        n = weight ? b->dim[b->rank - 2] : b->dim[b->rank - 1];
        if ((weight ? b->dim[b->rank - 1] : b->dim[b->rank - 2]) != k) return false;
    }
    for (int i = 0; i + 2 < a->rank; i++) batch *= a->dim[i];
    if (weight || b->rank < 3) { /* one matrix for all */
        m *= batch;
        batch = 1;
    }
    char layout[3] = {order(a), weight ? (order(b) == 'n' ? 't' : 'n') : order(b), 0};
    const ft_input *bias = ft__call_input(c, c->p[2]);
    ft_op op = ft__gemm_kernel(math_of(c, a), batch, m, n, k, layout, c->p[2] >= 0 && bias->numel > 0);
    op.u.gemm.quantized = 1;
    ft_called_part *part = ft__call_add(c, op);
    if (!part) return false;
    if (batch > 1) {
        part->op.name = "bmm";
        if (m == 1) part->manner |= layout[1] == 't' ? FT_MANNER_VECTOR : FT_MANNER_VECTOR_ACROSS;
    }
    return true;
}

/* Rows of A go to the matrices of B by an index: all of A's arithmetic once. */
bool ft__call_grouped(const ft_calling *c)
{
    const ft_input *a = ft__call_input(c, 0), *b = ft__call_input(c, 1);
    if (a->rank < 2 || b->rank < 2) return false;
    double groups = fmax(1, ft__call_input(c, 2)->numel);
    int64_t m = a->dim[a->rank - 2], k = a->dim[a->rank - 1], n = b->dim[b->rank - 1];
    ft_called_part *part = ft__call_add(c, ft__gemm_kernel(math_of(c, a), 1, m, n, k, "nn", false));
    if (!part) return false;
    part->manner |= FT_MANNER_UNEVEN;
    part->each = fmax(1, (double)m / groups);
    return true;
}

/* p: image, filter, stride, padding, groups; p[5] 1: the gradients, whose mask is behind the groups. */
bool ft__call_conv(const ft_calling *c)
{
    const ft_input *x = ft__call_input(c, c->p[0]), *w = ft__call_input(c, c->p[1]);
    int64_t stride[4] = {1}, pad[4] = {0}, groups = 1;
    if (x->rank < 3 || x->rank > 4 || w->rank != x->rank) return false;
    int strides = ft__input_numbers(c->in, c->p[2], stride, 4), pads = ft__input_numbers(c->in, c->p[3], pad, 4);
    ft__input_numbers(c->in, c->p[4], &groups, 1);
    bool line = x->rank == 3;
    ft_op op = {.kind = FT_OP_CONV2D, .name = "conv2d", .dtype = math_of(c, x), .kv_dtype = ft__call_dtype(c, x)};
    if (!*c->kernel && op.dtype == FT_FP32) op.dtype = FT_TF32; /* as PyTorch starts: on for cuDNN, off for products */
    op.u.conv.n = x->dim[0];
    op.u.conv.c = x->dim[1];
    op.u.conv.h = line ? 1 : x->dim[2];
    op.u.conv.w = x->dim[x->rank - 1];
    op.u.conv.k = w->dim[0];
    op.u.conv.r = line ? 1 : w->dim[2];
    op.u.conv.s = w->dim[w->rank - 1];
    op.u.conv.stride = strides > 0 ? stride[strides - 1] : 1;
    op.u.conv.pad = pads > 0 ? pad[pads - 1] : 0;
    op.u.conv.groups = c->p[4] >= 0 && groups > 0 ? groups : x->dim[1] / (w->dim[1] > 0 ? w->dim[1] : 1);
    op.u.conv.nhwc = x->strides_known && x->rank == 4 && x->stride[1] == 1 && x->dim[1] > 1;
    if (op.u.conv.groups < 1 || op.u.conv.stride < 1 || op.u.conv.c != w->dim[1] * op.u.conv.groups) return false;
    if (op.u.conv.h + 2 * op.u.conv.pad < op.u.conv.r) { /* a row of samples: nothing above or below it */
        double all = ft__call_bytes(c, x) + ft__call_bytes(c, w);
        op = ft__bytes_kernel("conv1d", ft__call_dtype(c, x), 2 * all,
                              2 * x->numel * (double)w->dim[0] * (double)ft__input_last(w) / (double)op.u.conv.groups);
    } else if (c->p[5] == 1) {
        bool wanted[2] = {true, true};
        const ft_input *mask = ft__call_input(c, 10);
        if (mask->concrete_length > 6) {
            const char *comma = memchr(mask->concrete, ',', mask->concrete_length);
            wanted[0] = memcmp(mask->concrete, "[False", 6) != 0;
            wanted[1] = !comma || comma + 7 > mask->concrete + mask->concrete_length || memcmp(comma + 2, "False", 5);
        }
        op.pass = wanted[0] && wanted[1] ? FT_PASS_BWD
                                         : FT_PASS_FWD; /* one of the two is about as long as the forward one */
    }
    return ft__call_add(c, op) != NULL;
}

/* What the kernel's name says; PyTorch's own copies of the second generation and of CUTLASS' fused kernels. */
static ft_attention_library library_of(const char *kernel)
{
    if (strstr(kernel, "fmha_cutlass")) return FT_LIBRARY_XFORMERS;
    bool second = strstr(kernel, "flash_fwd") || strstr(kernel, "flash_bwd") || strstr(kernel, "pytorch_flash");
    return second ? FT_LIBRARY_FLASH : FT_LIBRARY_OPEN;
}

/* p: queries, dropout, causal; p[3] 1: heads stand before positions, 0: behind; p[4] 1: gradients; p[5]: the mask, an
 * added bias (-1: none). */
bool ft__call_attention(const ft_calling *c)
{
    const ft_input *q = ft__call_input(c, c->p[0]), *k = ft__call_input(c, c->p[0] + 1),
                   *v = ft__call_input(c, c->p[0] + 2);
    if (q->rank != 4 || k->rank != 4 || v->rank != 4) return false;
    int heads = c->p[3] == 1 ? 1 : 2, positions = 3 - heads;
    double dropout = 0;
    ft__input_number(c->in, c->p[1], &dropout);
    ft_op op = {.kind = FT_OP_ATTENTION, .name = "attention", .dtype = ft__call_dtype(c, q), .engine = FT_ENGINE_BARE};
    op.kv_dtype = ft__call_dtype(c, k);
    op.pass = c->p[4] == 1 ? FT_PASS_BWD : FT_PASS_FWD;
    op.u.attention.batch = q->dim[0];
    op.u.attention.heads = q->dim[heads];
    op.u.attention.kv_heads = k->dim[heads];
    op.u.attention.q_len = q->dim[positions];
    op.u.attention.kv_len = k->dim[positions];
    op.u.attention.head_dim = q->dim[3];
    op.u.attention.v_dim = v->dim[3] == q->dim[3] ? 0 : v->dim[3];
    op.u.attention.causal = ft__input_true(c->in, c->p[2]) && op.u.attention.q_len > 1;
    op.u.attention.library = library_of(c->kernel);
    if (op.u.attention.kv_heads > 0 && op.u.attention.heads % op.u.attention.kv_heads) return false;
    ft_called_part *part = ft__call_add(c, op);
    if (!part) return false;
    bool masked = c->p[5] >= 0 && ft__call_input(c, c->p[5])->numel > 1;
    if (masked) part->manner |= FT_MANNER_MASK;
    if (masked && op.u.attention.q_len > 1) part->manner |= FT_MANNER_MASK_ADDED;
    /* The kernels for fp32 draw their numbers beside the arithmetic. */
    if (dropout > 0 && ft_dtype_bytes(op.dtype) <= 2) part->manner |= FT_MANNER_DROPOUT;
    return true;
}

/* build.c: the builder itself: errors, tensors from outside, blocks. */
#include "graph/build.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "graph/emit.h"

ft_build ft__build_begin(ft_graph *g, ft_dtype math, bool autocast, bool training, ft_error *err)
{
    ft_dtype stored = autocast ? FT_FP32 : math;
    /* Formats of matrix units alone: what flows between the products is bf16, or fp32 for tf32. */
    if (stored == FT_FP8 || stored == FT_INT8 || stored == FT_FP4) stored = FT_BF16;
    if (stored == FT_TF32) stored = FT_FP32;
    return (ft_build){.g = g,
                      .err = err,
                      .math = math,
                      .stored = stored,
                      .weight_bytes = ft_dtype_bytes(stored),
                      .autocast = autocast,
                      .training = training,
                      .repeat = 1,
                      .block = -1};
}

void ft__build_fail(ft_build *b, ft_status code, const char *format, ...)
{
    if (b->status != FT_OK) return;
    char message[256];
    va_list list;
    va_start(list, format);
    vsnprintf(message, sizeof message, format, list);
    va_end(list);
    b->status = ft__fail(b->err, code, "%s", message);
}

const ft_tensor *ft__tensor_of(const ft_build *b, ft_ref x)
{
    static const ft_tensor nothing = {.rows = 1, .cols = 1, .element_bytes = 4, .name = "", .copies = 1};
    return x >= 0 && x < b->g->tensor_count ? &b->g->tensors[x] : &nothing;
}

/* Sizes are products of what a request says; 64 bits end at nine exabytes and so does our patience. */
static ft_ref keep(ft_build *b, const ft_tensor *t)
{
    if (b->status != FT_OK) return FT_NONE;
    if (t->rows < 1 || t->cols < 1 || (double)t->rows * (double)t->cols * 8 >= 0x1p63) {
        ft__build_fail(b, FT_E_RANGE, "a tensor of %.4g x %.4g elements is too large for any machine", (double)t->rows,
                       (double)t->cols);
        return FT_NONE;
    }
    ft_ref at = ft__graph_tensor(b->g, t);
    if (at == FT_NONE) ft__build_fail(b, FT_E_MEMORY, "out of memory");
    return at;
}

/* -- nodes ------------------------------------------------------------------------------------- */

ft_node ft__node_of(ft_verb verb, ft_at at)
{
    ft_node n = {.verb = verb, .at = at, .name = at->name, .count = 1, .traffic = 1, .effort = 1};
    n.op.kind = FT_OP_OTHER;
    n.op.name = "view";
    return n;
}

void ft__same_manner(ft_node *n, const ft_node *as)
{
    n->manner = as->manner;
    n->each = as->each;
    n->effort = as->effort;
}

void ft__node_in(ft_node *n, ft_ref x)
{
    if (x != FT_NONE && n->in_count < FT_NODE_INPUTS) n->in[n->in_count++] = x;
}

static bool trains(const ft_build *b, const ft_node *n)
{
    if (!b->training || b->untracked) return false;
    for (int i = 0; i < n->in_count; i++)
        if (ft__tensor_of(b, n->in[i])->trained) return true;
    return false;
}

ft_ref ft__node_out(ft_build *b, ft_node *n, int64_t rows, int64_t cols, ft_dtype dtype, double element_bytes)
{
    ft_tensor t = {.rows = rows,
                   .cols = cols,
                   .dtype = dtype,
                   .element_bytes = element_bytes,
                   .role = FT_ACTIVATION,
                   .trained = trains(b, n),
                   .storage = FT_NONE,
                   .block = b->block};
    ft_ref at = keep(b, &t);
    if (at != FT_NONE && n->out_count < FT_NODE_OUTPUTS) n->out[n->out_count++] = at;
    return at;
}

ft_ref ft__node_view(ft_build *b, ft_node *n, ft_ref x, int64_t rows, int64_t cols, bool strided)
{
    ft_tensor t = *ft__tensor_of(b, x);
    t.rows = rows;
    t.cols = cols;
    t.strided = strided;
    t.trained = trains(b, n);
    t.block = b->block;
    t.copies = 1;
    t.name = "";
    t.expert = FT_NO_EXPERT;
    if (t.role == FT_PARAMETER) t.role = FT_ACTIVATION; /* its gradient is on the way to the parameter's */
    ft_ref at = keep(b, &t);
    if (at != FT_NONE && n->out_count < FT_NODE_OUTPUTS) n->out[n->out_count++] = at;
    return at;
}

void ft__emit(ft_build *b, const ft_node *n)
{
    if (b->status != FT_OK) return;
    ft_node *kept = ft__graph_node(b->g, n);
    if (!kept) {
        ft__build_fail(b, FT_E_MEMORY, "out of memory");
        return;
    }
    kept->phase = b->phase;
}

void ft__op_share(ft_op *op, double shares)
{
    if (!(shares > 1)) return;
    if (op->kind == FT_OP_GEMM) op->u.gemm.m = (int64_t)ceil((double)op->u.gemm.m / shares);
    if (op->kind == FT_OP_ROW) op->u.row.rows = (int64_t)ceil((double)op->u.row.rows / shares);
    if (op->kind == FT_OP_ELEMENTWISE) {
        op->u.elementwise.numel = (int64_t)ceil((double)op->u.elementwise.numel / shares);
        op->u.elementwise.bytes /= shares;
    }
    if (op->kind == FT_OP_OTHER) {
        op->u.other.bytes /= shares;
        op->u.other.flops /= shares;
    }
}

/* -- tensors from outside ---------------------------------------------------------------------- */

ft_ref ft__input(ft_build *b, int64_t rows, int64_t cols, double element_bytes)
{
    ft_tensor t = {.rows = rows,
                   .cols = cols,
                   .dtype = b->stored,
                   .element_bytes = element_bytes,
                   .role = FT_INPUT,
                   .storage = FT_NONE,
                   .block = -1};
    return keep(b, &t);
}

ft_ref ft__activation(ft_build *b, int64_t rows, int64_t cols, ft_dtype dtype)
{
    ft_tensor t = {.rows = rows,
                   .cols = cols,
                   .dtype = dtype,
                   .element_bytes = ft_dtype_bytes(dtype),
                   .storage = FT_NONE,
                   .block = b->block};
    return keep(b, &t);
}

ft_ref ft__parameter(ft_build *b, const char *name, int64_t rows, int64_t cols)
{
    ft_graph *g = b->g;
    ft_tensor t = {.rows = rows,
                   .cols = cols,
                   .dtype = b->stored,
                   .element_bytes = ft_dtype_bytes(b->stored),
                   .role = FT_PARAMETER,
                   .trained = b->training && !b->frozen,
                   .storage = FT_NONE,
                   .block = b->block,
                   .name = name,
                   .copies = b->untracked                                   ? 0
                             : b->copies > 0                                ? b->copies
                             : b->once                                      ? 1
                             : b->runs_each > 1 && b->repeat > b->runs_each ? b->repeat / b->runs_each
                                                                            : b->repeat};
    ft_ref at = keep(b, &t);
    if (at == FT_NONE) return at;
    double all = (double)rows * (double)cols * (double)t.copies;
    g->parameters += all;
    g->active_parameters += all;
    g->parameter_bytes += all * t.element_bytes;
    g->parameter_tensors += t.copies;
    if (t.trained) {
        g->trained_parameters += all;
        g->trained_tensors += t.copies;
    }
    return at;
}

void ft__of_experts(ft_build *b, ft_ref parameter, ft_expert_part what)
{
    if (b->status == FT_OK && parameter != FT_NONE) b->g->tensors[parameter].expert = what;
}

ft_ref ft__buffer(ft_build *b, int64_t rows, int64_t cols, double element_bytes)
{
    ft_tensor t = {.rows = rows,
                   .cols = cols,
                   .dtype = b->stored,
                   .element_bytes = element_bytes,
                   .role = FT_BUFFER,
                   .storage = FT_NONE,
                   .block = -1,
                   .copies = b->repeat};
    b->g->buffer_bytes += (double)rows * (double)cols * element_bytes * (double)b->repeat;
    return keep(b, &t);
}

ft_ref ft__cache(ft_build *b, int64_t rows, int64_t cols, double element_bytes)
{
    ft_tensor t = {.rows = rows,
                   .cols = cols,
                   .dtype = b->stored,
                   .element_bytes = element_bytes,
                   .role = FT_CACHE,
                   .storage = FT_NONE,
                   .block = b->block,
                   .copies = b->repeat};
    return keep(b, &t);
}

/* -- blocks ------------------------------------------------------------------------------------ */

ft_ref ft__block_open(ft_build *b, const ft_block_info *at, int64_t repeat, ft_ref carry)
{
    if (b->status != FT_OK) return FT_NONE;
    ft_block block = {.name = at->name,
                      .kind = at->kind,
                      .trunk = at->trunk,
                      .phase = FT_FORWARD,
                      .first = b->g->node_count,
                      .repeat = repeat,
                      .carry_in = FT_NONE,
                      .carry_out = FT_NONE,
                      .fed_by = carry,
                      .mirror = -1};
    if (!ft__graph_block(b->g, &block)) {
        ft__build_fail(b, FT_E_MEMORY, "out of memory");
        return FT_NONE;
    }
    b->block = b->g->block_count - 1;
    b->repeat = repeat;
    b->modules = 0;
    b->cast_count = 0;
    if (carry == FT_NONE) return FT_NONE;
    /* The carry has memory of its own in the books: the previous iteration's result. */
    ft_tensor t = *ft__tensor_of(b, carry);
    t.storage = FT_NONE;
    t.block = b->block;
    t.role = FT_ACTIVATION;
    t.strided = t.permuted = t.across = false;
    /* Beside adapters what enters the first layer is frozen, and what enters the others was made with adapters: their
     * gradients go through the whole layer. */
    if (repeat > 1 && b->lora_rank > 0 && b->training && !b->untracked) t.trained = true;
    ft_ref carried = keep(b, &t);
    b->g->blocks[b->block].carry_in = carried;
    return carried;
}

ft_ref ft__block_close(ft_build *b, ft_ref carry)
{
    if (b->status != FT_OK) return FT_NONE;
    ft_block *block = &b->g->blocks[b->block];
    block->count = b->g->node_count - block->first;
    block->carry_out = carry;
    block->modules = b->modules;
    b->repeat = 1;
    return carry;
}

void ft__module(ft_build *b, int count) { b->modules += count; }

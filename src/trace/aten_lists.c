/* aten_lists.c: operators over lists of tensors, an optimizer's.
 *
 * PyTorch walks such a list with one kernel (MultiTensorApply.cuh), far from what a pointwise kernel of the same bytes
 * reaches: foreach AdamW in bf16 moves 2.2 TB/s on an H200 whose memory has 4.8. So a step's calls are taken as parts
 * of the steps that were measured as a whole (data/measurements/h200/optimizer.csv). SGD with momentum is a
 * multiplication and two additions, which read and write eight lists: each list is an eighth of it. AdamW has two
 * multiplications and an addition as well, of six lists; what is left of its time is shared by the fifteen lists of
 * lerp, addcmul, sqrt, div and addcdiv. */
#include <math.h>

#include "trace/aten_entry.h"
#include "trace/price_constants.h"

static const double of_momentum = FT_K_PRICE_OF_MOMENTUM, of_adamw = FT_K_PRICE_OF_ADAMW;

typedef struct lists {
    double numel; /* of the longest */
    double bytes; /* read */
    double count; /* of lists as long as that, those that are read */
    int64_t tensors;
    ft_dtype dtype;
} lists;

/* Formats stand in a recording's lists; a profile's have none, and the kernel's name says them. */
static lists gather(const ft_calling *c)
{
    lists g = {.dtype = ft__kernel_dtype(c->kernel, c->usual)};
    bool said = false;
    for (int i = 0; i < c->in->count; i++) {
        const ft_input *x = ft__call_input(c, i);
        if (!x->list || x->numel < 1) continue;
        if (x->element_bytes > 0 && x->floating && !said) {
            g.dtype = x->dtype;
            said = true;
        }
        if (x->numel > g.numel) g.numel = x->numel;
        if (x->tensors > g.tensors) g.tensors = x->tensors;
        g.bytes += x->numel * (x->element_bytes > 0 ? x->element_bytes : ft_dtype_bytes(g.dtype));
        if (x->numel > 16 * (double)x->tensors) g.count++;
    }
    if (g.numel < 1 && c->blocks >= 1) { /* too long to be written down; a block takes 65,536 elements */
        g.numel = c->blocks * 65536;
        g.tensors = (int64_t)(1 + c->blocks / 20);
        g.count = c->p[1] > 0 ? c->p[1] : 1;
        g.bytes = g.count * g.numel * ft_dtype_bytes(g.dtype);
    }
    return g;
}

static ft_op step_over(const lists *g, const char *name)
{
    ft_op op = {.kind = FT_OP_OPTIMIZER, .name = name, .dtype = g->dtype, .kv_dtype = g->dtype};
    op.u.optimizer.params = (int64_t)g->numel;
    op.u.optimizer.tensors = g->tensors > 0 ? g->tensors : 1;
    /* timeline/timed.c: sizes of a model's tensors mostly are multiples of 4, whatever their mean is. */
    if (op.u.optimizer.params > 4 * op.u.optimizer.tensors)
        op.u.optimizer.params -= op.u.optimizer.params % (4 * op.u.optimizer.tensors);
    return op;
}

/* A whole step over the tensors of its first list. */
bool ft__call_optimizer(const ft_calling *c)
{
    const ft_input *p = ft__call_input(c, 0);
    lists g = gather(c);
    if (p->list && p->numel >= 1) {
        g.numel = p->numel;
        g.tensors = p->tensors;
    }
    return g.numel >= 1 && g.numel < 1e15 && ft__call_add(c, step_over(&g, c->word)) != NULL;
}

/* p[0]: lists written, p[1]: lists read where nobody wrote down how many; p[2]: 1: as a part of momentum, 2: of AdamW,
 * 0: as a pointwise kernel, like lists of single numbers. */
bool ft__call_foreach(const ft_calling *c)
{
    lists g = gather(c);
    if (!(g.numel >= 1 && g.numel < 1e15)) return false;
    if (c->p[2] > 0 && g.count > 0) {
        ft_called_part *part = ft__call_add(c, step_over(&g, c->p[2] == 1 ? "sgd_momentum_foreach" : "adamw_foreach"));
        if (part) part->times = (g.count + c->p[0]) * (c->p[2] == 1 ? of_momentum : of_adamw);
        return part != NULL;
    }
    ft_op op = {.kind = FT_OP_ELEMENTWISE, .name = c->word, .dtype = g.dtype, .kv_dtype = g.dtype};
    op.u.elementwise.numel = (int64_t)g.numel;
    op.u.elementwise.inputs = g.count > 0 ? (int)g.count : 1;
    op.u.elementwise.bytes = fmax(1, g.bytes + c->p[0] * g.numel * ft_dtype_bytes(g.dtype));
    op.u.elementwise.pattern = FT_PATTERN_CONTIGUOUS;
    return ft__call_add(c, op) != NULL;
}

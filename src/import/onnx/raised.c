/* raised.c: what exporters write out of PyTorch's operators element by element, and what a file in fp32 no longer
 * says.
 *
 * torch.onnx writes silu as x * sigmoid(x) and rsqrt as 1 / sqrt(x): one kernel each in the framework. And a model that
 * is exported in fp32 has lost its casts to fp32, since they did nothing. Asked for in 16 bits it would run its norms
 * without them: a root mean square that is written out (Llama and its kin, T5) is raised here as their code raises it,
 * and so is the softmax of attention that is written out in such a model. */
#include <string.h>

#include "import/onnx/run.h"

static bool is(const ft_onnx_node *n, const char *op) { return !strcmp(n->op, op) && !*n->domain; }

/* The one node that reads the result of the node at hand; NULL. */
static const ft_onnx_node *only_reader(const ft_onnx_run *r)
{
    if (r->at->out_count < 1 || r->at->out[0] < 0) return NULL;
    const ft_onnx_value *v = &r->o->values[r->at->out[0]];
    return v->readers == 1 && !v->output ? &r->o->nodes[v->reader] : NULL;
}

static bool lowered(const ft_onnx_run *r, const ft_onnx_item *x)
{
    return !r->b->autocast && x->kind == FT_ONNX_MADE && x->type == FT_ONNX_FLOAT &&
           r->o->main_float == FT_ONNX_FLOAT && ft_dtype_bytes(r->b->stored) == 2;
}

bool ft__onnx_half_of_two(ft_onnx_run *r, const ft_onnx_item *x)
{
    const ft_onnx_node *next = only_reader(r);
    if (!next || x->kind != FT_ONNX_MADE || r->at->out_count < 1) return false;
    int32_t made = r->at->out[0], from = r->at->in[0];
    bool root = is(r->at, "Sqrt") && is(next, "Reciprocal");
    bool gate = is(r->at, "Sigmoid") && is(next, "Mul") && next->in_count == 2 &&
                ((next->in[0] == from && next->in[1] == made) || (next->in[1] == from && next->in[0] == made));
    if (!root && !gate) return false;
    ft__onnx_pass(r, 0, x);
    r->items[made].half = true;
    return true;
}

/* x^2 on its way to a mean, but not of what had its mean taken off: that is a layer norm. */
static bool squared_for_mean(const ft_onnx_run *r)
{
    const ft_onnx_node *next = only_reader(r);
    if (!next || !is(next, "ReduceMean") || r->at->in_count != 2 || r->at->in[0] < 0) return false;
    const int32_t maker = r->o->values[r->at->in[0]].maker;
    if (maker >= 0 && is(&r->o->nodes[maker], "Sub")) return false;
    return is(r->at, "Pow") || (is(r->at, "Mul") && r->at->in[0] == r->at->in[1]);
}

void ft__onnx_raise(ft_onnx_run *r, int count, ft_onnx_item **x, ft_onnx_item store[2])
{
    if (ft__onnx_failed(r) || count < 1 || count > 2) return;
    if (squared_for_mean(r) && lowered(r, x[0]) && ft__onnx_count(x[0]) > 0) {
        ft_onnx_item *from = &r->items[r->at->in[0]];
        from->raised = ft__cast(r->b, r->label, ft__onnx_ref(r, from), FT_FP32) + 1;
        r->raises = true;
    }
    /* Who was raised for its mean is multiplied with the root as it was raised. */
    bool root = is(r->at, "Mul") && count == 2 && (x[0]->raised > 0) != (x[1]->raised > 0);
    if (root) {
        const ft_onnx_item *other = x[x[0]->raised > 0];
        root = other->dims > 0 && other->dim[other->dims - 1] == 1;
    }
    if (!root && !squared_for_mean(r)) return;
    for (int i = 0; i < count; i++) {
        if (x[i]->raised <= 0) continue;
        store[i] = *x[i];
        store[i].ref = x[i]->raised - 1;
        x[i] = &store[i];
    }
}

void ft__onnx_lower(ft_onnx_run *r, int count, ft_onnx_item *const *x, const ft_onnx_item store[2], ft_onnx_item *y)
{
    bool replaced = count == 2 && (x[0] == &store[0]) != (x[1] == &store[1]);
    if (replaced && !ft__onnx_failed(r) && y->ref != FT_NONE) y->ref = ft__cast(r->b, r->label, y->ref, r->b->stored);
}

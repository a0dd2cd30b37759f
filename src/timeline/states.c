/* states.c: bytes per parameter by optimizer. */
#include "timeline/states.h"

#include <math.h>

#include "model/stack.h"

/* bitsandbytes: states of 8 bits with one fp32 scale per block of 256, for tensors of at least 4096 elements. */
static const double BLOCK_8BIT = 256, LEAST_8BIT = 4096;

static double state_element(const ft_workload *work, const ft_tensor *parameter)
{
    return work->master_weights ? fmax(4, parameter->element_bytes) : parameter->element_bytes;
}

static bool is_matrix(const ft_tensor *t) { return t->rows > 1 && t->cols > 1; }

int ft__optimizer_states(const ft_workload *work, const ft_tensor *parameter, double parts[FT_STATE_PARTS])
{
    if (work->task != FT_TRAIN || !parameter->trained || work->optimizer == FT_NO_OPTIMIZER) return 0;
    const double numel = ft__tensor_numel(parameter), element = state_element(work, parameter);
    int n = 0;
    if (work->master_weights && parameter->element_bytes < 4) parts[n++] = 4 * numel;
    switch (work->optimizer) {
    case FT_ADAMW:
    case FT_ADAMW_FOREACH:
    case FT_LAMB:
    case FT_ADAMW_LOOP:
    case FT_BERT_ADAM:
        parts[n++] = (work->moment_bytes > 0 ? work->moment_bytes : element) * numel;
        parts[n++] = (work->moment_bytes > 0 ? work->moment_bytes : element) * numel;
        break;
    case FT_ADAMW_8BIT:
        for (int i = 0; i < 2; i++) parts[n++] = numel < LEAST_8BIT ? 4 * numel : numel + 4 * ceil(numel / BLOCK_8BIT);
        break;
    case FT_ADAFACTOR: /* Shazeer and Stern: a row and a column of second moments, no first one; fp32 */
        if (is_matrix(parameter)) {
            parts[n++] = 4 * (double)parameter->rows;
            parts[n++] = 4 * (double)parameter->cols;
        } else {
            parts[n++] = 4 * numel;
        }
        break;
    case FT_SGD_MOMENTUM: parts[n++] = element * numel; break;
    case FT_MUON: /* one momentum for matrices; vectors go to AdamW */
        parts[n++] = element * numel;
        if (!is_matrix(parameter)) parts[n++] = element * numel;
        break;
    case FT_SGD:
    case FT_NO_OPTIMIZER:
    case FT_OPTIMIZER_COUNT: break;
    }
    if (work->ema) parts[n++] = element * numel;
    return n;
}

double ft__main_gradient(const ft_workload *work)
{
    const ft_stack *stack = ft__stack(work);
    if (work->autocast || ft_dtype_bytes(work->dtype) > 2) return 4;
    return ft__stack_gradient_bytes(stack, work->dtype);
}

double ft__gradient_element(const ft_workload *work, const ft_tensor *parameter)
{
    return work->master_weights ? fmax(ft__main_gradient(work), parameter->element_bytes) : parameter->element_bytes;
}

double ft__update_workspace(const ft_workload *work, double all, const ft_tensor *widest)
{
    switch (work->optimizer) {
    case FT_ADAMW_FOREACH: return all; /* the square roots of all second moments at once */
    case FT_MUON: {
        /* Newton-Schulz in bf16 on one matrix: X, a X, X' and two products of its shorter side (Jordan et al.). */
        if (!widest) return 0;
        const double side = fmin((double)widest->rows, (double)widest->cols);
        return 2 * (3 * ft__tensor_numel(widest) + 2 * side * side);
    }
    case FT_ADAMW_LOOP: return widest ? 4 * ft__tensor_numel(widest) : 0; /* the root of one tensor's second moments */
    case FT_BERT_ADAM: /* the update, decay and what is taken off, before the first is dropped */
        return widest ? 12 * ft__tensor_numel(widest) : 0;
    case FT_ADAFACTOR: /* the update in fp32, and its square while the statistics are taken */
        return widest ? 8 * ft__tensor_numel(widest) : 0;
    default: return 0;
    }
}

/* groups.c: which ranks belong together.
 *
 * Megatron-LM numbers ranks with the tensor axis innermost, then context, data, pipeline (parallel_state.py's default
 * order "tp-cp-ep-dp-pp"): rank = t + tp * (c + cp * (d + dp * p)). Sixteen GPUs with tp 2, pp 4, dp 2 have the tensor
 * groups [0,1] [2,3] ..., the data groups [0,2] [1,3] ..., the pipeline groups [0,4,8,12] ... of its documentation. */
#include "layout/layout.h"

const char *const ft__schedule_words[FT_SCHEDULE_COUNT] = {"gpipe",    "1f1b",          "interleaved", "zero_bubble",
                                                           "dualpipe", "v_zero_bubble", "v_half",      "v_min"};

const char *ft__schedule_name(ft_schedule s) { return (unsigned)s < FT_SCHEDULE_COUNT ? ft__schedule_words[s] : "?"; }

void ft__parallel_group(const ft_parallel *p, ft_axis axis, int64_t *size, int64_t *stride)
{
    switch (axis) {
    case FT_AXIS_TENSOR:
        *size = p->tp;
        *stride = 1;
        break;
    case FT_AXIS_CONTEXT:
        *size = p->cp;
        *stride = p->tp;
        break;
    case FT_AXIS_EXPERT: /* over context and data ranks, and tensor ranks where experts are whole, the nearest first */
        *size = p->ep;
        *stride = ft__expert_stride(p);
        break;
    case FT_AXIS_DATA: /* gradients are summed over data and context ranks alike */
        *size = p->dp * p->cp;
        *stride = p->tp;
        break;
    default:
        *size = p->pp;
        *stride = p->tp * p->cp * p->dp;
        break;
    }
}

bool ft__parallel_members(const ft_parallel *p, ft_axis axis, int64_t n, int64_t *ranks)
{
    int64_t size, stride, all = ft__parallel_ranks(p);
    ft__parallel_group(p, axis, &size, &stride);
    if (n < 0 || size < 1 || n >= all / size) return false;
    /* Groups are counted by their first member: the n-th rank that starts one. */
    int64_t first = n / stride * stride * size + n % stride;
    for (int64_t i = 0; i < size; i++) ranks[i] = first + i * stride;
    return true;
}

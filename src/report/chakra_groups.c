/* chakra_groups.c: communicators by number, axis by axis, group by group. */
#include "report/chakra_groups.h"

#include <inttypes.h>

int64_t ft__chakra_group(const ft_parallel *p, ft_axis axis, int64_t rank)
{
    int64_t size, stride, before = 1;
    for (int a = 0; a < (int)axis; a++) {
        ft__parallel_group(p, (ft_axis)a, &size, &stride);
        before += ft__parallel_ranks(p) / (size > 0 ? size : 1);
    }
    ft__parallel_group(p, axis, &size, &stride);
    return before + rank / (stride * size) * stride + rank % stride;
}

void ft__chakra_groups(const ft_parallel *p, int64_t rank, int64_t from, ft_text *out)
{
    for (int a = 0; a < FT_AXIS_COUNT; a++) {
        int64_t size, stride;
        ft__parallel_group(p, (ft_axis)a, &size, &stride);
        if (size < 2 || a == FT_AXIS_PIPELINE) continue;
        int64_t first = rank / (stride * size) * stride * size + rank % stride;
        if (first < rank && first >= from) continue; /* listed with its first member */
        ft__text_addf(out, "%s\"%" PRId64 "\":[", out->length > 1 ? ",\n" : "\n",
                      ft__chakra_group(p, (ft_axis)a, rank));
        for (int64_t i = 0; i < size; i++) ft__text_addf(out, "%s%" PRId64, i ? "," : "", first + i * stride);
        ft__text_add(out, "]");
    }
}

/* chakra_groups.c: communicators by number, set by set, group by group. */
#include "report/trace/chakra_groups.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/json_write.h"

bool ft__chakra_hybrid(const ft_parallel *p) { return p->zero >= 1 && p->shard > 0 && p->shard < p->dp * p->cp; }

static void members(const ft_parallel *p, int set, int64_t *size, int64_t *stride)
{
    int64_t sharers = ft__chakra_hybrid(p) ? p->shard : 1;
    if (set < FT_AXIS_COUNT) {
        ft__parallel_group(p, (ft_axis)set, size, stride);
    } else {
        *size = set == FT_CHAKRA_SHARERS ? sharers : ft__chakra_hybrid(p) ? p->dp * p->cp / sharers : 1;
        *stride = set == FT_CHAKRA_SHARERS ? p->tp : p->tp * sharers;
    }
}

int64_t ft__chakra_group(const ft_parallel *p, int set, int64_t rank)
{
    int64_t size, stride, before = 1;
    for (int a = 0; a < set; a++) {
        members(p, a, &size, &stride);
        before += ft__parallel_ranks(p) / (size > 0 ? size : 1);
    }
    members(p, set, &size, &stride);
    return before + rank / (stride * size) * stride + rank % stride;
}

void ft__chakra_groups(const ft_parallel *p, int64_t rank, int64_t from, ft_text *out)
{
    for (int a = 0; a < FT_CHAKRA_SETS; a++) {
        int64_t size, stride;
        members(p, a, &size, &stride);
        if (size < 2 || a == FT_AXIS_PIPELINE) continue;
        int64_t first = rank / (stride * size) * stride * size + rank % stride;
        if (first < rank && first >= from) continue; /* listed with its first member */
        char name[24];
        snprintf(name, sizeof name, "%" PRId64, ft__chakra_group(p, a, rank));
        ft__json_line(out);
        ft__json_member_list(out, name);
        for (int64_t i = 0; i < size; i++) ft__json_add_whole(out, first + i * stride);
        ft__json_close_list(out);
    }
}

/* due.c: the heap of those that decode, by the step in which they end. */
#include "serving/replica.h"

static bool sooner(const ft_due *a, const ft_due *b)
{
    return a->finish != b->finish ? a->finish < b->finish : a->index < b->index;
}

void ft__due_settle(ft_due *h, size_t i)
{
    for (; i > 0 && sooner(&h[i], &h[(i - 1) / 2]); i = (i - 1) / 2) {
        ft_due swapped = h[i];
        h[i] = h[(i - 1) / 2];
        h[(i - 1) / 2] = swapped;
    }
}

static void settle_down(ft_due *h, size_t count, size_t i)
{
    for (;;) {
        size_t least = i, left = 2 * i + 1;
        if (left < count && sooner(&h[left], &h[least])) least = left;
        if (left + 1 < count && sooner(&h[left + 1], &h[least])) least = left + 1;
        if (least == i) return;
        ft_due swapped = h[i];
        h[i] = h[least];
        h[least] = swapped;
        i = least;
    }
}

void ft__due_remove(ft_replica *r, size_t i)
{
    r->decoding[i] = r->decoding[--r->decoder_count];
    if (i >= r->decoder_count) return;
    ft__due_settle(r->decoding, i);
    settle_down(r->decoding, r->decoder_count, i);
}

/* arrivals.c: a binary heap by time. */
#include "serving/arrivals.h"

#include <stdlib.h>

static bool earlier(const ft_arrival *a, const ft_arrival *b)
{
    return a->ms != b->ms ? a->ms < b->ms : a->number < b->number;
}

bool ft__arrive(ft_arrivals *a, double ms, uint32_t index)
{
    if (a->count == a->room) {
        size_t room = a->room ? 2 * a->room : 256;
        ft_arrival *heap = realloc(a->heap, room * sizeof *heap);
        if (!heap) return false;
        a->heap = heap;
        a->room = room;
    }
    size_t i = a->count++;
    ft_arrival one = {ms, a->number++, index};
    for (; i > 0 && earlier(&one, &a->heap[(i - 1) / 2]); i = (i - 1) / 2) a->heap[i] = a->heap[(i - 1) / 2];
    a->heap[i] = one;
    return true;
}

ft_arrival ft__arrival_first(ft_arrivals *a)
{
    ft_arrival first = a->heap[0], last = a->heap[--a->count];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < a->count; i = child) {
        if (child + 1 < a->count && earlier(&a->heap[child + 1], &a->heap[child])) child++;
        if (!earlier(&a->heap[child], &last)) break;
        a->heap[i] = a->heap[child];
    }
    a->heap[i] = last;
    return first;
}

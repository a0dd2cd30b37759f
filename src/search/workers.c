/* workers.c: the threads of one search.
 *
 * Pieces of work are layouts to forecast or cells to probe, some tenths of a millisecond to some milliseconds each.
 * Whoever is free takes the next few; a thread has a memo and an arena of its own, so that nobody waits for anybody;
 * what it does not remember it asks of a memo that all share, which is rare.
 * Which thread took what decides nothing: results go to the pieces. */
#include <stdatomic.h>
#include <stdlib.h>

#include "base/parallel.h"
#include "search/workers.h"
#include "timeline/memo.h"

enum { LARGEST_STEP = 512 << 20 };

typedef struct shift { /* one piece of work after the other, for all who came */
    ft_workers *workers;
    ft_worker_task piece;
    void *context;
    size_t count, few;
    atomic_size_t next;
} shift;

static void work(void *context, size_t who)
{
    shift *w = context;
    for (;;) {
        size_t from = atomic_fetch_add_explicit(&w->next, w->few, memory_order_relaxed), to = from + w->few;
        if (from >= w->count) return;
        for (size_t i = from; i < to && i < w->count; i++) {
            w->workers->status[who] = w->piece(w->context, i, &w->workers->worker[who], &w->workers->err[who]);
            if (w->workers->status[who] != FT_OK) return;
        }
    }
}

ft_status ft__workers_run(ft_workers *c, size_t count, size_t few, ft_worker_task piece, void *context, ft_error *err)
{
    shift w = {.workers = c, .piece = piece, .context = context, .count = count, .few = few};
    atomic_init(&w.next, 0);
    ft__parallel(c->threads, (size_t)c->threads, work, &w);
    for (int i = 0; i < c->threads; i++)
        if (c->status[i] != FT_OK) {
            if (err) *err = c->err[i];
            return c->status[i];
        }
    return FT_OK;
}

ft_status ft__workers_start(int threads, ft_workers *c, ft_error *err)
{
    *c = (ft_workers){.threads = threads > 0 ? threads : 1};
    c->worker = calloc((size_t)c->threads, sizeof *c->worker);
    c->status = calloc((size_t)c->threads, sizeof *c->status);
    c->err = calloc((size_t)c->threads, sizeof *c->err);
    if (c->threads > 1) c->common = ft__memo_new_common();
    bool fine = c->worker && c->status && c->err && (c->threads < 2 || c->common);
    for (int i = 0; fine && i < c->threads; i++) {
        c->worker[i].memo = ft__memo_new();
        c->worker[i].exchanges = ft__exchanges_new();
        c->worker[i].arena = ft__arena_new(LARGEST_STEP);
        fine = c->worker[i].memo && c->worker[i].exchanges && c->worker[i].arena;
        if (fine) ft__memo_join(c->worker[i].memo, c->common);
    }
    return fine ? FT_OK : ft__no_memory(err);
}

void ft__workers_stop(ft_workers *c)
{
    for (int i = 0; c->worker && i < c->threads; i++) {
        ft__memo_free(c->worker[i].memo);
        ft__exchanges_free(c->worker[i].exchanges);
        ft__arena_free(c->worker[i].arena);
    }
    ft__memo_free(c->common);
    free(c->worker);
    free(c->status);
    free(c->err);
    *c = (ft_workers){0};
}

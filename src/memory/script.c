/* script.c: nodes become lines; of a repeated block's second iteration those that count for all like it are chosen. */
#include "memory/script.h"

#include <string.h>

#include "memory/cache.h"
#include "memory/workspace.h"

enum { LARGER = 16 }; /* part of the largest tensor that one must have to be seen among many layers */

typedef struct writer {
    const ft_sweep *s;
    int32_t *block_of; /* node -> block of the graph */
    int32_t *net;      /* tensor -> how many more there are after an iteration */
    ft_line *lines;
    int32_t count;
} writer;

static bool is_small(int64_t grains) { return grains <= FT_CACHE_SMALL_GRAINS; }

static void add(writer *w, ft_line_kind kind, int32_t tensor, int64_t grains, ft_when when)
{
    w->lines[w->count++] = (ft_line){grains, tensor, (uint8_t)kind, (uint8_t)when};
}

static void take(writer *w, ft_ref t)
{
    const int64_t grains = ft__cache_grains(w->s->size[t]);
    if (grains > 0) add(w, is_small(grains) ? FT_LINE_TAKE_SMALL : FT_LINE_TAKE, t, grains, FT_EVERY);
}

static void give(writer *w, ft_ref t, bool youngest, ft_when when)
{
    const int64_t grains = ft__cache_grains(w->s->size[t]);
    if (grains <= 0) return;
    add(w,
        is_small(grains) ? FT_LINE_GIVE_SMALL
        : youngest       ? FT_LINE_GIVE_YOUNGEST
                         : FT_LINE_GIVE_OLDEST,
        t, grains, when);
}

/* A tensor of a block that repeats is there once for every iteration that made it: one that dies in the block that made
 * it is the oldest, one that dies where that block is undone the youngest. */
static void write_node(writer *w, int32_t b, int32_t n)
{
    const ft_sweep *s = w->s;
    const ft_node *node = &s->g->nodes[n];
    for (int32_t m = s->made[n]; m < s->going[n]; m++)
        if (s->moves[m].pooled) take(w, s->moves[m].tensor);
    if (ft__calls_blas(node)) add(w, FT_LINE_HANDLE, node->phase == FT_BACKWARD, 0, FT_EVERY);
    const int64_t grains = ft__cache_grains(s->workspace[n]);
    if (node->verb == FT_DO_OPTIMIZER)
        add(w, FT_LINE_UPDATE, n, 0, FT_EVERY);
    else if (grains > 0)
        add(w, is_small(grains) ? FT_LINE_TOUCH_SMALL : FT_LINE_TOUCH, n, grains, FT_EVERY);
    for (int32_t m = s->going[n]; m < s->made[n + 1]; m++) {
        const ft_ref t = s->moves[m].tensor;
        const bool elsewhere = s->lives.birth[t] >= 0 && w->block_of[s->lives.birth[t]] != b;
        give(w, t, s->moves[m].added || elsewhere, (ft_when)s->moves[m].when);
    }
}

/* -- layers that are alike --------------------------------------------------------------------- */

static bool takes(const ft_line *l) { return l->kind == FT_LINE_TAKE || l->kind == FT_LINE_TAKE_SMALL; }
static bool moves(const ft_line *l) { return l->kind <= FT_LINE_GIVE_SMALL; }

/* Of the second iteration's lines those that count for all like it, in their order. */
static void choose(writer *w, ft_script_block *block)
{
    const ft_sweep *s = w->s;
    ft_line *first = w->lines + w->count, *last = first + block->count, *kept = last;
    double most = 0;
    for (int32_t i = 0; i < block->count; i++) {
        const ft_line one = block->lines[i];
        if (!moves(&one) || !ft__happens((ft_when)one.when, 1, block->repeat)) continue;
        w->net[one.tensor] += takes(&one) ? 1 : -1;
        if (s->size[one.tensor] > most) most = s->size[one.tensor];
    }
    for (int32_t i = block->count - 1; i >= 0; i--) { /* the last ones stand */
        ft_line one = block->lines[i];
        if (!moves(&one) || !ft__happens((ft_when)one.when, 1, block->repeat)) continue;
        int32_t *net = &w->net[one.tensor];
        const bool stands = takes(&one) ? *net > 0 : *net < 0;
        if (stands) *net -= takes(&one) ? 1 : -1;
        one.when = FT_EVERY;
        if (stands || s->size[one.tensor] >= most / LARGER) *--kept = one;
    }
    block->alike_count = (int32_t)(last - kept);
    if (block->alike_count) memmove(first, kept, (size_t)block->alike_count * sizeof *first);
    block->alike = first;
    w->count += block->alike_count;
}

/* At most so many lines of one iteration. */
static size_t lines_of(const ft_sweep *s, const ft_block *b)
{
    return 2 * (size_t)b->count + (size_t)(s->made[b->first + b->count] - s->made[b->first]);
}

bool ft__script(const ft_sweep *s, ft_arena *arena, ft_script *out)
{
    const ft_graph *g = s->g;
    size_t room = 0;
    for (int32_t b = 0; b < g->block_count; b++)
        room += lines_of(s, &g->blocks[b]) * (g->blocks[b].repeat > FT_SCRIPT_ENDS ? 2 : 1);
    ft_script_block *blocks = ft__arena_bare(arena, (size_t)g->block_count + 1, sizeof *blocks);
    writer w = {.s = s,
                .block_of = ft__arena_bare(arena, (size_t)g->node_count + 1, sizeof *w.block_of),
                .net = ft__arena_array(arena, (size_t)g->tensor_count + 1, sizeof *w.net),
                .lines = ft__arena_bare(arena, room + 1, sizeof *w.lines)};
    if (!blocks || !w.block_of || !w.net || !w.lines) return false;
    for (int32_t n = 0; n < g->node_count; n++) w.block_of[n] = 0;
    for (int32_t b = 0; b < g->block_count; b++)
        for (int32_t n = 0; n < g->blocks[b].count; n++) w.block_of[g->blocks[b].first + n] = b;
    for (int32_t b = 0; b < g->block_count; b++) {
        const ft_block *block = &g->blocks[b];
        const ft_line *lines = w.lines + w.count;
        const int32_t before = w.count;
        for (int32_t n = block->first; n < block->first + block->count; n++) write_node(&w, b, n);
        blocks[b] = (ft_script_block){.lines = lines, .count = w.count - before, .repeat = block->repeat};
        if (block->repeat > FT_SCRIPT_ENDS) choose(&w, &blocks[b]);
    }
    *out = (ft_script){blocks, g->block_count};
    return true;
}

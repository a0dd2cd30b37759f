/* fusion_group.c: which nodes of a block run as one kernel.
 *
 * As Inductor's scheduler decides: a pointwise operator joins the kernel that makes its input, or one that reads the
 * same input, when both walk over the same elements; a reduction along rows joins pointwise operators over its matrix
 * and reductions of the same rows, and takes along what is computed from its results; a small pointwise result that
 * is broadcast is computed inside. Values at other positions (a slice, the other half of a rotated vector) can be
 * computed again when everything behind them is pointwise, but cannot come out of a reduction's registers.
 *
 * Order is kept by places. A kernel runs at one place, where the first of its members stood or later; it must stand
 * behind everything it reads and before everything that reads it. A node joins a kernel when its other inputs are ready
 * at the kernel's place, or when the kernel can wait for them because nobody has read from it yet. One walk over the
 * nodes, a few comparisons each. */
#include <limits.h>
#include <string.h>

#include "graph/fusion.h"

#define NEVER INT32_MAX

/* A node on its way into a group. */
typedef struct candidate {
    const ft_node *n;
    int32_t at; /* in the block */
    ft_part part;
    double space;
    int64_t rows;
} candidate;

static int64_t rows_of(const ft_fusion *f, const ft_node *n)
{
    return n->op.kind == FT_OP_ROW ? n->op.u.row.rows : n->in_count ? f->g->tensors[n->in[0]].rows : 1;
}

static int32_t min32(int32_t a, int32_t b) { return a < b ? a : b; }

/* The earliest place outside of a group that reads from it. Places move, so that readers are asked for theirs. */
static int32_t first_use(const ft_fusion *f, int32_t at)
{
    const ft_group *p = &f->groups[at];
    int32_t first = p->first_use;
    for (int32_t i = 0; i < p->users; i++) {
        int32_t u = ft__group_find(f, p->user[i]);
        if (u != at) first = min32(first, f->groups[u].place);
    }
    return first;
}

static void add_user(ft_fusion *f, int32_t at, int32_t user)
{
    ft_group *p = &f->groups[at];
    user = ft__group_find(f, user);
    if (user == at) return;
    for (int32_t i = 0; i < p->users; i++)
        if (ft__group_find(f, p->user[i]) == user) return;
    if (p->users < FT_USERS)
        p->user[p->users++] = user;
    else
        p->first_use = min32(p->first_use, f->groups[user].place);
}

static bool window_gradient(const ft_node *n) { return n->verb == FT_DO_POOL && n->phase == FT_BACKWARD; }

/* What is read twice: by the sums of a norm's gradient, and by its result. A pool's gradient is too dear for that, and
 * is written. */
static bool reads_twice(const ft_node *n) { return n->verb == FT_DO_BATCHNORM && n->phase == FT_BACKWARD; }

/* `partial`: the node reads only a part of what the group makes, or parts of it elsewhere. */
static bool may_join(const ft_fusion *f, const candidate *c, int32_t at, bool partial)
{
    const ft_group *p = &f->groups[at];
    if (p->closed || p->count != c->n->count || (partial && p->rows)) return false;
    if (p->window && reads_twice(c->n)) return false;
    if (c->space > p->space)
        return !p->rows && first_use(f, at) == NEVER; /* broadcast, or a piece of a concatenation */
    if (c->part == FT_ALONG) return c->space == p->space && (!p->rows || p->rows == c->rows);
    return c->space == p->space || (p->rows && c->space == (double)p->rows);
}

static bool may_merge(const ft_group *a, const ft_group *b)
{
    if (a->closed || b->closed || a->count != b->count) return false;
    if (a->rows && b->rows && a->rows != b->rows) return false;
    if (a->space == b->space) return true;
    const ft_group *small = a->space < b->space ? a : b, *large = small == a ? b : a;
    return !small->rows || (large->rows && small->space == (double)large->rows);
}

static void merge(ft_fusion *f, int32_t from, int32_t into)
{
    ft_group *a = &f->groups[from], *b = &f->groups[into];
    a->into = into;
    f->next[a->tail] = b->head; /* older members first */
    b->head = a->head;
    b->size += a->size;
    if (a->space > b->space) b->space = a->space;
    if (a->rows) b->rows = a->rows;
    b->window |= a->window;
    b->first_use = min32(a->first_use, b->first_use);
    for (int32_t i = 0; i < a->users; i++) add_user(f, into, a->user[i]);
}

static void join(ft_fusion *f, int32_t at, const candidate *c)
{
    ft_group *p = &f->groups[at];
    f->next[p->tail] = c->at;
    p->tail = c->at;
    p->size++;
    if (c->space > p->space) p->space = c->space;
    if (c->part == FT_ALONG) p->rows = c->rows;
    p->window |= window_gradient(c->n);
}

static int32_t open_group(ft_fusion *f, const candidate *c)
{
    int32_t at = f->group_count++;
    f->groups[at] = (ft_group){.into = at,
                               .place = c->at,
                               .first_use = NEVER,
                               .head = c->at,
                               .tail = c->at,
                               .size = 1,
                               .space = c->space,
                               .rows = c->part == FT_ALONG ? c->rows : 0,
                               .count = c->n->count,
                               .window = window_gradient(c->n)};
    return at;
}

/* The last writer of a storage in this block, and the last group that read it. */
static void refresh(ft_fusion *f, ft_ref r, int32_t block)
{
    if (f->written_in[r] == block) return;
    f->written_in[r] = block;
    f->writer[r] = -1;
    f->reader[r] = -1;
    f->outside[r] = false;
    f->padded[r] = FT_NONE;
}

static int32_t group_at(const ft_fusion *f, int32_t node)
{
    return node >= 0 && f->group_of[node] >= 0 ? ft__group_find(f, f->group_of[node]) : -1;
}

static bool reads_part(const ft_fusion *f, ft_ref x)
{
    return ft__tensor_numel(&f->g->tensors[x]) < ft__tensor_numel(&f->g->tensors[f->root[x]]);
}

/* The groups that a node reads from and may join. */
typedef struct producers {
    int32_t with[FT_NODE_INPUTS], count;
    int32_t best;   /* of them the one that runs last; -1: none */
    int32_t latest; /* where the last one runs that has to be over before the node; -1: none */
} producers;

static void wait_for(producers *p, int32_t place)
{
    if (place > p->latest) p->latest = place;
}

static producers producers_of(const ft_fusion *f, const candidate *c)
{
    producers p = {.best = -1, .latest = -1};
    for (int k = 0; k < c->n->in_count; k++) {
        int32_t node = f->from[c->at][k], group = group_at(f, node);
        if (node < 0) continue;
        if (group < 0) {
            wait_for(&p, node);
            continue;
        }
        bool known = false;
        for (int i = 0; i < p.count; i++) known |= p.with[i] == group;
        if (known) continue;
        if (!may_join(f, c, group, reads_part(f, c->n->in[k]))) {
            wait_for(&p, f->groups[group].place);
            continue;
        }
        p.with[p.count++] = group;
        if (p.best < 0 || f->groups[group].place > f->groups[p.best].place) p.best = group;
    }
    return p;
}

/* A sum down the columns goes into the kernel that makes its input when nobody else wants that, else alone. */
static int32_t place_column_sum(ft_fusion *f, const candidate *c, const producers *p)
{
    if (p->best >= 0 && p->latest < f->groups[p->best].place && f->uses[f->root[c->n->in[0]]] == 1) {
        join(f, p->best, c);
        return p->best;
    }
    int32_t at = open_group(f, c);
    f->groups[at].closed = true;
    return at;
}

/* At the best one's place when all else is ready there. Otherwise it waits here, if nobody has read from it. */
static void settle_best(ft_fusion *f, const candidate *c, producers *p)
{
    if (p->best < 0 || p->latest < f->groups[p->best].place) return;
    p->best = -1;
    for (int i = 0; i < p->count && p->best < 0; i++)
        if (first_use(f, p->with[i]) == NEVER) p->best = p->with[i];
    if (p->best >= 0) f->groups[p->best].place = c->at;
}

/* Beside a kernel that reads the same; -1: there is none. */
static int32_t place_beside(ft_fusion *f, const candidate *c, int32_t latest)
{
    for (int k = 0; k < c->n->in_count; k++) {
        ft_ref r = f->root[c->n->in[k]];
        if (f->reader[r] < 0 || ft__tensor_numel(&f->g->tensors[r]) < c->space) continue;
        int32_t at = ft__group_find(f, f->reader[r]);
        const ft_group *q = &f->groups[at];
        if (q->closed || q->count != c->n->count || q->space != c->space || q->place <= latest) continue;
        if (c->part == FT_ALONG && q->rows && q->rows != c->rows) continue;
        join(f, at, c);
        return at;
    }
    return -1;
}

static int32_t place(ft_fusion *f, const candidate *c)
{
    producers p = producers_of(f, c);
    if (c->part == FT_DOWN) return place_column_sum(f, c, &p);
    settle_best(f, c, &p);
    if (p.best >= 0) {
        for (int i = 0; i < p.count; i++) {
            const ft_group *other = &f->groups[p.with[i]], *best = &f->groups[p.best];
            if (p.with[i] == p.best || other->place > best->place) continue;
            if (first_use(f, p.with[i]) >= best->place && may_merge(other, best)) merge(f, p.with[i], p.best);
        }
        join(f, p.best, c);
        return p.best;
    }
    for (int i = 0; i < p.count; i++) wait_for(&p, f->groups[p.with[i]].place);
    int32_t at = place_beside(f, c, p.latest);
    return at >= 0 ? at : open_group(f, c);
}

static void note_reads(ft_fusion *f, const ft_node *n, int32_t at, int32_t mine)
{
    for (int k = 0; k < n->in_count; k++) {
        int32_t p = group_at(f, f->from[at][k]);
        if (p >= 0 && mine >= 0) add_user(f, p, mine);
        if (p >= 0 && mine < 0) f->groups[p].first_use = min32(f->groups[p].first_use, at);
        if (mine >= 0) f->reader[f->root[n->in[k]]] = mine;
    }
}

void ft__fusion_group(ft_fusion *f, int32_t b)
{
    const ft_graph *g = f->g;
    const ft_block *block = &g->blocks[b];
    f->group_count = 0;
    for (int32_t i = 0; i < block->count; i++) {
        const ft_node *n = &g->nodes[block->first + i];
        f->group_of[i] = -1;
        f->next[i] = -1;
        ft_part part = f->part[block->first + i];
        if (part == FT_GLUE) continue;
        for (int k = 0; k < n->in_count; k++) {
            refresh(f, f->root[n->in[k]], b);
            f->from[i][k] = f->writer[f->root[n->in[k]]];
        }
        int32_t mine = -1;
        if (part != FT_LIBRARY) {
            candidate c = {n, i, part, ft__fusion_space(g, n), part == FT_ALONG ? rows_of(f, n) : 0};
            mine = place(f, &c);
            f->group_of[i] = mine;
        }
        note_reads(f, n, i, mine);
        for (int k = 0; k < n->out_count; k++) {
            ft_ref r = f->root[n->out[k]];
            refresh(f, r, b);
            f->writer[r] = i;
        }
    }
    /* What leaves its kernel. */
    for (int32_t i = 0; i < block->count; i++) {
        const ft_node *n = &g->nodes[block->first + i];
        if (f->part[block->first + i] == FT_GLUE) continue;
        int32_t mine = group_at(f, i);
        for (int k = 0; k < n->in_count; k++) {
            int32_t p = group_at(f, f->from[i][k]);
            if (p >= 0 && p != mine) f->outside[f->root[n->in[k]]] = true;
            if (p >= 0 && mine < 0) f->flags[f->root[n->in[k]]] |= FT_WHOLE_COPY;
        }
    }
}

/* simgrid.c: from exchanges to flows and back.
 *
 * The closed form says how many bytes every GPU puts on the wire and how long starting and stepping takes; the flows
 * say to whom. With N nodes in a group and l ranks in each:
 *   ring        rank j of node i sends all its bytes to rank j of node i+1, around the ring (l channels, one per NIC)
 *   tree        a double binary tree over the nodes, as NCCL builds it: a quarter of the bytes on each edge it has, up
 *               and down in two trees whose inner nodes are the other's leaves
 *   pairwise    all_to_all: an even share to ranks of the other nodes; 16 partners stand for more, fewer on many nodes
 *   send_recv   to the next member of the group: the stages of a pipeline all send at once
 * All groups of the layout's shape run at the same moment: that is where cables are shared. The steps of a ring are not
 * simulated one by one: they are equal and follow each other without a gap, so that one flow carries them all.
 *
 * Time = latency (closed form) + flows (simulated). Alone on a whole tree the flows take what the closed form's wire
 * takes; the ratio of the two is contention.
 *
 * Leaves out: exchanges of different axes at the same time (gradients beside pipeline sends), stragglers, the start of
 * groups at different moments. */
#include "comm/simgrid.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PARTNERS = 16, EVEN_FLOWS = 1 << 14, MOST_FLOWS = 1 << 17 }; /* a simulation of seconds, not minutes */

ft_status ft__simulated_new(const ft_cluster *cluster, int64_t ranks, ft_arena *arena, ft_simulated **out,
                            ft_error *err)
{
    *out = NULL;
    if (cluster->tiers < 1 || cluster->tier[cluster->tiers - 1].fabric < FT_INFINIBAND) return FT_OK;
    ft_simulated *s = ft__arena_alloc(arena, sizeof *s);
    ft_exchanged *rows = ft__arena_array(arena, FT_MOST_EXCHANGED, sizeof *rows);
    if (!s || !rows) return ft__no_memory(err);
    *s = (ft_simulated){.arena = arena, .ranks = ranks, .rows = rows};
    FT_TRY(ft__platform_of(cluster, ranks, &s->platform, err));
    *out = s;
    return FT_OK;
}

static bool same(const ft_exchanged *e, ft_collective op, double bytes, const ft_group *g)
{
    return e->op == op && !(e->bytes < bytes) && !(e->bytes > bytes) && e->group.size == g->size &&
           e->group.stride == g->stride && !(e->group.skew < g->skew) && !(e->group.skew > g->skew);
}

ft_status ft__simulated_ask(ft_simulated *s, ft_collective op, double bytes, const ft_group *group,
                            const ft_comm *whole, ft_comm *out, ft_error *err)
{
    ft_exchanged *found = NULL;
    for (size_t i = 0; i < s->count && !found; i++)
        if (same(&s->rows[i], op, bytes, group)) found = &s->rows[i];
    if (found && s->done) {
        double ratio = found->simulated_ms / fmax(out->ms, 1e-12);
        out->ms = found->simulated_ms;
        out->low_ms *= ratio;
        out->high_ms *= ratio;
        out->latency_ms = found->latency_ms;
        out->algorithm = found->algorithm;
    }
    if (found || s->done) return FT_OK;
    if (s->count >= FT_MOST_EXCHANGED)
        return ft__fail_at(err, FT_E_RANGE, "cluster.network", 0, 0,
                           "the step has more than %d different exchanges between nodes: too many to simulate",
                           FT_MOST_EXCHANGED);
    ft_exchanged *e = &s->rows[s->count++];
    *e = (ft_exchanged){.op = op, .bytes = bytes, .group = *group, .closed = *out, .latency_ms = whole->latency_ms};
    e->algorithm = whole->algorithm ? whole->algorithm : "";
    e->wire_ms = fmax(whole->ms - whole->latency_ms, 0);
    e->wire_bytes = whole->wire_bytes;
    e->simulated_ms = -1;
    return FT_OK;
}

/* -- flows ------------------------------------------------------------------------------------- */

typedef struct flows {
    const ft_simulated *s;
    const ft_exchanged *e;
    ft_flow *at;
    int64_t count, room;
    int64_t first;        /* the group's first rank */
    int64_t nodes, local; /* the group's domains, and its ranks in each */
} flows;

/* The rank `j` of the group's `i`-th domain. */
static int64_t rank_of(const flows *f, int64_t i, int64_t j)
{
    return f->first + (i * f->local + j) * f->e->group.stride;
}

static void add(flows *f, int64_t from, int64_t to, double bytes)
{
    const ft_platform *p = &f->s->platform;
    if (from >= f->s->ranks || to >= f->s->ranks || from / p->domain == to / p->domain) return;
    int64_t a = ft__platform_host(p, from), b = ft__platform_host(p, to);
    if (a == b || f->count >= f->room || bytes <= 0) return;
    f->at[f->count++] = (ft_flow){a, b, bytes};
}

/* The parent of node i in a binary tree over n nodes whose leaves are the odd ones; -1 for the root 0. */
static int64_t parent(int64_t i, int64_t n)
{
    if (i == 0) return -1;
    int64_t bit = i & -i, up = (i ^ bit) | (bit << 1);
    return up < n ? up : i ^ bit;
}

static void add_tree(flows *f, int64_t j, bool second)
{
    int64_t n = f->nodes;
    for (int64_t i = 1; i < n; i++) {
        int64_t child = i, over = parent(i, n);
        if (second) { /* the mirror image where n is even, a shift by one where it is odd */
            child = n % 2 ? (child + 1) % n : n - 1 - child;
            over = n % 2 ? (over + 1) % n : n - 1 - over;
        }
        add(f, rank_of(f, child, j), rank_of(f, over, j), f->e->wire_bytes / 4);
        add(f, rank_of(f, over, j), rank_of(f, child, j), f->e->wire_bytes / 4);
    }
}

static void add_pairs(flows *f)
{
    int64_t others = f->nodes - 1, most = EVEN_FLOWS / f->s->platform.hosts, partners = others;
    if (most > PARTNERS) most = PARTNERS;
    if (most < 2) most = 2;
    if (partners > most) partners = most;
    for (int64_t i = 0; i < f->nodes; i++)
        for (int64_t j = 0; j < f->local; j++)
            for (int64_t k = 0; k < partners; k++) {
                int64_t shift = 1 + k * others / partners;
                int64_t there = f->s->platform.rails ? j : (j + k) % f->local; /* PXN: a rail is not left */
                add(f, rank_of(f, i, j), rank_of(f, (i + shift) % f->nodes, there),
                    f->e->wire_bytes / (double)partners);
            }
}

static void add_group(flows *f)
{
    const ft_exchanged *e = f->e;
    if (e->op == FT_COLLECTIVE_SEND_RECV) {
        for (int64_t i = 0; i + 1 < e->group.size; i++)
            add(f, f->first + i * e->group.stride, f->first + (i + 1) * e->group.stride, e->wire_bytes);
        return;
    }
    if (e->op == FT_COLLECTIVE_ALL_TO_ALL) {
        add_pairs(f);
        return;
    }
    bool tree = !strcmp(e->algorithm, "tree") && e->op == FT_COLLECTIVE_ALL_REDUCE;
    bool chain = e->op == FT_COLLECTIVE_BROADCAST || e->op == FT_COLLECTIVE_REDUCE;
    for (int64_t j = 0; j < f->local; j++) {
        if (tree && f->nodes > 2) {
            add_tree(f, j, false);
            add_tree(f, j, true);
            continue;
        }
        for (int64_t i = 0; i < f->nodes - (chain ? 1 : 0); i++)
            add(f, rank_of(f, i, j), rank_of(f, (i + 1) % f->nodes, j), e->wire_bytes);
    }
}

static int by_hosts(const void *a, const void *b)
{
    const ft_flow *x = a, *y = b;
    if (x->from != y->from) return x->from < y->from ? -1 : 1;
    if (x->to != y->to) return x->to < y->to ? -1 : 1;
    return x->bytes < y->bytes ? -1 : x->bytes > y->bytes; /* sums do not depend on the order */
}

static bool same_hosts(const ft_flow *x, const ft_flow *y) { return x->from == y->from && x->to == y->to; }

ft_status ft__simulated_flows(const ft_simulated *s, const ft_exchanged *e, ft_flow **out, int64_t *count,
                              ft_error *err)
{
    int64_t stride = e->group.stride > 0 ? e->group.stride : 1, size = e->group.size;
    int64_t local = s->platform.domain / stride;
    local = local < 1 ? 1 : local > size ? size : local;
    flows f = {.s = s, .e = e, .local = local, .nodes = size / local};
    double each = e->op == FT_COLLECTIVE_ALL_TO_ALL ? PARTNERS : 4;
    double wanted = (double)s->ranks * each + 4;
    if (size % local || f.nodes < 1) f.nodes = size, f.local = 1; /* lies askew over the nodes: one rank at a time */
    if (wanted > MOST_FLOWS * 4.0)
        return ft__fail_at(err, FT_E_RANGE, "cluster.network", 0, 0, "%lld ranks make %.3g flows: too many to simulate",
                           (long long)s->ranks, wanted);
    f.room = (int64_t)wanted;
    f.at = ft__arena_array(s->arena, (size_t)f.room, sizeof *f.at);
    if (!f.at) return ft__fail(err, FT_E_MEMORY, "out of memory for the flows of an exchange");
    for (int64_t block = 0; block < s->ranks; block += stride * size)
        for (int64_t i = 0; i < stride; i++) {
            f.first = block + i;
            if (f.first + (size - 1) * stride < s->ranks) add_group(&f);
        }
    if (f.count > 1) qsort(f.at, (size_t)f.count, sizeof *f.at, by_hosts);
    int64_t kept = 0;
    for (int64_t i = 0; i < f.count; i++)
        if (kept > 0 && same_hosts(&f.at[kept - 1], &f.at[i]))
            f.at[kept - 1].bytes += f.at[i].bytes;
        else
            f.at[kept++] = f.at[i];
    *out = f.at;
    *count = kept;
    return FT_OK;
}

/* -- running ----------------------------------------------------------------------------------- */

/* What a simulator reads (see ft_simulator). */
static ft_status write_scenario(ft_simulated *s, ft_text *out, ft_error *err)
{
    ft_text xml = {0};
    ft__platform_xml(&s->platform, &xml);
    ft__text_addf(out, "xml %zu\n", xml.length);
    ft__text_add(out, xml.at ? xml.at : "");
    out->failed |= xml.failed;
    ft__text_free(&xml);
    for (size_t i = 0; i < s->count; i++) {
        ft_flow *flow;
        int64_t count;
        FT_TRY(ft__simulated_flows(s, &s->rows[i], &flow, &count, err));
        s->rows[i].flows = count;
        ft__text_addf(out, "flows %lld\n", (long long)count);
        for (int64_t k = 0; k < count; k++)
            ft__text_addf(out, "%lld %lld %.0f\n", (long long)flow[k].from, (long long)flow[k].to,
                          fmax(1, flow[k].bytes));
    }
    return out->failed ? ft__fail(err, FT_E_MEMORY, "out of memory for a scenario") : FT_OK;
}

ft_status ft__simulated_run(ft_simulated *s, const ft_simulator *simulator, ft_error *err)
{
    s->done = true;
    if (s->count == 0) return FT_OK;
    if (!simulator || !simulator->run)
        return ft__fail_at(err, FT_E_UNSUPPORTED, "cluster.network", 0, 0,
                           "the network simulator runs beside the program \"foretell\", not inside the library; leave "
                           "\"network\" out for the closed forms");
    double *seconds = ft__arena_array(s->arena, s->count, sizeof *seconds);
    if (!seconds) return ft__no_memory(err);
    ft_text scenario = {0};
    ft_status status = write_scenario(s, &scenario, err);
    if (status == FT_OK) status = simulator->run(simulator->user, scenario.at, scenario.length, seconds, s->count, err);
    ft__text_free(&scenario);
    if (status != FT_OK) return status;
    for (size_t i = 0; i < s->count; i++) {
        if (!isfinite(seconds[i]) || seconds[i] < 0)
            return ft__fail(err, FT_E_BUG, "the network simulator gave %g s: please report it", seconds[i]);
        /* What the group exchanges inside its nodes, or among too few ranks for the network, the closed form knows; and
         * how much slower than its cables a protocol sends. */
        s->rows[i].flows_ms = s->rows[i].flows > 0 ? seconds[i] * 1e3 : s->rows[i].wire_ms;
        double ms = fmax(s->rows[i].flows_ms, s->rows[i].wire_ms);
        s->rows[i].simulated_ms = s->rows[i].latency_ms + ms;
    }
    return FT_OK;
}

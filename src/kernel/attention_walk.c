/* attention_walk.c: tiles of attention, dealt to SMs: equal ones fill waves, causal ones end within a tile of each
 * other (see attention.c). */
#include "kernel/attention_walk.h"

#include <math.h>

#include "kernel/attention_constants.h"

static const double heights[] = {64, 128, 256};

/* Frameworks' kernels, as their names and sources say: cuDNN 9.19 for Hopper has blocks of 128 queries that walk 128
 * keys at a time, FlashAttention-2 128 and, with heads wider than 64, 64 (flash_fwd_launch_template.h); backward both
 * own 128 keys and walk 64 queries. What is shorter is padded. Of engines' kernels the measured lengths do not say. */
bool ft__attention_of_frameworks(const ft_op *op) { return op->engine == FT_ENGINE_BARE || op->pass != FT_PASS_FWD; }

ft_attention_tile ft__attention_tile(const ft_device *device, const ft_op *op, bool back)
{
    enum { NARROW = 64, WIDE = 128 };
    if (!ft__attention_of_frameworks(op)) return (ft_attention_tile){0, 2, 64, false};
    if (back) return (ft_attention_tile){1, 1, 64, true};
    bool async = device->matrix_issue == FT_ISSUE_WGMMA || device->matrix_issue == FT_ISSUE_TCGEN05;
    return (ft_attention_tile){1, 1, op->u.attention.head_dim <= (async ? WIDE : NARROW) ? 128 : 64, false};
}

/* The tile height that ends first. `group` query heads that share a key-value head may stand in one tile. */
static void schedule(const ft_op *op, double sms, const ft_attention_costs *c, double group, ft_attention_walk *best)
{
    double rows = (double)op->u.attention.q_len, columns = (double)op->u.attention.kv_len;
    double q = (c->tile.owns_keys ? columns : rows) * group, kv = c->tile.owns_keys ? rows : columns;
    double heads = (double)(op->u.attention.batch * op->u.attention.heads) / group,
           window = (double)op->u.attention.window;
    bool causal = op->u.attention.causal;
    for (int i = c->tile.lowest; i <= c->tile.highest; i++) {
        double bq = heights[i], bk = c->tile.step, n = ceil(q / bq), all = bk * ceil(kv / bk), seen = bq / group;
        double first = fmax(0, kv - q / group), sum = n * all, longest = all;
        if (causal) sum = fmin(sum, n * first + seen * n * (n + 1) / 2 + n * bk * c->diagonal);
        if (window > 0) {
            longest = fmin(longest, bk * ceil((window + seen) / bk));
            sum = fmin(sum, n * longest);
        }
        double tiles = heads * n, cost = c->cell_ms * bq / (i == 0 ? c->small : 1), load = tiles / sms;
        double work = tiles * c->tile_ms + heads * sum * cost, last = longest * cost + c->tile_ms;
        /* Few rows against a long cache: the columns are split over the idle SMs. */
        if (kv > 2 * q && tiles < sms && !c->tile.owns_keys)
            last /= fmax(1, fmin(floor(sms / tiles), kv / FT_K_ATTENTION_SPLIT_KEYS));
        /* Equal tiles fill whole waves; unequal ones end within a tile of each other (a share of Graham's bound). */
        double even = work / sms, up = ceil(load);
        if (load > 1) even = causal ? even + c->q_causal * last : even * (1 + c->q_full * (up / load - 1));
        double ms = fmax(even, last) + up * c->wave_ms;
        if (ms < best->ms) *best = (ft_attention_walk){ms, tiles, load, last / ms, (int)bq, bk};
    }
}

/* FlashAttention-3 packs the query heads of a group into a tile; FlashAttention-2 does when there is one query. */
static bool packs(const ft_device *device, const ft_op *op)
{
    if (op->pass != FT_PASS_FWD || op->u.attention.heads == op->u.attention.kv_heads) return false;
    if (op->engine == FT_ENGINE_BARE || op->engine == FT_ENGINE_TRTLLM) return false;
    return op->u.attention.q_len == 1 || device->matrix_issue == FT_ISSUE_WGMMA;
}

ft_attention_walk ft__attention_walk(const ft_device *device, const ft_op *op, const ft_attention_costs *c)
{
    ft_attention_walk best = {.ms = INFINITY};
    schedule(op, device->sms, c, 1, &best);
    if (packs(device, op))
        schedule(op, device->sms, c, (double)(op->u.attention.heads / op->u.attention.kv_heads), &best);
    return best;
}

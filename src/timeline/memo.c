/* memo.c: operators -> forecasts, an open-addressing table of bounded size.
 *
 * Threads of one search have a memo each, for nobody waits at his own, and one behind these for all of them: what one
 * has forecast the others copy. A forecast hangs on nothing but its key, so that who was first decides nothing. */
#include "timeline/memo.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/parallel.h"
#include "device/fields.h"
#include "kernel/kernel.h"

/* An operator as whole words: what its kind uses and nothing else, because an ft_op's union and padding hold whatever
 * was there before. */
enum { WORDS = 13, ENTRIES = 4096, SLOTS = 2 * ENTRIES, SHELVES = 1024, PLACES = 4 };

typedef struct entry {
    uint64_t key[WORDS];
    ft_forecast forecast;
} entry;

typedef struct rehearsed {
    uint64_t key[2];
    double bytes;
} rehearsed;

struct ft_memo {
    uint64_t context; /* predictor, device and quantile in focus */
    uint32_t used;
    uint32_t slot[SLOTS]; /* number of an entry plus one; 0: free */
    entry *entries;
    ft_memo *common; /* whom to ask before anything is forecast; NULL: nobody */
    ft_lock *lock;   /* of a common one */
    /* A key has the places of one shelf, the last that came first: were it one place, two steps that are asked for in
     * turn could put each other out of it for ever. */
    rehearsed rehearsals[SHELVES][PLACES];
};

ft_memo *ft__memo_new(void)
{
    ft_memo *m = calloc(1, sizeof *m);
    if (!m) return NULL;
    m->entries = malloc(ENTRIES * sizeof *m->entries);
    if (!m->entries) {
        free(m);
        return NULL;
    }
    return m;
}

void ft__memo_free(ft_memo *m)
{
    if (!m) return;
    ft__lock_free(m->lock);
    free(m->entries);
    free(m);
}

ft_memo *ft__memo_new_common(void)
{
    ft_memo *m = ft__memo_new();
    if (!m) return NULL;
    m->lock = ft__lock_new();
    if (m->lock) return m;
    ft__memo_free(m);
    return NULL;
}

void ft__memo_join(ft_memo *m, ft_memo *common) { m->common = common; }

static inline uint64_t bits(double x)
{
    uint64_t b;
    memcpy(&b, &x, sizeof b);
    return b;
}

void ft__memo_focus(ft_memo *m, const ft_predictor *p, const ft_device *d, double quantile)
{
    m->context = ft__mix(ft__mix_double(ft__device_hash(d), quantile), (uint64_t)(uintptr_t)p);
}

static void fill_key(const ft_op *op, uint64_t context, uint64_t key[WORDS])
{
    for (int i = 0; i < WORDS; i++) key[i] = 0;
    key[0] = context;
    key[1] = (uint64_t)op->kind | (uint64_t)op->dtype << 8 | (uint64_t)op->kv_dtype << 16 | (uint64_t)op->pass << 24 |
             (uint64_t)op->timing << 32 | (uint64_t)op->engine << 40 | (uint64_t)op->weights << 48;
    key[2] = op->name ? ft__mix_text(0, op->name, SIZE_MAX) : 0;
    uint64_t *k = key + 3;
    switch (op->kind) {
    case FT_OP_GEMM:
        k[0] = (uint64_t)op->u.gemm.b, k[1] = (uint64_t)op->u.gemm.m, k[2] = (uint64_t)op->u.gemm.n;
        k[3] = (uint64_t)op->u.gemm.k;
        k[4] = (uint64_t)(unsigned char)op->u.gemm.layout[0] << 8 | (unsigned char)op->u.gemm.layout[1];
        k[5] = (uint64_t)op->u.gemm.bias << 32 | (uint32_t)op->u.gemm.quantized;
        k[6] = (uint64_t)op->u.gemm.by;
        break;
    case FT_OP_ATTENTION:
        k[0] = (uint64_t)op->u.attention.batch, k[1] = (uint64_t)op->u.attention.heads;
        k[2] = (uint64_t)op->u.attention.kv_heads, k[3] = (uint64_t)op->u.attention.q_len;
        k[4] = (uint64_t)op->u.attention.kv_len, k[5] = (uint64_t)op->u.attention.head_dim;
        k[6] = (uint64_t)op->u.attention.v_dim, k[7] = (uint64_t)op->u.attention.window;
        k[8] = (uint64_t)op->u.attention.causal + 2 * (uint64_t)op->u.attention.library;
        break;
    case FT_OP_MLA:
        k[0] = (uint64_t)op->u.mla.batch, k[1] = (uint64_t)op->u.mla.heads, k[2] = (uint64_t)op->u.mla.q_len;
        k[3] = (uint64_t)op->u.mla.kv_len, k[4] = (uint64_t)op->u.mla.kv_lora, k[5] = (uint64_t)op->u.mla.rope_dim;
        k[6] = (uint64_t)op->u.mla.nope_dim, k[7] = (uint64_t)op->u.mla.v_dim, k[8] = op->u.mla.causal;
        break;
    case FT_OP_ELEMENTWISE:
        k[0] = (uint64_t)op->u.elementwise.numel, k[1] = (uint64_t)op->u.elementwise.inputs;
        k[2] = bits(op->u.elementwise.ops_per_element), k[3] = bits(op->u.elementwise.bytes);
        k[4] = (uint64_t)op->u.elementwise.pattern;
        break;
    case FT_OP_ROW:
        k[0] = (uint64_t)op->u.row.rows, k[1] = (uint64_t)op->u.row.cols, k[2] = (uint64_t)op->u.row.vocab;
        break;
    case FT_OP_CONV2D:
        k[0] = (uint64_t)op->u.conv.n, k[1] = (uint64_t)op->u.conv.c, k[2] = (uint64_t)op->u.conv.h;
        k[3] = (uint64_t)op->u.conv.w, k[4] = (uint64_t)op->u.conv.k, k[5] = (uint64_t)op->u.conv.r;
        k[6] = (uint64_t)op->u.conv.s, k[7] = (uint64_t)op->u.conv.stride, k[8] = (uint64_t)op->u.conv.pad;
        k[9] = (uint64_t)op->u.conv.groups << 4 | (uint64_t)op->u.conv.parts << 1 | op->u.conv.nhwc;
        k[8] |= (uint64_t)op->u.conv.dilated << 56 | (uint64_t)op->u.conv.space << 54 |
                (uint64_t)op->u.conv.depth << 47;
        break;
    case FT_OP_MOE:
        k[0] = (uint64_t)op->u.moe.tokens, k[1] = (uint64_t)op->u.moe.hidden, k[2] = (uint64_t)op->u.moe.inter;
        k[3] = (uint64_t)op->u.moe.topk, k[4] = (uint64_t)op->u.moe.experts, k[5] = bits(op->u.moe.skew);
        k[6] = (uint64_t)op->u.moe.ep, k[7] = (uint64_t)op->u.moe.backend;
        k[8] = (uint64_t)op->u.moe.ungated << 1 | op->u.moe.drawn;
        break;
    case FT_OP_OPTIMIZER: k[0] = (uint64_t)op->u.optimizer.params, k[1] = (uint64_t)op->u.optimizer.tensors; break;
    case FT_OP_QUANTIZE: k[0] = (uint64_t)op->u.quantize.rows, k[1] = (uint64_t)op->u.quantize.cols; break;
    case FT_OP_COLLECTIVE:
        k[0] = (uint64_t)op->u.collective.op, k[1] = (uint64_t)op->u.collective.ranks;
        k[2] = bits(op->u.collective.bytes), k[3] = bits(op->u.collective.link_gbps);
        k[5] = (uint64_t)op->u.collective.nccl;
        k[4] = (uint64_t)op->u.collective.switched << 2 | (uint64_t)op->u.collective.reduces << 1 |
               (uint64_t)op->u.collective.pcie;
        break;
    case FT_OP_OTHER:
    case FT_OP_KIND_COUNT: k[0] = bits(op->u.other.bytes), k[1] = bits(op->u.other.flops); break;
    }
}

static uint64_t hash_of(const uint64_t key[WORDS])
{
    uint64_t h = 0;
    for (int i = 0; i < WORDS; i++) h = (h ^ key[i]) * UINT64_C(0x9E3779B97F4A7C15), h ^= h >> 29;
    return h;
}

/* Where it stands, or would. */
static uint32_t slot_for(const ft_memo *m, const uint64_t key[WORDS], uint64_t hash)
{
    uint32_t at = (uint32_t)(hash >> 32) % SLOTS;
    while (m->slot[at] && memcmp(m->entries[m->slot[at] - 1].key, key, WORDS * sizeof *key)) at = (at + 1) % SLOTS;
    return at;
}

/* A free entry for a key whose slot is `*at`; it counts once that slot has its number. */
static entry *entry_for(ft_memo *m, uint64_t hash, uint32_t *at)
{
    if (m->used == ENTRIES) { /* full: what is needed again comes back soon */
        memset(m->slot, 0, sizeof m->slot);
        m->used = 0;
        *at = (uint32_t)(hash >> 32) % SLOTS;
    }
    return &m->entries[m->used];
}

static bool others_know(ft_memo *common, const uint64_t key[WORDS], uint64_t hash, ft_forecast *out)
{
    if (!common) return false;
    ft__lock_take(common->lock);
    const uint32_t at = slot_for(common, key, hash);
    const bool known = common->slot[at] != 0;
    if (known) *out = common->entries[common->slot[at] - 1].forecast;
    ft__lock_leave(common->lock);
    return known;
}

static void tell_others(ft_memo *common, const uint64_t key[WORDS], uint64_t hash, const ft_forecast *f)
{
    if (!common) return;
    ft__lock_take(common->lock);
    uint32_t at = slot_for(common, key, hash);
    if (!common->slot[at]) {
        entry *e = entry_for(common, hash, &at);
        memcpy(e->key, key, sizeof e->key);
        e->forecast = *f;
        common->slot[at] = ++common->used;
    }
    ft__lock_leave(common->lock);
}

ft_status ft__memo_find(ft_memo *m, const ft_predictor *p, const ft_device *device, const ft_op *op, double quantile,
                        const ft_forecast **out, ft_error *err)
{
    uint64_t key[WORDS];
    fill_key(op, m->context, key);
    const uint64_t hash = hash_of(key);
    uint32_t at = slot_for(m, key, hash);
    if (m->slot[at]) {
        *out = &m->entries[m->slot[at] - 1].forecast;
        return FT_OK;
    }
    entry *e = entry_for(m, hash, &at);
    if (!others_know(m->common, key, hash, &e->forecast)) {
        FT_TRY(ft__op_check(op, device, err));
        FT_TRY(ft__kernel_forecast(p, device, op, quantile, &e->forecast, err));
        tell_others(m->common, key, hash, &e->forecast);
    }
    memcpy(e->key, key, sizeof key);
    m->slot[at] = ++m->used;
    *out = &e->forecast;
    return FT_OK;
}

ft_status ft__memo_forecast(ft_memo *m, const ft_predictor *p, const ft_device *device, const ft_op *op,
                            double quantile, ft_forecast *out, ft_error *err)
{
    const ft_forecast *found;
    ft__memo_focus(m, p, device, quantile);
    FT_TRY(ft__memo_find(m, p, device, op, quantile, &found, err));
    *out = *found;
    return FT_OK;
}

static bool shelved(const ft_memo *m, const uint64_t key[2], double *bytes)
{
    const rehearsed *shelf = m->rehearsals[key[0] % SHELVES];
    for (int i = 0; i < PLACES && (key[0] || key[1]); i++) {
        if (shelf[i].key[0] != key[0] || shelf[i].key[1] != key[1]) continue;
        *bytes = shelf[i].bytes;
        return true;
    }
    return false;
}

static void shelve(ft_memo *m, const uint64_t key[2], double bytes)
{
    rehearsed *shelf = m->rehearsals[key[0] % SHELVES];
    memmove(shelf + 1, shelf, (PLACES - 1) * sizeof *shelf);
    shelf[0] = (rehearsed){{key[0], key[1]}, bytes};
}

bool ft__memo_recalls(const ft_memo *m, const uint64_t key[2], double *bytes)
{
    if (shelved(m, key, bytes)) return true;
    if (!m->common) return false;
    ft__lock_take(m->common->lock);
    const bool known = shelved(m->common, key, bytes);
    ft__lock_leave(m->common->lock);
    return known;
}

void ft__memo_keep(ft_memo *m, const uint64_t key[2], double bytes)
{
    shelve(m, key, bytes);
    if (!m->common) return;
    ft__lock_take(m->common->lock);
    shelve(m->common, key, bytes);
    ft__lock_leave(m->common->lock);
}

/* moves.c: applying a move, and which moves exclude each other. */
#include "explain/moves.h"

#include <string.h>

#include "model/packing.h"
#include "model/stack.h"

typedef enum numbers { KEPT, OTHER, ASKED } numbers;

static const struct {
    ft_move_kind knob;
    numbers after;
    const char *why;
} moves[FT_MOVE_KINDS] = {
#define X(id, turns, same, reason) [FT_MOVE_##id] = {.knob = FT_MOVE_##turns, .after = same, .why = reason},
    FT_MOVE_LIST(X)
#undef X
};

int ft__move_knob(const ft_move *m) { return (int)moves[m->kind].knob; }

const char *ft__move_why(ft_move_kind kind) { return kind < FT_MOVE_KINDS ? moves[kind].why : ""; }

bool ft__move_exact(const ft_move *m, const ft_change *now)
{
    if (m->kind == FT_MOVE_BATCH) return now->work.task != FT_TRAIN; /* another batch is another optimisation */
    if (m->kind == FT_MOVE_OPTIMIZER)                                /* the same update, in fewer kernels */
        return m->to == FT_ADAMW && (now->work.optimizer == FT_ADAMW_FOREACH || now->work.optimizer == FT_ADAMW_LOOP);
    return moves[m->kind].after == KEPT;
}

static bool scale_batch(ft_change *c, int64_t to)
{
    if (to < 1 || to == c->work.batch) return false;
    c->work.batch = to;
    return true;
}

/* The same step in other portions. */
static bool scale_micro(ft_change *c, int64_t to)
{
    int64_t all = c->work.batch * c->work.accumulate;
    if (to < 1 || to == c->work.batch || all % to) return false;
    c->work.batch = to;
    c->work.accumulate = all / to;
    return true;
}

/* GPUs that join the data axis take micro-batches with them. */
static bool to_data(ft_change *c, int64_t *from)
{
    if (*from % 2 || c->work.accumulate % 2) return false;
    *from /= 2;
    c->parallel.dp *= 2;
    c->work.accumulate /= 2;
    return true;
}

static bool from_data(ft_change *c, int64_t *to)
{
    if (c->parallel.dp % 2) return false;
    c->parallel.dp /= 2;
    *to *= 2;
    c->work.accumulate *= 2;
    return true;
}

static bool shift(ft_change *c, ft_shift how)
{
    ft_parallel *p = &c->parallel;
    switch (how) {
    case FT_SHIFT_TP_TO_DP: return to_data(c, &p->tp);
    case FT_SHIFT_DP_TO_TP: return from_data(c, &p->tp);
    case FT_SHIFT_PP_TO_DP: return to_data(c, &p->pp);
    case FT_SHIFT_DP_TO_PP: return from_data(c, &p->pp);
    case FT_SHIFT_CP_TO_DP: return to_data(c, &p->cp);
    case FT_SHIFT_TP_TO_PP:
        if (p->tp % 2) return false;
        p->tp /= 2, p->pp *= 2;
        return true;
    case FT_SHIFT_PP_TO_TP:
        if (p->pp % 2) return false;
        p->pp /= 2, p->tp *= 2;
        return true;
    case FT_SHIFTS: break;
    }
    return false;
}

/* A stack may widen what lies beside packed weights, whatever format a request names: then it is autocast all the same.
 */
static bool set_dtype(ft_change *c, int64_t to)
{
    ft_workload *w = &c->work, asked = *w;
    const ft_parallel *p = &c->parallel;
    ft_dtype dtype = (ft_dtype)(to & (FT_MOVE_AUTOCAST - 1));
    bool autocast = (to & FT_MOVE_AUTOCAST) != 0;
    asked.dtype = dtype;
    asked.autocast = autocast;
    if (ft__kbit_prepared(&asked, ft__stack_of(&asked, p->zero, p->dp * p->cp))) autocast = true;
    if (w->dtype == dtype && w->autocast == autocast) return false;
    if (!c->kv_given) w->kv_dtype = ft__usual_kv_dtype(dtype, c->device->peak_tflops[FT_BF16] > 0);
    w->dtype = dtype;
    w->autocast = autocast;
    return true;
}

/* A model of other sizes. A width is shared by all heads, which must divide it. */
static bool resize(const ft_move *m, ft_change *c, ft_arena *arena)
{
    ft_arch *arch = ft__arena_alloc(arena, sizeof *arch);
    if (!arch) return false;
    *arch = *c->arch;
    if (m->kind == FT_MOVE_VOCAB) {
        arch->vocab = m->to;
    } else if (m->kind == FT_MOVE_FFN) {
        arch->ffn = m->to;
    } else {
        if (arch->heads < 1 || m->to % arch->heads || arch->head_dim * arch->heads != arch->hidden) return false;
        if (arch->rotary_dim == arch->head_dim) arch->rotary_dim = m->to / arch->heads;
        arch->head_dim = m->to / arch->heads;
        arch->hidden = m->to;
    }
    c->arch = arch;
    return true;
}

/* As many experts on a rank as before, or as many ranks as there are experts. */
static bool spread_experts(ft_change *c)
{
    ft_parallel *p = &c->parallel;
    int64_t experts = c->arch->experts, wide = p->ep * p->tp;
    if (p->tp < 2 || !p->sp || ft__expert_tensor(p) == 1 || experts < wide || experts % wide) return false;
    p->etp = 1;
    p->ep = wide;
    return true;
}

#define SET(at, value)                     \
    do {                                   \
        if ((at) == (value)) return false; \
        (at) = (value);                    \
        return true;                       \
    } while (0)

/* Compiled kernels are another way to the same end, so that both are positions of one switch. Whoever trains goes on
 * doing so: the Trainer's stack has one of its own for it. */
static bool join_loss(ft_workload *w)
{
    if (w->loss == FT_ENTROPY_FUSED_LINEAR) return false;
    w->loss = FT_ENTROPY_FUSED_LINEAR;
    const ft_stack *alone = ft__default_stacks[FT_STACK_FOR_FUSED_LINEAR];
    w->stack = w->stack == alone->base ? ft__default_stacks[FT_STACK_FOR_TRAINER_FUSED_LINEAR] : alone;
    return true;
}

/* What Megatron-Core's modules run again nobody else does. */
static void drop_modules(ft_workload *w, ft_execution to)
{
    if (w->again && to != FT_RUN_FUSED && w->recompute == FT_RECOMPUTE_SELECTIVE) w->recompute = FT_RECOMPUTE_NONE;
}

static bool apply(const ft_move *m, ft_change *c, ft_arena *arena)
{
    ft_workload *w = &c->work;
    ft_parallel *p = &c->parallel;
    switch (m->kind) {
    case FT_MOVE_VOCAB:
    case FT_MOVE_FFN:
    case FT_MOVE_HIDDEN: return resize(m, c, arena);
    case FT_MOVE_BATCH: return scale_batch(c, m->to);
    case FT_MOVE_MICRO: return scale_micro(c, m->to);
    case FT_MOVE_EXECUTION: drop_modules(w, (ft_execution)m->to); SET(w->execution, (ft_execution)m->to);
    case FT_MOVE_LOSS: return join_loss(w);
    case FT_MOVE_ATTENTION: SET(w->attention, (ft_attention_kind)m->to);
    case FT_MOVE_OPTIMIZER: SET(w->optimizer, (ft_optimizer)m->to);
    case FT_MOVE_DTYPE: return set_dtype(c, m->to);
    case FT_MOVE_RECOMPUTE: SET(w->recompute, (ft_recompute)m->to);
    case FT_MOVE_IMAGES: SET(w->nchw, false);
    case FT_MOVE_KV: c->kv_given = true; SET(w->kv_dtype, (ft_dtype)m->to);
    case FT_MOVE_WEIGHTS:
        ft__store_uniformly(w, m->to == 8 ? FT_STORED_INT8 : FT_STORED_INT4);
        SET(w->weight_bits, (double)m->to);
    case FT_MOVE_CACHE: SET(w->cache, (ft_cache_kind)m->to);
    case FT_MOVE_ADAPTERS: SET(w->lora_rank, m->to);
    case FT_MOVE_DEGREES: return shift(c, (ft_shift)m->to);
    case FT_MOVE_ZERO: SET(p->zero, (int)m->to);
    case FT_MOVE_COPIES:
        if (!ft__parallel_alone(p)) return false;
        p->dp = 8;
        p->zero = (int)m->to;
        return true;
    case FT_MOVE_SEQUENCE: SET(p->sp, true);
    case FT_MOVE_PIECES: SET(p->in_pieces, 1);
    case FT_MOVE_GATHER: SET(p->gather, FT_GATHER_LAYER);
    case FT_MOVE_DISPATCH: SET(p->dispatch_once, true);
    case FT_MOVE_EXPERT_OVERLAP: SET(p->expert_overlap, 1);
    case FT_MOVE_WHOLE_EXPERTS: return spread_experts(c);
    case FT_MOVE_SCHEDULE:
        if (m->to != FT_INTERLEAVED) p->vpp = 1;
        SET(p->schedule, (ft_schedule)m->to);
    case FT_MOVE_CHUNKS: p->schedule = FT_INTERLEAVED; SET(p->vpp, m->to);
    case FT_MOVE_OVERLAP: p->no_overlap = false; SET(p->overlap, true);
    case FT_MOVE_BUCKET: SET(p->bucket_bytes, (double)m->to * 1048576);
    case FT_MOVE_WIRE: SET(p->reduce_bytes, (double)m->to);
    case FT_MOVE_WORKERS: SET(c->loader.workers, m->to);
    case FT_MOVE_PINNED: SET(c->loader.pageable, false);
    case FT_MOVE_PACKED:
        if (!(c->loader.sample_bytes > 0) || !(c->loader.disk_gbps > 0)) return false;
        SET(c->loader.samples_per_s_disk, c->loader.disk_gbps * 1e9 / c->loader.sample_bytes);
    case FT_MOVE_GPU:
        if (!m->device) return false;
        SET(c->device, m->device);
    case FT_MOVE_KINDS: break;
    }
    return false;
}

/* Another execution or more copies may be software that shards in any case, as a request would say it. Software that
 * packs short examples is given the sequences as asked: less work is no saving. */
bool ft__move_apply(const ft_move *m, ft_change *c, ft_arena *arena)
{
    ft_parallel *p = &c->parallel;
    int before = p->zero;
    const bool whole = ft__documents(&c->work) < 1;
    if (!apply(m, c, arena)) return false;
    if (whole && ft__documents(&c->work) > 0) c->work.packed = c->work.seq;
    int asked = c->zero_raised && m->kind != FT_MOVE_ZERO && m->kind != FT_MOVE_COPIES ? 0 : p->zero;
    p->zero = ft__zero_of(&c->work, asked, p->dp * p->cp);
    c->zero_raised = p->zero != asked;
    return m->kind != FT_MOVE_ZERO || p->zero != before;
}

bool ft__change_merges(const ft_change *now, const ft_change *alone, const ft_change *before, const ft_change *after)
{
#define MERGES(field) \
    if (after->field != (alone->field != now->field ? alone->field : before->field)) return false;
    FT_CHANGE_FIELDS(MERGES)
#undef MERGES
    const int none = -1;
#define KV(c) ((c)->kv_given ? (int)(c)->work.kv_dtype : none)
    if (KV(after) != (KV(alone) != KV(now) ? KV(alone) : KV(before))) return false;
#undef KV
    const int64_t all = ft__change_global(alone);
    return ft__change_global(after) == (all != now->global_batch ? all : ft__change_global(before));
}

/* check.c: layouts that cannot be, and the nearest that can. */
#include <stdio.h>

#include "layout/layout.h"

/* Whether an axis can be cut so many ways as far as the model goes: all that is asked of its degree, so that what a
 * message names is not refused for another reason. */
typedef bool takes(const ft_parallel *p, const ft_divisible *m, int64_t degree);

static bool whole(int64_t of, int64_t degree) { return of < 1 || of % degree == 0; }

static bool takes_tp(const ft_parallel *p, const ft_divisible *m, int64_t tp)
{
    int64_t kv = m->kv_heads, tokens = p->sp && tp > 1 && m->seq % p->cp == 0 ? m->seq / p->cp : 0;
    bool shared = kv < 1 || (kv >= tp ? kv % tp == 0 : tp % kv == 0);
    return whole(m->heads, tp) && shared && whole(tokens, tp);
}

static bool takes_cp(const ft_parallel *p, const ft_divisible *m, int64_t cp)
{
    if (cp == 1) return true;
    return m->seq % (2 * cp) == 0 && !(p->context == FT_CONTEXT_ULYSSES && m->heads % (p->tp * cp)) &&
           !(p->sp && p->tp > 1 && m->seq / cp % p->tp);
}

static bool takes_ep(const ft_parallel *p, const ft_divisible *m, int64_t ep)
{
    return whole(m->experts, ep) && ft__expert_room(p) % ep == 0;
}

/* Copies are whole, of experts too: more ranks than hold the same ones share these among all of them. */
static bool takes_shard(const ft_parallel *p, const ft_divisible *m, int64_t shard)
{
    int64_t all = p->dp * p->cp, experts = m->experts > 0 && p->ep > 1 ? ft__expert_room(p) / p->ep : all;
    return all % shard == 0 && (shard >= experts || experts % shard == 0);
}

/* The degrees around `wanted` that can be taken, up to `most`, as text. One always can. */
static void nearest_taken(takes *can, const ft_parallel *p, const ft_divisible *m, int64_t wanted, int64_t most,
                          char *out, size_t room)
{
    int64_t below = wanted > most ? most : wanted - 1, above = wanted + 1;
    if (most > (int64_t)1 << 20) most = (int64_t)1 << 20;
    while (below > 1 && !can(p, m, below)) below--;
    while (above <= most && !can(p, m, above)) above++;
    if (above <= most)
        snprintf(out, room, "%lld or %lld", (long long)below, (long long)above);
    else
        snprintf(out, room, "%lld", (long long)below);
}

static ft_status divides(const char *key, int64_t degree, int64_t of, const char *what, const char *near, ft_error *err)
{
    if (whole(of, degree)) return FT_OK;
    char where[32];
    snprintf(where, sizeof where, "parallel.%s", key);
    return ft__fail_at(err, FT_E_RANGE, where, 0, 0, "\"%s\" %lld does not divide the model's %lld %s; %s would", key,
                       (long long)degree, (long long)of, what, near);
}

static ft_status positive(const char *key, int64_t degree, ft_error *err)
{
    if (degree >= 1 && degree <= 1000000) return FT_OK;
    char where[32];
    snprintf(where, sizeof where, "parallel.%s", key);
    return ft__fail_at(err, FT_E_RANGE, where, 0, 0, "\"%s\" must be from 1 to 1,000,000, got %lld", key,
                       (long long)degree);
}

/* Virtual stages take layers that divide, embedding and loss counted as one each where that helps: the nearest numbers
 * of them for so many stages. One per stage always does. */
static ft_status check_chunks(const ft_parallel *p, int64_t layers, ft_error *err)
{
    if (ft__layout_deal(layers, p->pp * p->vpp, p->rest) != FT_DEAL_FRONT) return FT_OK;
    int64_t below = p->vpp, above = below + 1, most = (layers + 2) / p->pp; /* vpp itself does not */
    while (below > 1 && ft__layout_deal(layers, p->pp * below, p->rest) == FT_DEAL_FRONT) below--;
    while (above <= most && ft__layout_deal(layers, p->pp * above, p->rest) == FT_DEAL_FRONT) above++;
    char near[64];
    if (above <= most)
        snprintf(near, sizeof near, "%lld or %lld", (long long)below, (long long)above);
    else
        snprintf(near, sizeof near, "%lld", (long long)below);
    return ft__fail_at(err, FT_E_RANGE, "parallel.vpp", 0, 0,
                       "pp * vpp = %lld divides neither the model's %lld layers nor %lld, the loss counted as one, nor "
                       "%lld, the embedding too; \"vpp\" %s would do%s",
                       (long long)p->pp * p->vpp, (long long)layers, (long long)layers + 1, (long long)layers + 2, near,
                       ft__layout_deal(layers, p->pp * p->vpp, true) == FT_DEAL_REST ? ", or \"deal\": \"rest\"" : "");
}

/* Every chunk is laid out beside every other: a second for so many, a minute for sixteen times as many. */
enum { MOST_CHUNKS = 4096 };

static ft_status check_pipeline(const ft_parallel *p, const ft_divisible *m, ft_error *err)
{
    /* Of many chunks the first may hold the embedding alone and the last the head; a stage has a layer in any case. */
    int64_t room = m->layers + (p->vpp > 1 ? 2 : 0), most = room / p->vpp;
    if (p->pp > 1 && room < p->pp * p->vpp) {
        bool chunkless = p->vpp > 1 && most < 2; /* so many chunks leave no pipeline at all */
        return ft__fail_at(
            err, FT_E_RANGE, "parallel.pp", 0, 0,
            "%lld stages of %lld chunk%s are more than the model's %lld layer%s; %s\"pp\" can be at most %lld",
            (long long)p->pp, (long long)p->vpp, p->vpp > 1 ? "s" : "", (long long)m->layers, m->layers == 1 ? "" : "s",
            chunkless ? "with \"vpp\" 1 " : "", (long long)(chunkless ? m->layers : most));
    }
    if (p->pp > 1 && ft__schedule_folds(p->schedule) && m->layers < 2 * p->pp)
        return ft__fail_at(err, FT_E_RANGE, "parallel.pp", 0, 0,
                           "\"%s\" has two chunks per stage: %lld stages are more than half of the model's %lld layers",
                           ft__schedule_name(p->schedule), (long long)p->pp, (long long)m->layers);
    int64_t chunks = ft__schedule_folds(p->schedule) ? 2 : p->vpp;
    if (p->pp > 1 && p->pp * chunks > MOST_CHUNKS)
        return ft__fail_at(err, FT_E_RANGE, p->vpp > 1 ? "parallel.vpp" : "parallel.pp", 0, 0,
                           "a pipeline has at most %d chunks in all: %lld stages of %lld chunk%s are %lld", MOST_CHUNKS,
                           (long long)p->pp, (long long)chunks, chunks == 1 ? "" : "s", (long long)p->pp * chunks);
    if (p->vpp <= 1) return FT_OK;
    if (p->pp < 2)
        return ft__fail_at(err, FT_E_RANGE, "parallel.vpp", 0, 0, "\"vpp\" %lld needs a pipeline: \"pp\" is 1",
                           (long long)p->vpp);
    if (p->schedule != FT_INTERLEAVED)
        return ft__fail_at(err, FT_E_RANGE, "parallel.vpp", 0, 0,
                           "\"vpp\" %lld needs the schedule \"interleaved\"; \"%s\" has %s per stage",
                           (long long)p->vpp, ft__schedule_name(p->schedule),
                           ft__schedule_folds(p->schedule) ? "two chunks" : "one chunk");
    return m->uneven ? FT_OK : check_chunks(p, m->layers, err);
}

static ft_status check_heads(const ft_parallel *p, const ft_divisible *m, const char *near, ft_error *err)
{
    FT_TRY(divides("tp", p->tp, m->heads, "attention heads", near, err));
    if (m->kv_heads >= p->tp) FT_TRY(divides("tp", p->tp, m->kv_heads, "key-value heads", near, err));
    if (m->kv_heads > 0 && m->kv_heads < p->tp && p->tp % m->kv_heads)
        return ft__fail_at(err, FT_E_RANGE, "parallel.tp", 0, 0,
                           "\"tp\" %lld over %lld key-value heads: each must be held by as many ranks; %s would do",
                           (long long)p->tp, (long long)m->kv_heads, near);
    return FT_OK;
}

static ft_status check_context(const ft_parallel *p, const ft_divisible *m, ft_error *err)
{
    if (p->cp <= 1) return FT_OK;
    char near[64];
    if (m->seq % (2 * p->cp)) {
        nearest_taken(takes_cp, p, m, p->cp, m->seq / 2, near, sizeof near);
        return ft__fail_at(err, FT_E_RANGE, "parallel.cp", 0, 0,
                           "\"cp\" %lld needs a sequence that %lld divides, two slices per rank; got %lld, for which "
                           "%s would do",
                           (long long)p->cp, 2 * (long long)p->cp, (long long)m->seq, near);
    }
    if (p->context == FT_CONTEXT_ULYSSES && m->heads % (p->tp * p->cp)) {
        nearest_taken(takes_cp, p, m, p->cp, m->heads / p->tp, near, sizeof near);
        return ft__fail_at(
            err, FT_E_RANGE, "parallel.cp", 0, 0,
            "ulysses trades tokens for heads: \"cp\" %lld does not divide the %lld heads of a tensor rank; %s "
            "would",
            (long long)p->cp, (long long)(m->heads / p->tp), near);
    }
    return FT_OK;
}

static ft_status check_experts(const ft_parallel *p, const ft_divisible *m, ft_error *err)
{
    if (p->etp > 0 && p->etp != 1 && p->etp != p->tp)
        return ft__fail_at(err, FT_E_RANGE, "parallel.etp", 0, 0,
                           "\"etp\" %lld: an expert is cut over all tensor ranks (%lld) or over none (1)",
                           (long long)p->etp, (long long)p->tp);
    if (p->etp == 1 && p->tp > 1 && !p->sp)
        return ft__fail_at(err, FT_E_RANGE, "parallel.etp", 0, 0,
                           "\"etp\" 1 beside \"tp\" %lld needs \"sp\": every tensor rank sends tokens of its own",
                           (long long)p->tp);
    if (p->ep <= 1) return FT_OK;
    if (m->experts < 1)
        return ft__fail_at(err, FT_E_RANGE, "parallel.ep", 0, 0, "\"ep\" %lld: the model has no experts",
                           (long long)p->ep);
    if (m->experts < p->ep)
        return ft__fail_at(err, FT_E_RANGE, "parallel.ep", 0, 0,
                           "\"ep\" %lld is more than the model's %lld experts; it can be at most that",
                           (long long)p->ep, (long long)m->experts);
    char near[64];
    if (takes_ep(p, m, p->ep)) return FT_OK;
    nearest_taken(takes_ep, p, m, p->ep, m->experts, near, sizeof near);
    FT_TRY(divides("ep", p->ep, m->experts, "experts", near, err));
    bool folds = p->tp > 1 && p->etp != 1 && (p->dp * p->cp * p->tp) % p->ep == 0;
    if (p->etp == 1 && p->tp > 1)
        return ft__fail_at(err, FT_E_RANGE, "parallel.ep", 0, 0,
                           "whole experts are spread over all ranks of a stage: \"ep\" %lld must divide dp * cp * tp = "
                           "%lld; %s would",
                           (long long)p->ep, (long long)ft__expert_room(p), near);
    return ft__fail_at(err, FT_E_RANGE, "parallel.ep", 0, 0,
                       "experts are spread over data and context ranks: \"ep\" %lld must divide dp * cp = %lld; %s "
                       "would%s",
                       (long long)p->ep, (long long)ft__expert_room(p), near,
                       folds ? ", or with \"etp\" 1 and \"sp\" over tensor ranks too" : "");
}

/* Megatron-Core's overlap_moe_expert_parallel_comm needs chunks where there are stages (transformer_config.py): with
 * one of them a stage has the same micro-batch on both sides. */
static ft_status check_expert_overlap(const ft_parallel *p, ft_error *err)
{
    if (p->expert_overlap < 1 || p->ep <= 1) return FT_OK; /* nothing to hide: warned of (request/effects.c) */
    bool chunks = p->schedule == FT_INTERLEAVED && p->vpp > 1;
    if (p->pp > 1 && !chunks && p->schedule != FT_DUALPIPE)
        return ft__fail_at(err, FT_E_RANGE, "parallel.expert_overlap", 0, 0,
                           "\"expert_overlap\" in a pipeline needs the schedule \"interleaved\" with \"vpp\" 2 or "
                           "more, or \"dualpipe\"; it is \"%s\"",
                           ft__schedule_name(p->schedule));
    return FT_OK;
}

static ft_status check_shards(const ft_parallel *p, const ft_divisible *m, ft_error *err)
{
    if (p->zero < 0 || p->zero > 3)
        return ft__fail_at(err, FT_E_RANGE, "parallel.zero", 0, 0, "\"zero\" is a stage from 0 to 3, got %d", p->zero);
    if (p->shard > 0 && p->zero < 1)
        return ft__fail_at(err, FT_E_RANGE, "parallel.shard", 0, 0,
                           "\"shard\" %lld says over how many ranks \"zero\" shards; \"zero\" is 0",
                           (long long)p->shard);
    if (p->shard > 0 && !takes_shard(p, m, p->shard)) {
        char near[64];
        bool experts = (p->dp * p->cp) % p->shard == 0; /* these alone are what it does not divide */
        nearest_taken(takes_shard, p, m, p->shard, p->dp * p->cp, near, sizeof near);
        return ft__fail_at(err, FT_E_RANGE, "parallel.shard", 0, 0,
                           "\"shard\" %lld does not divide the %lld ranks that hold the same %s; %s would",
                           (long long)p->shard, (long long)(experts ? ft__expert_room(p) / p->ep : p->dp * p->cp),
                           experts ? "experts" : "parameters (dp * cp)", near);
    }
    return FT_OK;
}

ft_status ft__parallel_check(const ft_parallel *p, const ft_divisible *m, ft_error *err)
{
    FT_TRY(positive("dp", p->dp, err));
    FT_TRY(positive("tp", p->tp, err));
    FT_TRY(positive("pp", p->pp, err));
    FT_TRY(positive("vpp", p->vpp, err));
    FT_TRY(positive("cp", p->cp, err));
    FT_TRY(positive("ep", p->ep, err));
    if ((double)p->dp * (double)p->tp * (double)p->pp * (double)p->cp > 1e7)
        return ft__fail_at(err, FT_E_RANGE, "parallel", 0, 0, "%.3g ranks are more than any cluster has",
                           (double)p->dp * (double)p->tp * (double)p->pp * (double)p->cp);
    if (p->ep > 1 && m->experts > 0 && !m->cuttable)
        return ft__fail_at(err, FT_E_UNSUPPORTED, "parallel.ep", 0, 0,
                           "\"ep\" is forecast for decoder-only models; the experts of this one are held by every "
                           "\"dp\" rank");
    if ((p->tp > 1 || p->cp > 1) && !m->cuttable)
        return ft__fail_at(err, FT_E_UNSUPPORTED, "parallel", 0, 0,
                           "\"tp\" and \"cp\" are forecast for decoder-only and BERT-like models; this one takes "
                           "\"dp\"%s and \"zero\"",
                           m->in_a_row ? ", \"pp\"" : "");
    char near[64] = "";
    if (!takes_tp(p, m, p->tp))
        nearest_taken(takes_tp, p, m, p->tp, m->heads > 0 ? m->heads : m->seq, near, sizeof near);
    FT_TRY(check_heads(p, m, near, err));
    FT_TRY(check_pipeline(p, m, err));
    FT_TRY(check_context(p, m, err));
    if (p->sp && p->tp > 1) FT_TRY(divides("tp", p->tp, m->seq / p->cp, "tokens of a sequence (sp)", near, err));
    FT_TRY(check_experts(p, m, err));
    FT_TRY(check_expert_overlap(p, err));
    return check_shards(p, m, err);
}

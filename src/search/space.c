/* space.c: the layouts that a framework takes of a model on so many GPUs.
 *
 * Degrees that nobody names are tried where they can help: tensor ranks inside of what NVLink joins, context ranks
 * where a sequence is long enough to be cut, expert ranks where there are experts, micro-batches of one to eight. What
 * cannot be (layout/check.c, the schedule) is left out, and so are layouts that run the same kernels as another: with
 * attention that keeps no scores selective recomputation drops nothing. */
#include <stdlib.h>
#include <string.h>

#include "model/packing.h"
#include "model/stack.h"
#include "request/effects.h"
#include "search/plan.h"
#include "search/space_constants.h"

typedef struct degrees {
    int64_t at[64];
    size_t count;
} degrees;

static bool has(const ft_plan_set *set, int64_t value)
{
    for (size_t i = 0; i < set->count; i++)
        if (set->at[i] == value) return true;
    return false;
}

/* What was asked for, or powers of two up to `most`. */
static degrees powers(const ft_plan_set *asked, int64_t most)
{
    degrees d = {0};
    for (size_t i = 0; i < asked->count; i++) d.at[d.count++] = asked->at[i];
    if (asked->count) return d;
    for (int64_t value = 1; value <= most && d.count < 64; value *= 2) d.at[d.count++] = value;
    return d;
}

static degrees divisors(const ft_plan_set *asked, int64_t of, int64_t most)
{
    degrees d = {0};
    for (size_t i = 0; i < asked->count; i++) d.at[d.count++] = asked->at[i];
    if (asked->count) return d;
    for (int64_t value = 1; value <= most && d.count < 64; value++)
        if (of % value == 0) d.at[d.count++] = value;
    return d;
}

static int64_t domain_of(const ft_cluster *c)
{
    int64_t domain = 1;
    for (int i = 0; i < c->tiers; i++)
        if (c->tier[i].fabric < FT_INFINIBAND) domain = c->tier[i].gpus;
    return domain;
}

static ft_status add(ft_search *s, const ft_layout *layout, ft_error *err)
{
    if (s->candidate_count == s->candidate_room) {
        size_t room = s->candidate_room ? 2 * s->candidate_room : 1024;
        ft_candidate *more = realloc(s->candidates, room * sizeof *more);
        if (!more) return ft__fail(err, FT_E_MEMORY, "out of memory for layouts");
        s->candidates = more;
        s->candidate_room = room;
    }
    ft_candidate *c = &s->candidates[s->candidate_count++];
    memset(c, 0, sizeof *c);
    c->layout = *layout;
    return FT_OK;
}

/* Nobody reads why not, and words take longer than all checks. */
static bool possible(const ft_search *s, const ft_layout *l)
{
    ft_model_request r = ft__plan_request_of(s, l);
    return ft__pipeline_check(l->parallel.schedule, l->parallel.pp, ft__parallel_chunks(&l->parallel), l->micros,
                              NULL) == FT_OK &&
           ft__model_request_check(&r, NULL) == FT_OK;
}

/* -- one degree after another ------------------------------------------------------------------ */

static bool drops_nothing(const ft_search *s, ft_recompute recompute)
{
    const ft_workload *w = &s->request.work;
    if (recompute != FT_RECOMPUTE_NONE && !s->recomputes) return true;
    return recompute == FT_RECOMPUTE_SELECTIVE && ft__stack(w)->selective == FT_SELECTIVE_CORE_ATTENTION &&
           !(w->again & ft__modules_of(s->request.arch, w)) && (ft__flashes(w->attention) || w->attention == FT_SDPA);
}

/* With what on the host the framework takes a layout; what was named is kept as it stands. */
static ft_status add_offloaded(ft_search *s, ft_layout *l, ft_error *err)
{
    const ft_framework *f = s->framework;
    unsigned named = s->request.work.offload;
    bool alone = l->parallel.dp * l->parallel.cp < 2;
    l->offload = 0;
    if (!named) FT_TRY(add(s, l, err));
    for (size_t i = 0; i < f->offload_count; i++) {
        const ft_offload_rule *rule = &f->offload[i];
        if (named ? rule->what != named : !s->asked->allow_offload || !rule->tried) continue;
        if (!alone && !(rule->zero & 1u << l->parallel.zero)) continue;
        if (!(rule->recompute & 1u << l->recompute) || (l->parallel.pp > 1 && !rule->pipelines)) continue;
        l->offload = rule->what;
        FT_TRY(add(s, l, err));
    }
    l->offload = 0;
    return FT_OK;
}

static ft_status add_recomputed(ft_search *s, ft_layout *l, ft_error *err)
{
    unsigned has = s->framework->recompute, words = s->asked->recompute ? s->asked->recompute & has : has;
    bool first = true;
    for (int k = 0; k < 3; k++) {
        l->recompute = (ft_recompute)k;
        bool alone = words == 1u << k; /* asked for by name */
        if (!(words & 1u << k) || (!alone && drops_nothing(s, l->recompute))) continue;
        if (first && !possible(s, l)) return FT_OK; /* recomputation decides nothing of that */
        first = false;
        FT_TRY(add_offloaded(s, l, err));
    }
    return FT_OK;
}

static ft_status add_experts(ft_search *s, ft_layout *l, ft_error *err)
{
    ft_parallel *p = &l->parallel;
    bool experts = s->model.experts > 0 && (s->framework->ep || s->asked->allow_ep || s->asked->ep.count);
    ft_plan_set one = {.at = {1}, .count = 1};
    degrees ep = powers(experts ? &s->asked->ep : &one, s->model.experts);
    int folds = experts && s->framework->folds_experts && p->tp > 1 && p->sp;
    for (int whole = 0; whole <= folds; whole++) {
        int64_t etp = whole ? 1 : p->tp;
        if (s->asked->etp.count && !has(&s->asked->etp, etp)) continue;
        for (size_t i = 0; i < ep.count; i++) {
            p->ep = ep.at[i];
            p->etp = whole ? 1 : 0;
            if (whole && p->ep == 1) continue; /* experts whole on every rank: more memory, nothing gained */
            if (p->ep > ft__expert_room(p) || (p->ep > 1 && s->model.experts % p->ep)) continue;
            FT_TRY(add_recomputed(s, l, err));
        }
    }
    p->ep = 1;
    p->etp = 0;
    return FT_OK;
}

static ft_status add_schedules(ft_search *s, ft_layout *l, ft_error *err)
{
    ft_parallel *p = &l->parallel;
    unsigned known = s->framework->schedules, words = s->asked->schedules ? s->asked->schedules & known : known;
    if (p->pp == 1) {
        if (s->asked->vpp.count && !has(&s->asked->vpp, 1)) return FT_OK;
        p->schedule = FT_1F1B;
        p->vpp = 1;
        return add_experts(s, l, err);
    }
    for (int k = 0; k < FT_SCHEDULE_COUNT; k++) {
        if (!(words & 1u << k)) continue;
        p->schedule = (ft_schedule)k;
        int64_t from = k == FT_INTERLEAVED ? 2 : 1, to = k == FT_INTERLEAVED ? s->model.layers / p->pp + 1 : 1;
        for (p->vpp = from; p->vpp <= to; p->vpp++) {
            if (s->asked->vpp.count && !has(&s->asked->vpp, p->vpp)) continue;
            FT_TRY(add_experts(s, l, err));
        }
    }
    p->vpp = 1;
    p->schedule = FT_1F1B;
    return FT_OK;
}

/* Sequences that are short, and images, come in larger micro-batches. */
static int64_t largest_batch(const ft_search *s)
{
    if (s->model.seq < 1) return FT_K_SPACE_MICRO_BATCH_PICTURES;
    int64_t most = FT_K_SPACE_MICRO_BATCH_TOKENS / s->model.seq;
    return most > FT_K_SPACE_LARGEST_MICRO_BATCH ? most : FT_K_SPACE_LARGEST_MICRO_BATCH;
}

static ft_status add_batches(ft_search *s, ft_layout *l, ft_error *err)
{
    ft_parallel *p = &l->parallel;
    degrees batch = powers(&s->asked->batch, largest_batch(s));
    for (size_t i = 0; i < batch.count; i++) {
        l->batch = batch.at[i];
        if (s->asked->global % (l->batch * p->dp)) continue;
        l->micros = s->asked->global / (l->batch * p->dp);
        FT_TRY(add_schedules(s, l, err));
    }
    return FT_OK;
}

static unsigned zero_asked(const ft_search *s)
{
    unsigned words = 0;
    for (size_t i = 0; i < s->asked->zero.count; i++) words |= 1u << s->asked->zero.at[i];
    return words;
}

static bool cuts_some(const ft_plan_set *set)
{
    for (size_t i = 0; i < set->count; i++)
        if (set->at[i] > 1) return true;
    return false;
}

bool ft__plan_asks_in_vain(const ft_search *s)
{
    const ft_framework *f = s->framework;
    const ft_plan_request *r = s->asked;
    if (f->only_data && (cuts_some(&r->tp) || cuts_some(&r->pp) || cuts_some(&r->cp))) return true;
    return zero_asked(s) & ~f->zero_allowed || s->asked->schedules & ~f->schedules ||
           s->asked->recompute & ~f->recompute;
}

static ft_status add_sharding(ft_search *s, ft_layout *l, ft_error *err)
{
    unsigned words = s->framework->zero;
    ft_parallel *p = &l->parallel;
    if (s->asked->allow_zero3 && s->framework->zero_allowed & 1u << 3) words |= 1u << 3;
    if (s->asked->zero.count) words = zero_asked(s) & s->framework->zero_allowed;
    bool alone = p->dp * p->cp < 2; /* nobody to share with */
    for (int zero = 0; zero <= 3; zero++) {
        if (!alone && !(words & 1u << zero)) continue;
        p->zero = zero;
        FT_TRY(add_batches(s, l, err));
        if (alone) break;
    }
    return FT_OK;
}

bool ft__layout_says_context(const ft_parallel *p)
{
    return p->cp > 1 && (p->context == FT_CONTEXT_ULYSSES || p->context == FT_CONTEXT_GATHER);
}

/* How context ranks may exchange: as the request or the stack says, or any way that the framework has. */
static ft_status add_context_kinds(ft_search *s, ft_layout *l, ft_error *err)
{
    const json_t *given = ft__key_get(s->asked->base, FT_KEY_ID_PARALLEL);
    bool named = ft__key_get(given, FT_KEY_ID_CP_KIND) || ft__key_get(given, FT_KEY_ID_ULYSSES);
    ft_context_kind own = l->parallel.context;
    FT_TRY(add_sharding(s, l, err));
    if (l->parallel.cp < 2 || named || !s->asked->allow_cp_kinds) return FT_OK;
    for (int k = 0; k < FT_CONTEXT_COUNT; k++) {
        if (k == (int)own || !(s->framework->cp_kinds & 1u << k)) continue;
        l->parallel.context = (ft_context_kind)k;
        FT_TRY(add_sharding(s, l, err));
    }
    l->parallel.context = own;
    return FT_OK;
}

ft_status ft__plan_layouts(ft_search *s, ft_error *err)
{
    const ft_framework *f = s->framework;
    int64_t gpus = s->asked->gpus, seq = s->request.work.seq, layers = s->model.layers;
    ft_plan_set one = {.at = {1}, .count = 1};
    bool cuts = !f->only_data && s->model.cuttable, rows = !f->only_data && s->model.in_a_row;
    bool long_enough = f->cp && seq >= 2 * FT_K_SPACE_SHORTEST_SLICE;
    /* Who says cp has whole sequences; packed ones are not shared (request/step_keys.c). */
    if (ft__plan_cuts_by(&s->asked->cp)) s->request.work.one_document = true;
    bool shared = ft__documents(&s->request.work) < 1;
    bool context = cuts && shared && (long_enough || s->asked->allow_cp || s->asked->cp.count);
    degrees tp = powers(cuts || (s->asked->tp.count && !f->only_data) ? &s->asked->tp : &one, domain_of(&s->cluster));
    degrees cp = powers(context ? &s->asked->cp : &one, seq / (int64_t)FT_K_SPACE_SHORTEST_SLICE);
    for (size_t t = 0; t < tp.count; t++)
        for (size_t c = 0; c < cp.count; c++) {
            int64_t each = tp.at[t] * cp.at[c];
            if (gpus % each) continue;
            if (cp.at[c] > 1 && s->model.seq % (2 * cp.at[c])) continue; /* two slices a rank, as the check says */
            if (f->tp_divides_kv_heads && s->model.kv_heads > 0 && s->model.kv_heads % tp.at[t]) continue;
            degrees pp = divisors(rows || (s->asked->pp.count && !f->only_data) ? &s->asked->pp : &one, gpus / each,
                                  layers > 0 ? layers : 1);
            for (size_t i = 0; i < pp.count; i++) {
                if (gpus % (each * pp.at[i])) continue;
                ft_layout l = {.parallel = s->request.parallel, .batch = 1, .micros = 1};
                l.parallel.tp = tp.at[t];
                l.parallel.cp = cp.at[c];
                l.parallel.pp = pp.at[i];
                l.parallel.dp = gpus / (each * pp.at[i]);
                l.parallel.vpp = l.parallel.ep = 1;
                l.parallel.etp = 0;
                l.parallel.schedule = FT_1F1B;
                l.parallel.sp = f->sp_with_tp && tp.at[t] > 1;
                FT_TRY(add_context_kinds(s, &l, err));
            }
        }
    return FT_OK;
}

ft_status ft__plan_space(ft_search *s, ft_error *err)
{
    FT_TRY(ft__plan_refused(s, err));
    FT_TRY(ft__plan_layouts(s, err));
    return s->candidate_count ? FT_OK : ft__plan_cannot(s, err);
}

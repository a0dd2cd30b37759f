/* parallel.c: reading `parallel`. */
#include "request/parallel.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/text.h"
#include "ranks/ranks.h"
#include "request/foreign.h"
#include "request/keys.h"
#include "request/request.h"
#include "request/words.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* `ulysses` is the older word for one of the kinds. */
static ft_status settle_context(const ft_said *s, ft_context_kind *out, ft_error *err)
{
    int kind = ft__word_of(s, FT_KEY_ID_CP_KIND);
    bool ulysses = ft__switch_of(s, FT_KEY_ID_ULYSSES), named = ft__given(s, FT_KEY_ID_CP_KIND);
    if (named && ft__given(s, FT_KEY_ID_ULYSSES) && ulysses != (kind == FT_CONTEXT_ULYSSES))
        return ft__fail_at(err, FT_E_RANGE, "parallel.ulysses", 0, 0,
                           "\"ulysses\" is %s and \"cp_kind\" is \"%s\": one of them is enough",
                           ulysses ? "true" : "false", ft__context_words[kind]);
    *out = ulysses && !named ? FT_CONTEXT_ULYSSES : (ft_context_kind)kind;
    return FT_OK;
}

/* One of ours by another's name; NULL: none. */
static const char *here(const char *theirs)
{
    ft_key_id id = ft__foreign_key(theirs);
    return id < FT_KEY_COUNT && ft__keys[id].section == FT_SECTION_PARALLEL ? ft__keys[id].key : NULL;
}

const char *ft__parallel_key(const char *said)
{
    ft_key_id id = ft__key_find(FT_SECTION_PARALLEL, said);
    return id < FT_KEY_COUNT ? ft__keys[id].key : here(said);
}

static ft_status check_names(const json_t *parallel, ft_error *err)
{
    json_t *readable = (json_t *)(uintptr_t)parallel; /* Jansson's iterators change nothing */
    for (void *it = json_object_iter(readable); it; it = json_object_iter_next(readable, it)) {
        const char *key = json_object_iter_key(it), *ours = here(key);
        char where[128];
        if (!ours) continue;
        int shown = (int)ft__utf8_cut(key, 100);
        snprintf(where, sizeof where, "parallel.%.*s", shown, key);
        return ft__fail_at(err, FT_E_KEY, where, 0, 0, "unknown key \"%.*s\"; here it is \"%s\"", shown, key, ours);
    }
    return ft__keys_known(parallel, &(ft_section){FT_SECTION_PARALLEL}, 1, err);
}

ft_status ft__parallel_read(const json_t *object, ft_said *said, ft_error *err)
{
    const json_t *p = ft__key_get(object, FT_KEY_ID_PARALLEL);
    if (!p) return FT_OK;
    if (!json_is_object(p))
        return ft__fail_at(err, FT_E_TYPE, "parallel", 0, 0, "\"parallel\" must be an object: {\"tp\": 2, \"dp\": 4}");
    FT_TRY(check_names(p, err));
    return ft__said_read(p, FT_SECTION_PARALLEL, said, err);
}

/* `dp` takes what the other degrees leave of `gpus`; where all are given they must agree. */
static ft_status fill_up(const ft_said *s, ft_parallel *p, ft_error *err)
{
    int64_t all = ft__whole_of(s, FT_KEY_ID_GPUS), others = p->tp * p->pp;
    if (all < 1 || others > 1000000) return FT_OK; /* without a GPU, or refused where degrees are checked */
    others *= p->cp;
    if (ft__given(s, FT_KEY_ID_DP)) {
        if (p->dp * others == all) return FT_OK;
        return ft__fail_at(err, FT_E_RANGE, "parallel.gpus", 0, 0,
                           "%" PRId64 " GPUs, but tp x cp x dp x pp makes %" PRId64 " ranks; leave one of them out",
                           all, p->dp * others);
    }
    if (all % others) {
        int64_t below = all / others * others;
        char text[64] = "";
        if (below > 0) snprintf(text, sizeof text, "%" PRId64 " and ", below);
        return ft__fail_at(err, FT_E_RANGE, "parallel.gpus", 0, 0,
                           "%" PRId64 " GPUs are not a multiple of tp x cp x pp = %" PRId64
                           "; the nearest %s %s%" PRId64,
                           all, others, below > 0 ? "are" : "is", text, below + others);
    }
    p->dp = all / others;
    return FT_OK;
}

/* What was said, and what follows from it: on, off, or as the stack and the schedule do it. */
ft_status ft__parallel_settle(const ft_said *s, ft_parallel *out, ft_error *err)
{
    int overlap = ft__tristate_of(s, FT_KEY_ID_OVERLAP), reshard = ft__tristate_of(s, FT_KEY_ID_RESHARD);
    int sends = ft__tristate_of(s, FT_KEY_ID_OVERLAP_P2P), gather = ft__word_of(s, FT_KEY_ID_GATHER);
    int reduce = ft__word_of(s, FT_KEY_ID_REDUCE_DTYPE), gathered = ft__word_of(s, FT_KEY_ID_GATHER_DTYPE);
    int schedule = ft__word_of(s, FT_KEY_ID_SCHEDULE);
    *out = (ft_parallel){
        .dp = ft__whole_of(s, FT_KEY_ID_DP),
        .tp = ft__whole_of(s, FT_KEY_ID_TP),
        .pp = ft__whole_of(s, FT_KEY_ID_PP),
        .vpp = ft__whole_of(s, FT_KEY_ID_VPP),
        .cp = ft__whole_of(s, FT_KEY_ID_CP),
        .ep = ft__whole_of(s, FT_KEY_ID_EP),
        .etp = ft__whole_of(s, FT_KEY_ID_ETP),
        .zero = (int)ft__whole_of(s, FT_KEY_ID_ZERO),
        .sp = ft__switch_of(s, FT_KEY_ID_SP),
        .overlap = overlap == 1,
        .no_overlap = overlap == 0,
        .gather = gather < 0 ? FT_GATHER_AS_STACK
                  : gather   ? FT_GATHER_PARAMETER
                             : FT_GATHER_LAYER,
        .drop_gathered = reshard == 1,
        .keep_gathered = reshard == 0,
        .gather_ahead = ft__switch_of(s, FT_KEY_ID_GATHER_OVERLAP),
        .in_pieces = ft__tristate_of(s, FT_KEY_ID_TP_OVERLAP),
        .overlap_sends = sends == 1,
        .wait_sends = sends == 0,
        .rest = ft__word_of(s, FT_KEY_ID_DEAL) == 1,
        .dispatch_once = ft__word_of(s, FT_KEY_ID_EXPERT_DISPATCH) == 1,
        .expert_overlap = ft__tristate_of(s, FT_KEY_ID_EXPERT_OVERLAP),
        .skew = ft__given(s, FT_KEY_ID_EXPERT_SKEW) ? ft__real_of(s, FT_KEY_ID_EXPERT_SKEW) : 0,
        .shard = ft__whole_of(s, FT_KEY_ID_SHARD),
        .bucket_bytes = ft__real_of(s, FT_KEY_ID_BUCKET) * 1048576,
        .reduce_bytes = reduce < 0 ? 0 : ft__wire_bytes[reduce],
        .gather_bytes = gathered < 0 ? 0 : ft__wire_bytes[gathered],
    };
    out->schedule = schedule >= 0 ? (ft_schedule)schedule : out->vpp > 1 ? FT_INTERLEAVED : FT_1F1B;
    double capacity = ft__real_of(s, FT_KEY_ID_EXPERT_CAPACITY);
    if (capacity > 0 && out->skew > capacity) out->skew = capacity; /* beyond it an expert drops tokens */
    if (ft__given(s, FT_KEY_ID_GPUS)) FT_TRY(fill_up(s, out, err));
    return settle_context(s, &out->context, err);
}

ft_status ft__parallel_fits_model(const ft_parallel *p, const ft_arch *arch, const ft_workload *work, ft_error *err)
{
    ft_divisible model = ft__ranks_model(arch, work);
    if (p->ep > 1 && arch->experts > 0 && !ft__routes_tokens(arch, work))
        return ft__fail_at(err, FT_E_UNSUPPORTED, "parallel.ep", 0, 0,
                           "transformers' %s sends every token through every expert: \"ep\" needs \"execution\" "
                           "\"fused\"",
                           arch->model_type);
    FT_TRY(ft__parallel_check(p, &model, err));
    if (p->tp > 1 && (arch->reversible || arch->actor.size.layers > 0))
        return ft__fail_at(err, FT_E_UNSUPPORTED, "parallel.tp", 0, 0,
                           "no library splits the layers of \"%s\"; it takes \"dp\", \"pp\" and \"zero\"",
                           arch->model_type);
    if (p->pp > 1 && !model.in_a_row)
        return ft__fail_at(err, FT_E_UNSUPPORTED, "parallel.pp", 0, 0,
                           "\"pp\" is forecast for models that are one chain of layers; \"%s\" takes \"dp\" and "
                           "\"zero\"",
                           arch->model_type);
    bool scores = work->attention == FT_EAGER || (work->attention == FT_SDPA && (arch->no_sdpa || arch->sinks));
    if (p->cp > 1 && scores)
        return ft__fail_at(err, FT_E_UNSUPPORTED, "parallel.cp", 0, 0,
                           "context parallelism needs fused attention: \"attention\" must be \"flash\"%s",
                           arch->no_sdpa || arch->sinks ? "" : " or \"sdpa\"");
    if (work->task != FT_TRAIN && (p->pp > 1 || p->cp > 1 || p->zero > 0))
        return ft__fail_at(err, FT_E_UNSUPPORTED, "parallel", 0, 0,
                           "inference is forecast with \"tp\", \"ep\" and \"dp\"; \"pp\", \"cp\" and \"zero\" are for "
                           "training in this version");
    return FT_OK;
}

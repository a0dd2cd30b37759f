/* parallel.c: reading `parallel`. */
#include "request/parallel.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "ranks/ranks.h"
#include "request/request.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const char *const keys[] = {"dp",
                                   "tp",
                                   "pp",
                                   "vpp",
                                   "cp",
                                   "cp_kind",
                                   "ep",
                                   "etp",
                                   "zero",
                                   "sp",
                                   "schedule",
                                   "overlap",
                                   "deal",
                                   "ulysses",
                                   "shard",
                                   "bucket_mib",
                                   "reduce_dtype",
                                   "gather_dtype",
                                   "reshard",
                                   "gather",
                                   "gather_overlap",
                                   "overlap_p2p",
                                   "tp_overlap",
                                   "expert_dispatch",
                                   "expert_overlap",
                                   "expert_skew",
                                   "expert_capacity"};

/* `ulysses` is the older word for one of the kinds. */
static ft_status read_context(const json_t *p, ft_context_kind *out, ft_error *err)
{
    const char *kinds[FT_CONTEXT_COUNT];
    for (int i = 0; i < FT_CONTEXT_COUNT; i++) kinds[i] = ft__context_name((ft_context_kind)i);
    int kind = -1;
    bool ulysses = false;
    FT_TRY(ft__request_word_in(p, "parallel", "cp_kind", kinds, COUNT(kinds), &kind, err));
    FT_TRY(ft__json_bool(p, "ulysses", FT_OPTIONAL, &ulysses, "parallel", err));
    if (kind >= 0 && json_object_get(p, "ulysses") && ulysses != (kind == FT_CONTEXT_ULYSSES))
        return ft__fail_at(err, FT_E_RANGE, "parallel.ulysses", 0, 0,
                           "\"ulysses\" is %s and \"cp_kind\" is \"%s\": one of them is enough",
                           ulysses ? "true" : "false", kinds[kind]);
    *out = kind >= 0 ? (ft_context_kind)kind : ulysses ? FT_CONTEXT_ULYSSES : FT_CONTEXT_RING;
    return FT_OK;
}

/* What Megatron-LM, DeepSpeed, torchtitan and vLLM call it: too far from ours to be a slip of them. */
static const char *here(const char *theirs)
{
    static const struct {
        const char *word, *ours;
    } whole[] = {{"zero_stage", "zero"},
                 {"fsdp", "zero"},
                 {"use_distributed_optimizer", "zero"},
                 {"data_parallel_shard_degree", "shard"},
                 {"overlap_grad_reduce", "overlap"},
                 {"overlap_param_gather", "gather_overlap"},
                 {"overlap_p2p_communication", "overlap_p2p"},
                 {"tp_comm_overlap", "tp_overlap"},
                 {"reshard_after_forward", "reshard"},
                 {"ddp_bucket_size", "bucket_mib"},
                 {"moe_expert_capacity_factor", "expert_capacity"},
                 {"num_layers_per_virtual_pipeline_stage", "vpp"}},
      begins[] = {{"tensor_", "tp"},         {"pipeline_parallel_schedule", "schedule"},
                  {"pipeline_", "pp"},       {"virtual_pipeline", "vpp"},
                  {"context_", "cp"},        {"sequence_parallel", "sp"},
                  {"expert_tensor_", "etp"}, {"expert_model_parallel", "ep"},
                  {"expert_parallel", "ep"}, {"data_parallel", "dp"}};
    for (size_t i = 0; i < COUNT(whole); i++)
        if (!strcmp(theirs, whole[i].word)) return whole[i].ours;
    for (size_t i = 0; i < COUNT(begins); i++)
        if (!strncmp(theirs, begins[i].word, strlen(begins[i].word))) return begins[i].ours;
    return NULL;
}

const char *ft__parallel_key(const char *said)
{
    for (size_t i = 0; i < COUNT(keys); i++)
        if (!strcmp(said, keys[i])) return keys[i];
    return here(said);
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
    return ft__json_known_keys(parallel, keys, COUNT(keys), "parallel", err);
}

ft_status ft__parallel_read(const json_t *object, ft_parallel *out, ft_error *err)
{
    static const char *const schedules[] = {"gpipe", "1f1b", "interleaved", "zero_bubble", "dualpipe"};
    const json_t *p = json_object_get(object, "parallel");
    *out = (ft_parallel){.dp = 1, .tp = 1, .pp = 1, .vpp = 1, .cp = 1, .ep = 1, .schedule = FT_1F1B};
    out->in_pieces = out->expert_overlap = -1; /* as the stack and the schedule do it */
    if (!p) return FT_OK;
    if (!json_is_object(p))
        return ft__fail_at(err, FT_E_TYPE, "parallel", 0, 0, "\"parallel\" must be an object: {\"tp\": 2, \"dp\": 4}");
    FT_TRY(check_names(p, err));
    struct {
        const char *key;
        int64_t *at;
    } degrees[] = {{"dp", &out->dp},   {"tp", &out->tp}, {"pp", &out->pp},
                   {"vpp", &out->vpp}, {"cp", &out->cp}, {"ep", &out->ep}};
    for (size_t i = 0; i < COUNT(degrees); i++)
        FT_TRY(ft__json_whole(p, degrees[i].key, FT_OPTIONAL, 1, 1000000, degrees[i].at, "parallel", err));
    FT_TRY(ft__json_whole(p, "etp", FT_OPTIONAL, 1, 1000000, &out->etp, "parallel", err));
    int64_t zero = 0;
    FT_TRY(ft__json_whole(p, "zero", FT_OPTIONAL, 0, 3, &zero, "parallel", err));
    out->zero = (int)zero;
    FT_TRY(ft__json_bool(p, "sp", FT_OPTIONAL, &out->sp, "parallel", err));
    FT_TRY(read_context(p, &out->context, err));
    FT_TRY(ft__json_bool(p, "overlap", FT_OPTIONAL, &out->overlap, "parallel", err));
    out->no_overlap = !out->overlap && json_object_get(p, "overlap");
    FT_TRY(ft__json_bool(p, "reshard", FT_OPTIONAL, &out->drop_gathered, "parallel", err));
    out->keep_gathered = !out->drop_gathered && json_object_get(p, "reshard");
    static const char *const gathers[] = {"layer", "parameter"};
    int units = -1;
    FT_TRY(ft__request_word_in(p, "parallel", "gather", gathers, COUNT(gathers), &units, err));
    if (units >= 0) out->gather = units ? FT_GATHER_PARAMETER : FT_GATHER_LAYER;
    FT_TRY(ft__json_bool(p, "gather_overlap", FT_OPTIONAL, &out->gather_ahead, "parallel", err));
    FT_TRY(ft__json_bool(p, "overlap_p2p", FT_OPTIONAL, &out->overlap_sends, "parallel", err));
    out->wait_sends = !out->overlap_sends && json_object_get(p, "overlap_p2p");
    if (json_object_get(p, "tp_overlap")) {
        bool pieces = false;
        FT_TRY(ft__json_bool(p, "tp_overlap", FT_OPTIONAL, &pieces, "parallel", err));
        out->in_pieces = pieces;
    }
    FT_TRY(ft__json_whole(p, "shard", FT_OPTIONAL, 1, 1000000, &out->shard, "parallel", err));
    static const char *const deals[] = {"even", "rest"};
    int deal = 0;
    FT_TRY(ft__request_word_in(p, "parallel", "deal", deals, COUNT(deals), &deal, err));
    out->rest = deal == 1;
    static const char *const dispatches[] = {"copies", "once"};
    int dispatch = 0;
    FT_TRY(ft__request_word_in(p, "parallel", "expert_dispatch", dispatches, COUNT(dispatches), &dispatch, err));
    out->dispatch_once = dispatch == 1;
    if (json_object_get(p, "expert_overlap")) {
        bool beside = false;
        FT_TRY(ft__json_bool(p, "expert_overlap", FT_OPTIONAL, &beside, "parallel", err));
        out->expert_overlap = beside;
    }
    double capacity = 0; /* beyond which an expert drops tokens: the heaviest gets no more than that */
    FT_TRY(ft__json_number(p, "expert_skew", FT_OPTIONAL, 1, 1e4, &out->skew, "parallel", err));
    FT_TRY(ft__json_number(p, "expert_capacity", FT_OPTIONAL, 1, 1e4, &capacity, "parallel", err));
    if (capacity > 0 && out->skew > capacity) out->skew = capacity;
    double bucket = 0;
    FT_TRY(ft__json_number(p, "bucket_mib", FT_OPTIONAL, 0.001, 1e6, &bucket, "parallel", err));
    out->bucket_bytes = bucket * 1048576;
    int schedule = out->vpp > 1 ? FT_INTERLEAVED : FT_1F1B;
    FT_TRY(ft__request_word_in(p, "parallel", "schedule", schedules, COUNT(schedules), &schedule, err));
    out->schedule = (ft_schedule)schedule;
    static const char *const formats[] = {"fp32", "bf16", "fp16", "fp8"};
    static const double bytes[] = {4, 2, 2, 1};
    int reduce = -1, gather = -1;
    FT_TRY(ft__request_word_in(p, "parallel", "reduce_dtype", formats, COUNT(formats), &reduce, err));
    FT_TRY(ft__request_word_in(p, "parallel", "gather_dtype", formats, COUNT(formats), &gather, err));
    if (reduce >= 0) out->reduce_bytes = bytes[reduce];
    if (gather >= 0) out->gather_bytes = bytes[gather];
    return FT_OK;
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
    if (p->pp > 1 && !model.in_a_row)
        return ft__fail_at(err, FT_E_UNSUPPORTED, "parallel.pp", 0, 0,
                           "\"pp\" is forecast where one row of layers leads from end to end; \"%s\" takes \"dp\" and "
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

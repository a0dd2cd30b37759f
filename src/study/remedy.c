/* remedy.c: what would make a step fit that does not, as text: trials of other workloads on the same GPU. */
#include <stdio.h>
#include <string.h>

#include "memory/fits.h"
#include "memory/kept.h"
#include "ranks/split.h"
#include "study/step.h"

/* The search asks for some workloads more than once. */
enum { REMEMBERED_TRIALS = 16 };

typedef struct other_workloads {
    const ft_model_request *request;
    const ft_memory *asked; /* of the request itself */
    const ft_graph *graph;  /* its own */
    ft_arena *arena;        /* the step's own graph must survive the trials */
    ft_memo *memo;
    ft_workload work[REMEMBERED_TRIALS];
    ft_memory memory[REMEMBERED_TRIALS];
    size_t count;
} other_workloads;

static bool same_parameters(const ft_workload *a, const ft_workload *b)
{
    return a->dtype == b->dtype && a->autocast == b->autocast && a->master_weights == b->master_weights &&
           a->weight_bits == b->weight_bits && a->by_module == b->by_module && a->lora_rank == b->lora_rank;
}

/* Weights, and the gradients of all of them where all are trained, are there in any case: what they exceed cannot hold
 * the rest either, and no graph need be built to see it. Where parameters stay as they are their states are known,
 * too; a billionth is for the order in which bytes are added up. */
static bool cannot_fit(const other_workloads *o, const ft_workload *work)
{
    const double room = o->asked->capacity_bytes - o->asked->context_bytes;
    if (same_parameters(work, &o->request->work) && ft__least_kept(o->graph, work) > room * (1 + 1e-9)) return true;
    double stored = work->autocast ? 4 : ft_dtype_bytes(work->dtype);
    double weights = work->weight_bits > 0 && work->weight_bits < 8 * stored ? work->weight_bits / 8 : stored;
    if (work->task == FT_TRAIN && work->lora_rank == 0) weights += stored;
    return o->graph->parameters * weights > o->asked->capacity_bytes;
}

/* In what a remedy may change. */
static bool same_workload(const ft_workload *a, const ft_workload *b)
{
    return same_parameters(a, b) && a->kv_dtype == b->kv_dtype && a->batch == b->batch && a->seq == b->seq &&
           a->attention == b->attention && a->execution == b->execution && a->cache == b->cache &&
           a->optimizer == b->optimizer && a->recompute == b->recompute && a->accumulate == b->accumulate &&
           a->spared == b->spared && a->offload == b->offload;
}

static ft_status memory_of(const ft_workload *work, void *user, ft_memory *out, ft_error *err)
{
    other_workloads *o = user;
    ft_graph *g = NULL;
    if (same_workload(work, &o->request->work) || cannot_fit(o, work)) {
        *out = *o->asked;
        return FT_OK;
    }
    for (size_t i = 0; i < o->count && i < REMEMBERED_TRIALS; i++)
        if (same_workload(work, &o->work[i])) {
            *out = o->memory[i];
            return FT_OK;
        }
    ft__arena_reset(o->arena);
    FT_TRY(ft__model_graph(o->request->arch, work, o->arena, &g, err));
    ft_workload judged = *work;
    judged.verdict_alone = true;
    FT_TRY(ft__step_memory_memoized(g, &judged, o->request->device, o->memo, out, err));
    ft_step split = {.memory = *out};
    ft__split_apply(g, &judged, o->request->device, true, &split);
    *out = split.memory;
    o->work[o->count % REMEMBERED_TRIALS] = *work;
    o->memory[o->count++ % REMEMBERED_TRIALS] = *out;
    return FT_OK;
}

/* What llama.cpp would leave to the host, and how fast that is: "cpu_experts: 26 (31 tokens/s)". */
static int say_split(const ft_model_request *r, const ft_graph *g, const ft_step *step, char *text, size_t room)
{
    const bool experts = r->arch->experts > 0, memory = r->ask == FT_ASK_MEMORY;
    ft_workload part;
    ft_step fitted;
    if (ft__widened_by(&r->work) != FT_WEIGHTS_GGUF || !ft__step_alone(r)) return 0;
    if (!ft__split_fit(g, &r->work, r->device, r->arch->layers, memory, experts, step, &part, &fitted)) return 0;
    int at = snprintf(text, room, "%s: %lld", experts ? "cpu_experts" : "gpu_layers",
                      (long long)(experts ? part.cpu_experts : part.gpu_layers));
    if (!memory) at += snprintf(text + at, room - (size_t)at, " (%.3g tokens/s)", fitted.tokens_per_s);
    return at + snprintf(text + at, room - (size_t)at, ", or ");
}

ft_status ft__step_remedy(ft_scratch *s, const ft_model_request *r, const ft_graph *g, ft_step *step, ft_error *err)
{
    step->memory.remedy = "";
    if (step->memory.verdict == FT_FIT_YES) return FT_OK;
    ft_remedy remedy;
    ft_error ignored;
    if (!s->trials) s->trials = ft__arena_new(FT_LARGEST_GRAPH);
    if (!s->trials) return ft__no_memory(err);
    const ft_memory asked = step->memory;
    other_workloads others = {.request = r, .asked = &asked, .graph = g, .arena = s->trials, .memo = s->memo};
    ft_status status = ft__memory_remedy(&r->work, memory_of, &others, &remedy, &ignored);
    if (status == FT_E_MEMORY && !ft__arena_full(s->trials)) return ft__no_memory(err);
    char text[sizeof remedy.text + 80];
    int at = say_split(r, g, step, text, sizeof text);
    if (status == FT_OK) snprintf(text + at, sizeof text - (size_t)at, "%s", remedy.text);
    if (status == FT_OK) step->memory.remedy = ft__arena_copy(s->arena, text, strlen(text));
    return step->memory.remedy ? FT_OK : ft__no_memory(err);
}

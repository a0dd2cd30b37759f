/* step.c: from a request for a whole model to its forecast.
 *
 * Models are remembered like devices: reading a config takes longer than looking it up. The graph of a step lives in
 * the scratch's arena until the next step; forecasts of kernels are kept in its memo over steps. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "explain/regime.h"
#include "ranks/complete.h"
#include "ranks/ranks.h"
#include "ranks/split.h"
#include "study/context.h"
#include "study/lengths.h"
#include "study/rollout.h"
#include "study/step.h"
#include "study/updates.h"

/* -- models ------------------------------------------------------------------------------------ */

static ft_status find_model(void *source, const json_t *model, const char *read_as, ft_picture_size size,
                            const ft_arch **out, ft_error *err)
{
    ft_scratch *s = ((ft_finder *)source)->scratch;
    const char *name = json_string_value(model), *as = read_as ? read_as : "";
    if (!name && !json_is_object(model))
        return ft__fail_at(err, FT_E_TYPE, "model", 0, 0, "\"model\" must be a name, a path or a config object");
    if (strlen(as) >= sizeof s->read_as[0])
        return ft__fail_at(err, FT_E_NAME, "read_as", 0, 0, "\"read_as\" names no model_type: \"%.60s\"", as);
    json_t *key = (json_t *)(uintptr_t)model; /* Jansson counts references inside the value */
    for (int i = 0; i < FT_REMEMBERED_MODELS; i++)
        if (s->model[i] && !strcmp(s->read_as[i], as) && s->size[i].height == size.height &&
            s->size[i].width == size.width && s->size[i].frames == size.frames && json_equal(s->model[i], key)) {
            *out = s->arch[i];
            return FT_OK;
        }
    int slot = ft__recall_slot(s->model, FT_REMEMBERED_MODELS, s->next_model);
    if (!s->arch[slot] && !(s->arch[slot] = calloc(1, sizeof *s->arch[slot]))) return ft__no_memory(err);
    ft__arch_release(s->arch[slot]);
    memset(s->arch[slot], 0, sizeof *s->arch[slot]);
    ft_status status = name ? ft__model_open(name, read_as, s->arch[slot], err)
                            : ft__model_read(model, read_as, s->arch[slot], err);
    if (status != FT_OK) {
        if (err && !err->where[0]) strcpy(err->where, "model");
        return status;
    }
    FT_TRY(ft__picture_resize(s->arch[slot], size, err));
    ft__recall_keep(s->model, slot, model, &s->next_model);
    strcpy(s->read_as[slot], as);
    s->size[slot] = size;
    *out = s->arch[slot];
    return FT_OK;
}

ft_status ft__model_request_of(const ft_context *ft, ft_scratch *scratch, const json_t *object, ft_model_request *out,
                               ft_error *err)
{
    ft_finder f = {ft, scratch};
    FT_TRY(ft__model_request_read(object, ft__find_device, find_model, ft__find_stack, &f, out, err));
    return out->host ? ft__find_host(scratch, out->host, &out->work.host, err) : FT_OK;
}

/* -- steps ------------------------------------------------------------------------------------- */

ft_status ft__scratch_empty(ft_scratch *s, ft_error *err)
{
    if (!s->arena) s->arena = ft__arena_new(FT_LARGEST_GRAPH);
    if (!s->memo) s->memo = ft__memo_new();
    if (!s->arena || !s->memo) return ft__no_memory(err);
    ft__arena_reset(s->arena);
    return FT_OK;
}

/* Nothing leaves unchecked: what is not finite, negative or outside its own interval is a bug of ours. */
static bool sound(const ft_step *s)
{
    const double figures[] = {s->step_ms,        s->low_ms,       s->high_ms,  s->busy_ms, s->idle_ms,
                              s->host_ms,        s->model_flops,  s->mfu,      s->hfu,     s->tokens_per_s,
                              s->executed_flops, s->model_tflops, s->launches, s->learned, s->roofline,
                              s->sibling,        s->physics};
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        if (!isfinite(figures[i]) || figures[i] < 0) return false;
    for (int i = 0; i < FT_PHASE_COUNT; i++)
        if (!isfinite(s->phase_ms[i]) || s->phase_ms[i] < 0) return false;
    return s->step_ms > 0 && s->low_ms > 0 && s->low_ms <= s->step_ms && s->step_ms <= s->high_ms;
}

static bool memory_sound(const ft_memory *m)
{
    const double figures[] = {m->weights_bytes,       m->gradients_bytes, m->optimizer_bytes, m->activations_bytes,
                              m->temporary_bytes,     m->kv_cache_bytes,  m->context_bytes,   m->peak_bytes,
                              m->communication_bytes, m->reserved_bytes,  m->capacity_bytes};
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        if (!isfinite(figures[i]) || figures[i] < 0) return false;
    return m->peak_bytes > 0;
}

static ft_status forecast_step(const ft_context *ft, ft_scratch *s, const ft_model_request *r, double quantile,
                               const ft_graph *g, ft_step *step, ft_error *err)
{
    if (r->ask == FT_ASK_MEMORY)
        FT_TRY(ft__step_memory_memoized(g, &r->work, r->device, s->memo, &step->memory, err));
    else
        FT_TRY(ft__step_forecast(g, &r->work, r->device, ft__context_predictor(ft), quantile, s->memo, s->arena, step,
                                 err));
    if (memory_sound(&step->memory) && (r->ask == FT_ASK_MEMORY || sound(step))) return FT_OK;
    return ft__fail(err, FT_E_BUG, "the forecast of \"%.60s\" on %s is %g ms in [%g, %g], %g bytes: please report it",
                    r->model, r->device->name, step->step_ms, step->low_ms, step->high_ms, step->memory.peak_bytes);
}

/* One GPU, and nothing that treats it as one rank of many: DeepSpeed's hooks and buffers are there, too. */
bool ft__step_alone(const ft_model_request *r)
{
    bool shards = r->work.task == FT_TRAIN && ft__stack_shards_alone(ft__stack(&r->work), r->parallel.zero);
    return ft__parallel_alone(&r->parallel) && !shards;
}

static ft_status forecast_ranks(const ft_context *ft, ft_scratch *s, const ft_model_request *r, ft_step_view *view,
                                ft_step *step, ft_graph **shown, ft_error *err)
{
    ft_cluster *cluster = ft__arena_alloc(s->arena, sizeof *cluster);
    ft_ranked *ranked = ft__arena_alloc(s->arena, sizeof *ranked);
    if (!cluster || !ranked) return ft__no_memory(err);
    FT_TRY(ft__cluster_read(r->cluster, r->device, ft__parallel_ranks(&r->parallel), cluster, err));
    ft_ranks ranks = {.arch = r->arch,
                      .work = &r->work,
                      .parallel = &r->parallel,
                      .cluster = cluster,
                      .device = r->device,
                      .predictor = ft__context_predictor(ft),
                      .quantile = view->quantile,
                      .memo = s->memo,
                      .arena = s->arena};
    if (cluster->simulate && !r->closed_forms)
        FT_TRY(ft__simulated_new(cluster, ft__parallel_ranks(&r->parallel), s->arena, &cluster->simulated, err));
    FT_TRY(ft__ranks_forecast(&ranks, step, ranked, shown, err));
    if (cluster->simulated) { /* now that its exchanges are known, again with their simulated times */
        FT_TRY(ft__simulated_run(cluster->simulated, s->simulator, err));
        FT_TRY(ft__ranks_forecast(&ranks, step, ranked, shown, err));
    }
    if (!step->memory.remedy) step->memory.remedy = "";
    ft_parallel *parallel = ft__arena_alloc(s->arena, sizeof *parallel); /* the request may go before the view */
    if (!parallel) return ft__no_memory(err);
    *parallel = r->parallel;
    view->parallel = parallel;
    view->cluster = cluster;
    view->ranked = ranked;
    if (memory_sound(&step->memory) && sound(step)) return FT_OK;
    return ft__fail(err, FT_E_BUG, "the forecast of \"%.60s\" on %lld x %s is %g ms in [%g, %g]: please report it",
                    r->model, (long long)step->ranks, r->device->name, step->step_ms, step->low_ms, step->high_ms);
}

static ft_status forecast_laid_out(const ft_context *ft, ft_scratch *s, const ft_model_request *r, ft_step_view *view,
                                   ft_step *step, ft_graph **g, ft_error *err)
{
    if (ft__step_alone(r)) {
        FT_TRY(ft__model_graph(r->arch, &r->work, s->arena, g, err));
        FT_TRY(forecast_step(ft, s, r, view->quantile, *g, step, err));
    } else {
        FT_TRY(forecast_ranks(ft, s, r, view, step, g, err));
    }
    return FT_OK;
}

ft_status ft__request_forecast(const ft_context *ft, ft_scratch *s, const ft_model_request *r, ft_step_view *view,
                               ft_step *step, ft_graph **g, ft_error *err)
{
    ft_model_request one;
    FT_TRY(ft__updates_one(r, &one, err));
    FT_TRY(ft__model_request_explain(r, forecast_laid_out(ft, s, &one, view, step, g, err), err));
    if (r->ask != FT_ASK_MEMORY) ft__regime_settle(*g, r->device, step);
    if (r->ask != FT_ASK_MEMORY) ft__step_complete(&r->work, r->device, step);
    ft__updates_apply(r, &one, step);
    ft__split_apply(*g, &r->work, r->device, r->ask == FT_ASK_MEMORY, step);
    if (!r->loader.given || r->ask == FT_ASK_MEMORY) return FT_OK;
    double micros = r->work.task == FT_TRAIN && r->work.accumulate > 1 ? (double)r->work.accumulate : 1;
    ft__loader_apply(&r->loader, r->device, (double)r->work.batch * micros, step, &view->loading);
    return FT_OK;
}

/* -- the whole --------------------------------------------------------------------------------- */

/* Pages leave a GPU that is full. Whether it is, only the forecast says. */
static const char *idle_pages(const ft_model_request *r, const ft_step *step)
{
    const unsigned pages = 1u << FT_OFFLOAD_PAGED_OPTIMIZER;
    if (!ft__offloads(&r->work, FT_OFFLOAD_PAGED_OPTIMIZER) || step->memory.paged_bytes > 0) return "";
    for (size_t i = 0; i < r->idle_count; i++)
        if (r->idle[i].key == FT_KEY_ID_OFFLOAD) return "";
    return r->work.offload == pages
               ? "\"offload\" has no effect: the optimizer's states fit on the GPU, no page is evicted"
               : "\"paged_optimizer\" in \"offload\" has no effect: the optimizer's states fit on the GPU, no page is "
                 "evicted";
}

/* Of the device's spec, then of the request. */
static ft_status collect_warnings(ft_scratch *s, const ft_model_request *r, const ft_step *step, const char **out,
                                  ft_error *err)
{
    const char *device = ft__device_warnings(s, r->device), *pages = idle_pages(r, step);
    *out = "";
    bool file = r->arch->warnings && *r->arch->warnings, even = r->work.answers.tokens > 0 && !r->work.answers.longest;
    const char *const own[] = {device, r->remark, r->beyond, r->quantized, r->modules};
    bool said = false;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) said = said || *own[i];
    if (!even && !said && !r->arch->nearest && !file && !r->idle_count && !*pages) return FT_OK;
    ft__text_clear(&s->remarks);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (*own[i]) ft__text_addf(&s->remarks, "%s%s", s->remarks.length ? "\n" : "", own[i]);
    if (r->arch->nearest)
        ft__text_addf(&s->remarks, "%san unknown architecture, read as %s", s->remarks.length ? "\n" : "",
                      r->arch->model_type);
    if (file) ft__text_addf(&s->remarks, "%s%s", s->remarks.length ? "\n" : "", r->arch->warnings);
    ft__idle_say(r->idle, r->idle_count, &s->remarks);
    if (*pages) ft__text_addf(&s->remarks, "%s%s", s->remarks.length ? "\n" : "", pages);
    if (even)
        ft__text_addf(&s->remarks,
                      "%sall answers are assumed to be equally long; a step waits for the longest: give "
                      "\"rollout_longest\"",
                      s->remarks.length ? "\n" : "");
    if (s->remarks.failed) return ft__no_memory(err);
    *out = s->remarks.at;
    return FT_OK;
}

static ft_status keep_lengths(ft_scratch *s, const ft_lengths_view *varied, ft_step *step, ft_step_view *out,
                              ft_error *err)
{
    if (varied->typical < 1) return FT_OK;
    ft_lengths_view *kept = ft__arena_alloc(s->arena, sizeof *kept);
    if (!kept) return ft__no_memory(err);
    *kept = *varied;
    ft__lengths_apply(kept, step);
    out->lengths = kept;
    return FT_OK;
}

static ft_status step_of(const ft_context *ft, ft_scratch *s, const ft_model_request *asked, ft_step_view *out,
                         ft_error *err)
{
    memset(out, 0, sizeof *out);
    out->quantile = asked->quantile > 0 ? asked->quantile : ft__context_quantile(ft);
    ft_rollout rollout = {0};
    FT_TRY(ft__rollout_of(ft, s, asked, out->quantile, &rollout, err));
    ft_lengths_view varied;
    ft_model_request typical = *asked;
    FT_TRY(ft__lengths_of(ft, s, asked, out->quantile, &varied, err));
    if (varied.typical > 0) {
        typical.work.seq = varied.typical;
        typical.longest = varied.longest;
    }
    const ft_model_request *r = &typical;
    FT_TRY(ft__scratch_empty(s, err));
    ft_step *step = ft__arena_alloc(s->arena, sizeof *step);
    ft_workload *work = ft__arena_alloc(s->arena, sizeof *work);
    ft_graph *g = NULL;
    if (!step || !work) return ft__no_memory(err);
    *work = r->work;
    out->tokens = r->tokens;
    FT_TRY(ft__request_forecast(ft, s, r, out, step, &g, err));
    ft__rollout_apply(&rollout, step);
    FT_TRY(keep_lengths(s, &varied, step, out, err));
    ft_model_request longest = *r;
    if (r->longest > 0) longest.work.seq = r->longest;
    if (ft__step_alone(r)) FT_TRY(ft__step_remedy(s, &longest, g, step, err));
    FT_TRY(collect_warnings(s, r, step, &out->warnings, err));
    out->model = r->model;
    out->dtype_name = r->dtype_name;
    out->arch = r->arch;
    out->work = work;
    out->device = r->device;
    out->stack = ft__ranks_stack(&r->parallel, &r->work);
    out->graph = g;
    out->step = step;
    out->detail = r->detail;
    out->course = r->course;
    out->pictures = r->pictures;
    out->memory_only = r->ask == FT_ASK_MEMORY;
    out->arena = s->arena;
    return ft__step_advise(ft, s, r, out, err);
}

/* The machine may have memory left where the request has had its part. */
ft_status ft__step_of(const ft_context *ft, ft_scratch *s, const ft_model_request *r, ft_step_view *out, ft_error *err)
{
    ft_status status = step_of(ft, s, r, out, err);
    if (status != FT_E_MEMORY || !ft__arena_full(s->arena)) return status;
    return ft__fail_at(err, FT_E_RANGE, "model", 0, 0,
                       "the step is too large to forecast: its operators and pieces need more than %zu MiB; fewer "
                       "stages, micro-batches or kinds of layers would do",
                       FT_LARGEST_GRAPH >> 20);
}

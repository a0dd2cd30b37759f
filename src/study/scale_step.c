/* scale_step.c: a step on ever more GPUs. Every point is the request itself with another data-parallel degree. */
#include <string.h>

#include "request/keys.h"
#include "study/scale_probe.h"

enum { USUAL_GPUS = 256, MOST_GPUS = 1 << 20 };

typedef struct curves {
    const ft_context *ft;
    ft_scratch scratch; /* of its own: a view lives until the next forecast */
    json_t *request;
    int64_t replica, batch; /* GPUs of one replica; its micro-batch */
    int64_t micros;         /* that it may take: multiples of this */
} curves;

static bool set(curves *c, int64_t dp, int64_t batch, int64_t global)
{
    json_t *parallel = ft__key_get(c->request, FT_KEY_ID_PARALLEL);
    ft__key_drop(parallel, FT_KEY_ID_GPUS); /* dp says it now */
    return ft__key_set(parallel, FT_KEY_ID_DP, json_integer(dp)) &&
           ft__key_set(c->request, FT_KEY_ID_MICRO_BATCH, json_integer(batch)) &&
           ft__key_set(c->request, FT_KEY_ID_GLOBAL_BATCH, json_integer(global));
}

/* No such layout, or no such batch: no point. Memory is exhausted: FT_E_MEMORY. */
static ft_status add_point(curves *c, int64_t dp, int64_t batch, int64_t global, ft_scale_point *list, size_t *count,
                           ft_error *err)
{
    ft_model_request request;
    ft_step_view v;
    ft_error ignored = {0};
    if (*count == FT_SCALE_POINTS) return FT_OK;
    if (!set(c, dp, batch, global)) return ft__no_memory(err);
    ft_status status = ft__model_request_of(c->ft, &c->scratch, c->request, &request, &ignored);
    if (status == FT_OK) status = ft__step_of(c->ft, &c->scratch, &request, &v, &ignored);
    if (status == FT_E_MEMORY) return ft__no_memory(err);
    if (status != FT_OK) return FT_OK;
    ft__scale_add(list, count, dp * c->replica, dp, batch, global, v.step);
    return FT_OK;
}

/* The global batch over so many replicas: micro-batches as asked, or one smaller one where there are fewer samples. */
static int64_t strong_batch(const curves *c, int64_t dp, int64_t global)
{
    if (global % dp) return 0;
    int64_t each = global / dp;
    if (each % c->batch == 0 && each / c->batch % c->micros == 0) return c->batch;
    return each < c->batch && c->micros == 1 ? each : 0;
}

static ft_status draw(curves *c, int64_t asked, int64_t global, ft_scale *out, ft_error *err)
{
    int64_t most = 4 * asked * c->replica > USUAL_GPUS ? 4 * asked * c->replica : USUAL_GPUS;
    if (most > MOST_GPUS) most = MOST_GPUS;
    for (int64_t dp = 1; dp * c->replica <= most;) {
        int64_t batch = strong_batch(c, dp, global), next = 2 * dp;
        if (batch > 0) FT_TRY(add_point(c, dp, batch, global, out->strong, &out->strong_count, err));
        FT_TRY(add_point(c, dp, c->batch, global / asked * dp, out->weak, &out->weak_count, err));
        dp = dp < asked && asked < next ? asked : next; /* the layout asked for is one of them */
    }
    return FT_OK;
}

ft_status ft__scale_of_step(const ft_context *ft, const json_t *request, const ft_step_view *v, ft_scale *out,
                            ft_error *err)
{
    static const ft_key_id dropped[] = {FT_KEY_ID_ADVICE, FT_KEY_ID_TECHNIQUES, FT_KEY_ID_DETAIL, FT_KEY_ID_COURSE,
                                        FT_KEY_ID_PICTURES};
    static const ft_parallel alone = {.dp = 1, .tp = 1, .pp = 1, .vpp = 1, .cp = 1, .ep = 1};
    const ft_parallel *p = v->parallel ? v->parallel : &alone;
    curves c = {.ft = ft, .request = json_deep_copy(request), .replica = p->tp * p->pp * p->cp};
    memset(out, 0, sizeof *out);
    if (!c.request) return ft__no_memory(err);
    for (size_t i = 0; i < sizeof dropped / sizeof *dropped; i++) ft__key_drop(c.request, dropped[i]);
    json_t *cluster = ft__key_get(c.request, FT_KEY_ID_CLUSTER);
    ft__key_drop(cluster, FT_KEY_ID_NODES); /* as many as it takes */
    ft__key_drop(cluster, FT_KEY_ID_NETWORK);
    bool made = ft__key_get(c.request, FT_KEY_ID_PARALLEL) || ft__key_set(c.request, FT_KEY_ID_PARALLEL, json_object());
    int64_t micros = v->work->accumulate > 1 ? v->work->accumulate : 1;
    c.batch = v->work->batch;
    c.micros = p->schedule == FT_INTERLEAVED ? p->pp : 1;
    out->model = v->model;
    out->dtype_name = v->dtype_name;
    out->device = *v->device;
    out->work = *v->work;
    out->parallel = *p;
    out->gpus = p->dp * c.replica;
    out->images = ft__counts_samples(v->arch);
    ft_status status = made ? draw(&c, p->dp, c.batch * micros * p->dp, out, err) : ft__no_memory(err);
    ft__scratch_free(&c.scratch);
    json_decref(c.request);
    return status;
}

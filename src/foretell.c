/* foretell.c: the public interface on top of the rooms. A request comes in, an answer goes out.
 *
 * Devices. The catalogue is text; reading a spec takes tens of microseconds, a forecast a few. So every catalogue
 * device is read once per context, by whoever asks first, and published through an atomic pointer. Two threads may read
 * the same one at the same moment; the second throws its copy away. To callers the context stays read-only.
 *
 * Nothing leaves this file unchecked: a forecast that is not finite, not positive or outside its own interval
 * is reported as a bug of ours instead of being printed.
 */
#include "foretell.h"

#include <math.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "context.h"
#include "device/gpu.h"
#include "kernel/kernel.h"
#include "report/answer.h"
#include "report/answer_step.h"
#include "request_collective.h"
#include "request_trace.h"

typedef _Atomic(const ft_device *) shelf_place;

struct ft_context {
    ft_predictor *predictor;
    double quantile;
    size_t device_count;
    shelf_place *shelf; /* one place per catalogue device; NULL until somebody asked for it */
};

static const double default_quantile = 0.9;

/* -- opening and closing ----------------------------------------------------------------------- */

ft_status ft_open(ft_context **out, const ft_options *options, ft_error *err)
{
    *out = NULL;
    double quantile = options && options->quantile != 0 ? options->quantile : default_quantile;
    if (!(quantile >= 0.5 && quantile <= 0.99))
        return ft__fail_at(err, FT_E_RANGE, "quantile", 0, 0, "\"quantile\" must be a number from 0.5 to 0.99");
    ft_context *ft = calloc(1, sizeof *ft);
    if (!ft) return ft__fail(err, FT_E_MEMORY, "out of memory");
    ft->quantile = quantile;
    ft->device_count = ft__catalogue_count();
    ft->shelf = calloc(ft->device_count ? ft->device_count : 1, sizeof *ft->shelf);
    if (!ft->shelf) {
        free(ft);
        return ft__fail(err, FT_E_MEMORY, "out of memory");
    }
    for (size_t i = 0; i < ft->device_count; i++) atomic_init(&ft->shelf[i], NULL);
    ft_status status = ft__predictor_open(options ? options->predictor : NULL, &ft->predictor, err);
    if (status == FT_OK && options && options->calibration)
        status = ft__predictor_calibrate(ft->predictor, options->calibration, err);
    if (status != FT_OK) {
        ft_close(ft);
        return status;
    }
    *out = ft;
    return FT_OK;
}

void ft_close(ft_context *ft)
{
    if (!ft) return;
    for (size_t i = 0; i < ft->device_count; i++) {
        const ft_device *device = atomic_load_explicit(&ft->shelf[i], memory_order_acquire);
        free((void *)(uintptr_t)device);
    }
    free(ft->shelf);
    if (ft->predictor) ft__predictor_close(ft->predictor);
    free(ft);
}

const ft_predictor *ft__context_predictor(const ft_context *ft) { return ft->predictor; }

double ft__context_quantile(const ft_context *ft) { return ft->quantile; }

/* -- devices ----------------------------------------------------------------------------------- */

static ft_status shelf_get(const ft_context *ft, size_t index, const ft_device **out, ft_error *err)
{
    const ft_device *known = atomic_load_explicit(&ft->shelf[index], memory_order_acquire);
    if (!known) {
        ft_device *fresh = malloc(sizeof *fresh);
        if (!fresh) return ft__fail(err, FT_E_MEMORY, "out of memory");
        ft_status status = ft__catalogue_find(ft__catalogue_name(index), fresh, err);
        if (status != FT_OK) {
            free(fresh);
            return status;
        }
        if (atomic_compare_exchange_strong_explicit(&ft->shelf[index], &known, fresh, memory_order_acq_rel,
                                                    memory_order_acquire))
            known = fresh;
        else
            free(fresh); /* somebody was faster; `known` is theirs */
    }
    *out = known;
    return FT_OK;
}

/* A spec file or a name that is not in the catalogue (whose error says the nearest). */
static bool shelf_find(const ft_context *ft, const char *name, size_t *index)
{
    for (size_t i = 0; i < ft->device_count; i++)
        if (!strcmp(ft__catalogue_name(i), name)) {
            *index = i;
            return true;
        }
    return false;
}

ft_status ft_device_find(const ft_context *ft, const char *name, ft_device *out, ft_error *err)
{
    size_t index;
    if (!shelf_find(ft, name, &index)) return ft__device_open(name, out, NULL, err);
    const ft_device *device = NULL;
    FT_TRY(shelf_get(ft, index, &device, err));
    *out = *device;
    return FT_OK;
}

size_t ft_device_count(const ft_context *ft) { return ft->device_count; }

ft_status ft_device_at(const ft_context *ft, size_t index, ft_device *out, ft_error *err)
{
    if (index >= ft->device_count)
        return ft__fail(err, FT_E_RANGE, "the catalogue has %zu devices; there is no number %zu", ft->device_count,
                        index);
    const ft_device *device = NULL;
    FT_TRY(shelf_get(ft, index, &device, err));
    *out = *device;
    return FT_OK;
}

void ft__scratch_free(ft_scratch *s)
{
    for (int i = 0; i < FT_REMEMBERED_DEVICES; i++) {
        json_decref(s->spec[i]);
        ft__text_free(&s->warnings[i]);
    }
    for (int i = 0; i < FT_REMEMBERED_MODELS; i++) {
        json_decref(s->model[i]);
        ft__arch_release(&s->arch[i]);
    }
    ft__memo_free(s->memo);
    ft__arena_free(s->arena);
    ft__arena_free(s->trials);
    ft__text_free(&s->remarks);
    memset(s, 0, sizeof *s);
}

ft_status ft__find_device(void *source, const json_t *gpu, const ft_device **out, ft_error *err)
{
    ft_finder *f = source;
    size_t index;
    const char *name = json_string_value(gpu);
    if (name && shelf_find(f->ft, name, &index)) return shelf_get(f->ft, index, out, err);
    if (!name && !json_is_object(gpu))
        return ft__fail_at(err, FT_E_TYPE, "gpu", 0, 0, "\"gpu\" must be a name, a file or a spec object");

    ft_scratch *s = f->scratch;
    json_t *spec = (json_t *)(uintptr_t)gpu; /* Jansson counts references inside the value */
    for (int i = 0; i < FT_REMEMBERED_DEVICES; i++)
        if (s->spec[i] && json_equal(s->spec[i], spec)) {
            *out = &s->device[i];
            return FT_OK;
        }
    unsigned slot = s->next % FT_REMEMBERED_DEVICES;
    json_decref(s->spec[slot]);
    s->spec[slot] = NULL;
    ft__text_clear(&s->warnings[slot]);
    ft_status status = name ? ft__device_open(name, &s->device[slot], &s->warnings[slot], err)
                            : ft__device_read(gpu, "gpu", &s->device[slot], &s->warnings[slot], err);
    if (status == FT_OK && s->warnings[slot].failed) status = ft__fail(err, FT_E_MEMORY, "out of memory");
    if (status != FT_OK) {
        if (err && !err->where[0]) strcpy(err->where, "gpu");
        return status;
    }
    s->spec[slot] = json_incref(spec);
    s->next++;
    *out = &s->device[slot];
    return FT_OK;
}

const char *ft__device_warnings(const ft_scratch *scratch, const ft_device *device)
{
    for (int i = 0; i < FT_REMEMBERED_DEVICES; i++)
        if (device == &scratch->device[i] && scratch->warnings[i].length) return scratch->warnings[i].at;
    return "";
}

/* -- forecasts --------------------------------------------------------------------------------- */

static bool sound(const ft_forecast *f)
{
    return isfinite(f->ms) && isfinite(f->low_ms) && isfinite(f->high_ms) && f->ms > 0 && f->low_ms > 0 &&
           f->low_ms <= f->ms && f->ms <= f->high_ms;
}

static ft_status forecast(const ft_context *ft, const ft_device *device, const ft_op *op, double quantile,
                          ft_forecast *out, ft_error *err)
{
    FT_TRY(ft__kernel_forecast(ft->predictor, device, op, quantile, out, err));
    ft__settle_bound(device, op, out);
    if (sound(out)) return FT_OK;
    return ft__fail(err, FT_E_BUG, "the forecast of \"%.60s\" on %s is %g ms in [%g, %g]: please report it",
                    op->name ? op->name : "?", device->name, out->ms, out->low_ms, out->high_ms);
}

ft_status ft_op_check(const ft_op *op, const ft_device *device, ft_error *err) { return ft__op_check(op, device, err); }

ft_status ft_kernel(const ft_context *ft, const ft_device *device, const ft_op *op, ft_forecast *out, ft_error *err)
{
    FT_TRY(ft__op_check(op, device, err));
    return forecast(ft, device, op, ft->quantile, out, err);
}

ft_status ft__request_of(const ft_context *ft, ft_scratch *scratch, const json_t *object, ft_request *out,
                         ft_error *err)
{
    ft_finder f = {ft, scratch};
    FT_TRY(ft__request_read(object, ft__find_device, &f, out, err));
    out->warnings = ft__device_warnings(scratch, out->device);
    return FT_OK;
}

ft_status ft__forecast_of(const ft_context *ft, const ft_request *request, ft_forecast *out, ft_error *err)
{
    double quantile = request->quantile > 0 ? request->quantile : ft->quantile;
    return forecast(ft, request->device, &request->op, quantile, out, err);
}

/* -- answers ----------------------------------------------------------------------------------- */

static ft_status answer_kernel(const ft_context *ft, ft_scratch *scratch, const json_t *document, const json_t *id,
                               ft_text *out, ft_error *err)
{
    ft_request r;
    ft_forecast f;
    FT_TRY(ft__request_of(ft, scratch, document, &r, err));
    FT_TRY(ft__forecast_of(ft, &r, &f, err));
    ft__answer_kernel(out, id, &f, r.warnings);
    return FT_OK;
}

/* Once to learn what is sent, then through the simulator. */
static ft_status simulate_collective(const ft_context *ft, ft_scratch *scratch, ft_collective_request *r,
                                     double quantile, ft_comm *c, ft_error *err)
{
    if (!scratch->trials) scratch->trials = ft__arena_new((size_t)512 << 20);
    if (!scratch->trials) return ft__fail(err, FT_E_MEMORY, "out of memory");
    ft__arena_reset(scratch->trials);
    int64_t ranks = r->group.size * (r->group.stride > 0 ? r->group.stride : 1);
    FT_TRY(ft__simulated_new(&r->cluster, ranks, scratch->trials, &r->cluster.simulated, err));
    if (!r->cluster.simulated) return FT_OK;
    FT_TRY(
        ft__collective_forecast(ft->predictor, r->device, &r->cluster, r->op, r->bytes, &r->group, quantile, c, err));
    FT_TRY(ft__simulated_run(r->cluster.simulated, scratch->simulator, err));
    return ft__collective_forecast(ft->predictor, r->device, &r->cluster, r->op, r->bytes, &r->group, quantile, c, err);
}

static ft_status answer_collective(const ft_context *ft, ft_scratch *scratch, const json_t *document, const json_t *id,
                                   ft_text *out, ft_error *err)
{
    ft_collective_request r;
    ft_comm c;
    ft_finder f = {ft, scratch};
    FT_TRY(ft__collective_request_read(document, ft__find_device, &f, &r, err));
    double quantile = r.quantile > 0 ? r.quantile : ft->quantile;
    FT_TRY(ft__collective_forecast(ft->predictor, r.device, &r.cluster, r.op, r.bytes, &r.group, quantile, &c, err));
    if (r.cluster.simulate) FT_TRY(simulate_collective(ft, scratch, &r, quantile, &c, err));
    if (!sound(&(ft_forecast){.ms = c.ms, .low_ms = c.low_ms, .high_ms = c.high_ms}))
        return ft__fail(err, FT_E_BUG, "the forecast of %s on %s is %g ms in [%g, %g]: please report it",
                        ft__collective_name(r.op), r.device->name, c.ms, c.low_ms, c.high_ms);
    ft__answer_collective(out, id, &r, &c, ft__device_warnings(scratch, r.device));
    return FT_OK;
}

static ft_status answer_model(const ft_context *ft, ft_scratch *scratch, const json_t *document, const json_t *id,
                              ft_text *out, ft_error *err)
{
    ft_model_request r;
    ft_step_view view;
    FT_TRY(ft__model_request_of(ft, scratch, document, &r, err));
    FT_TRY(ft__step_of(ft, scratch, &r, &view, err));
    ft__answer_step(out, id, &view);
    return FT_OK;
}

void ft__answer(const ft_context *ft, ft_scratch *scratch, const char *request, size_t length, int64_t line,
                ft_text *out)
{
    ft_error err = {0};
    json_t *document = NULL;
    ft_status status = ft__json_parse(request, length, "", &document, &err);
    if (status != FT_OK) {
        ft__answer_error(out, NULL, &err, line);
        return;
    }
    ft_ask ask;
    const json_t *id = json_object_get(document, "id");
    size_t before = out->length;
    bool whole = !out->failed;
    status = ft__request_task(document, &ask, &err);
    if (status == FT_OK)
        status = ask == FT_ASK_KERNEL       ? answer_kernel(ft, scratch, document, id, out, &err)
                 : ask == FT_ASK_COLLECTIVE ? answer_collective(ft, scratch, document, id, out, &err)
                 : ask == FT_ASK_TRACE      ? ft__answer_trace_request(ft, document, id, out, &err)
                                            : answer_model(ft, scratch, document, id, out, &err);
    /* An answer that broke off is taken back: its line says so, and the lines after it are answered. */
    if (status == FT_OK && whole && out->failed) {
        out->failed = false;
        out->length = before;
        status = ft__fail(&err, FT_E_MEMORY, "out of memory: the answer broke off");
    }
    if (status != FT_OK) ft__answer_error(out, id, &err, line);
    json_decref(document);
}

char *ft_answer(const ft_context *ft, const char *request)
{
    ft_text out = {0};
    ft_scratch scratch = {0};
    ft__answer(ft, &scratch, request ? request : "", request ? strlen(request) : 0, 0, &out);
    ft__scratch_free(&scratch);
    if (out.failed) {
        ft__text_free(&out);
        return NULL;
    }
    return out.at;
}

const char *ft_bound_name(ft_bound b)
{
    static const char *const names[] = {[FT_COMPUTE] = "compute",
                                        [FT_MEMORY] = "memory",
                                        [FT_OVERHEAD] = "overhead",
                                        [FT_COMMUNICATION] = "communication"};
    return (unsigned)b < sizeof names / sizeof *names ? names[b] : "?";
}

const char *ft_source_name(ft_source s)
{
    static const char *const names[] = {[FT_LEARNED] = "learned",
                                        [FT_CALIBRATED] = "calibrated",
                                        [FT_SIBLING] = "sibling",
                                        [FT_PHYSICS] = "physics",
                                        [FT_ROOFLINE] = "roofline"};
    return (unsigned)s < sizeof names / sizeof *names ? names[s] : "?";
}

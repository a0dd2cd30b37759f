/* context.c: what all threads share, and what one keeps between requests.
 *
 * Devices. The catalogue is text; reading a spec takes tens of microseconds, a forecast a few. So every catalogue
 * device is read once per context, by whoever asks first, and published through an atomic pointer. Two threads may read
 * the same one at the same moment; the second throws its copy away. To callers the context stays read-only.
 *
 * Nothing leaves this file unchecked: a forecast that is not finite, not positive or outside its own interval
 * is reported as a bug of ours instead of being printed.
 */
#include "study/context.h"

#include <math.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "device/gpu.h"
#include "device/spec.h"
#include "kernel/kernel.h"

typedef _Atomic(const ft_device *) shelf_place;

struct ft_context {
    ft_predictor *predictor;
    double quantile;
    size_t device_count;
    shelf_place *shelf; /* one place per catalogue device; NULL until somebody asked for it */
};

static const double default_quantile = 0.9;

/* -- opening and closing ----------------------------------------------------------------------- */

ft_status ft__context_open(ft_context **out, const ft_options *options, ft_error *err)
{
    *out = NULL;
    double quantile = options && options->quantile != 0 ? options->quantile : default_quantile;
    if (!(quantile >= 0.5 && quantile <= 0.99))
        return ft__fail_at(err, FT_E_RANGE, "quantile", 0, 0, "\"quantile\" must be a number from 0.5 to 0.99");
    ft_context *ft = calloc(1, sizeof *ft);
    if (!ft) return ft__no_memory(err);
    ft->quantile = quantile;
    ft->device_count = ft__catalogue_count();
    ft->shelf = calloc(ft->device_count ? ft->device_count : 1, sizeof *ft->shelf);
    if (!ft->shelf) {
        free(ft);
        return ft__no_memory(err);
    }
    for (size_t i = 0; i < ft->device_count; i++) atomic_init(&ft->shelf[i], NULL);
    const char *which = options ? options->predictor : NULL;
    ft_status status = options && options->predictor_data
                           ? ft__predictor_open_bytes(which, options->predictor_data, options->predictor_length,
                                                      &ft->predictor, err)
                           : ft__predictor_open(which, &ft->predictor, err);
    if (status == FT_OK && options && options->calibration)
        status = ft__predictor_calibrate(ft->predictor, options->calibration, err);
    if (status != FT_OK) {
        ft__context_close(ft);
        return status;
    }
    *out = ft;
    return FT_OK;
}

void ft__context_close(ft_context *ft)
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
        if (!fresh) return ft__no_memory(err);
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

ft_status ft__context_device(const ft_context *ft, const char *name, ft_device *out, ft_error *err)
{
    size_t index;
    if (!shelf_find(ft, name, &index)) return ft__device_open(name, out, NULL, err);
    const ft_device *device = NULL;
    FT_TRY(shelf_get(ft, index, &device, err));
    *out = *device;
    return FT_OK;
}

size_t ft__context_device_count(const ft_context *ft) { return ft->device_count; }

ft_status ft__context_device_at(const ft_context *ft, size_t index, ft_device *out, ft_error *err)
{
    if (index >= ft->device_count)
        return ft__fail(err, FT_E_RANGE, "the catalogue has %zu devices, so there is none with index %zu",
                        ft->device_count, index);
    const ft_device *device = NULL;
    FT_TRY(shelf_get(ft, index, &device, err));
    *out = *device;
    return FT_OK;
}

void ft__scratch_rest(ft_scratch *s)
{
    ft__arena_reset(s->arena);
    ft__arena_reset(s->trials);
}

void ft__scratch_free(ft_scratch *s)
{
    for (int i = 0; i < FT_REMEMBERED_DEVICES; i++) {
        json_decref(s->spec[i]);
        ft__text_free(&s->warnings[i]);
    }
    for (int i = 0; i < FT_REMEMBERED_MODELS; i++) {
        json_decref(s->model[i]);
        if (s->arch[i]) ft__arch_release(s->arch[i]);
        free(s->arch[i]);
    }
    for (int i = 0; i < FT_REMEMBERED_HOSTS; i++) json_decref(s->host_spec[i]);
    for (int i = 0; i < FT_REMEMBERED_STACKS; i++) json_decref(s->stack[i]);
    ft__memo_free(s->memo);
    ft__arena_free(s->arena);
    ft__arena_free(s->trials);
    ft__text_free(&s->remarks);
    memset(s, 0, sizeof *s);
}

/* Jansson counts references inside the value. */
static json_t *counted(const json_t *value) { return (json_t *)(uintptr_t)value; }

/* Which one is equal, or -1. */
static int recall(json_t *const *said, int count, const json_t *value)
{
    for (int i = 0; i < count; i++)
        if (said[i] && json_equal(said[i], counted(value))) return i;
    return -1;
}

int ft__recall_slot(json_t **said, int count, unsigned next)
{
    int slot = (int)(next % (unsigned)count);
    json_decref(said[slot]);
    said[slot] = NULL;
    return slot;
}

void ft__recall_keep(json_t **said, int slot, const json_t *value, unsigned *next)
{
    said[slot] = json_incref(counted(value));
    ++*next;
}

ft_status ft__find_device(void *source, const json_t *gpu, const ft_device **out, ft_error *err)
{
    ft_finder *f = source;
    size_t index;
    const char *name = json_string_value(gpu);
    if (name && shelf_find(f->ft, name, &index)) return shelf_get(f->ft, index, out, err);
    if (!name && !json_is_object(gpu))
        return ft__fail_at(err, FT_E_TYPE, "gpu", 0, 0, "\"gpu\" must be a name, a file or a spec object%s",
                           json_is_array(gpu) ? "; ask about several GPUs in a request for each" : "");

    ft_scratch *s = f->scratch;
    int slot = recall(s->spec, FT_REMEMBERED_DEVICES, gpu);
    if (slot >= 0) {
        *out = &s->device[slot];
        return FT_OK;
    }
    slot = ft__recall_slot(s->spec, FT_REMEMBERED_DEVICES, s->next);
    ft__text_clear(&s->warnings[slot]);
    ft_status status = name ? ft__device_open(name, &s->device[slot], &s->warnings[slot], err)
                            : ft__device_read(gpu, "gpu", &s->device[slot], &s->warnings[slot], err);
    if (status == FT_OK && s->warnings[slot].failed) status = ft__no_memory(err);
    if (status != FT_OK) {
        if (err && !err->where[0]) strcpy(err->where, "gpu");
        return status;
    }
    ft__recall_keep(s->spec, slot, gpu, &s->next);
    *out = &s->device[slot];
    return FT_OK;
}

ft_status ft__find_host(ft_scratch *s, const json_t *host, const ft_host **out, ft_error *err)
{
    const char *name = json_string_value(host);
    if (!name && !json_is_object(host))
        return ft__fail_at(err, FT_E_TYPE, "host", 0, 0, "\"host\" must be a name, a file or an object");
    if (name && (*out = ft__host_find(name))) return FT_OK;
    int slot = recall(s->host_spec, FT_REMEMBERED_HOSTS, host);
    if (slot < 0) {
        slot = ft__recall_slot(s->host_spec, FT_REMEMBERED_HOSTS, s->next_host);
        FT_TRY(name ? ft__host_open(name, &s->host[slot], err) : ft__host_read(host, "host", &s->host[slot], err));
        ft__recall_keep(s->host_spec, slot, host, &s->next_host);
    }
    *out = &s->host[slot];
    return FT_OK;
}

ft_status ft__find_stack(void *source, const json_t *stack, const ft_stack **out, ft_error *err)
{
    ft_scratch *s = ((ft_finder *)source)->scratch;
    const char *name = json_string_value(stack);
    if (name && !ft__is_path(name)) return ft__stack_find(name, out, err);
    int slot = recall(s->stack, FT_REMEMBERED_STACKS, stack);
    if (slot >= 0) {
        *out = &s->own_stack[slot];
        return FT_OK;
    }
    slot = ft__recall_slot(s->stack, FT_REMEMBERED_STACKS, s->next_stack);
    FT_TRY(ft__stack_read(stack, "stack", &s->own_stack[slot], out, err));
    ft__recall_keep(s->stack, slot, stack, &s->next_stack);
    return FT_OK;
}

const char *ft__device_warnings(const ft_scratch *scratch, const ft_device *device)
{
    for (int i = 0; i < FT_REMEMBERED_DEVICES; i++)
        if (device == &scratch->device[i] && scratch->warnings[i].length) return scratch->warnings[i].at;
    return "";
}

ft_status ft__idle_warnings(ft_scratch *scratch, const ft_device *device, const ft_idle_list *idle, const char **out,
                            ft_error *err)
{
    *out = ft__device_warnings(scratch, device);
    if (idle->count == 0) return FT_OK;
    ft__text_clear(&scratch->remarks);
    ft__text_add(&scratch->remarks, *out);
    ft__idle_say(idle->at, idle->count, &scratch->remarks);
    *out = scratch->remarks.at;
    return scratch->remarks.failed ? ft__no_memory(err) : FT_OK;
}

/* -- forecasts --------------------------------------------------------------------------------- */

bool ft__forecast_sound(const ft_forecast *f)
{
    return isfinite(f->ms) && isfinite(f->low_ms) && isfinite(f->high_ms) && f->ms > 0 && f->low_ms > 0 &&
           f->low_ms <= f->ms && f->ms <= f->high_ms;
}

ft_status ft__context_forecast(const ft_context *ft, const ft_device *device, const ft_op *op, double quantile,
                               ft_forecast *out, ft_error *err)
{
    FT_TRY(ft__kernel_forecast(ft->predictor, device, op, quantile, out, err));
    ft__settle_bound(device, op, out);
    if (ft__forecast_sound(out)) return FT_OK;
    return ft__fail(err, FT_E_BUG, "the forecast of \"%.60s\" on %s is %g ms in [%g, %g]: please report it",
                    op->name ? op->name : "?", device->name, out->ms, out->low_ms, out->high_ms);
}

ft_status ft__request_of(const ft_context *ft, ft_scratch *scratch, const json_t *object, ft_request *out,
                         ft_error *err)
{
    ft_finder f = {ft, scratch};
    FT_TRY(ft__request_read(object, ft__find_device, &f, out, err));
    ft_idle_list idle = {.count = 0};
    ft__kernel_idle(object, &out->op, &idle);
    return ft__idle_warnings(scratch, out->device, &idle, &out->warnings, err);
}

ft_status ft__forecast_of(const ft_context *ft, const ft_request *request, ft_forecast *out, ft_error *err)
{
    double quantile = request->quantile > 0 ? request->quantile : ft->quantile;
    return ft__context_forecast(ft, request->device, &request->op, quantile, out, err);
}

ft_energy ft__energy_of_kernel(const ft_context *ft, const ft_request *request, const ft_forecast *f)
{
    double quantile = request->quantile > 0 ? request->quantile : ft->quantile,
           ms = ft__kernel_steady_ms(request->device, &request->op, f);
    double joules = ft__kernel_joules(request->device, &request->op, f->flops, f->bytes, ms, f->launch_ms);
    return ft__energy_of(request->device, joules, ms, f->low_ms * ms / f->ms, f->high_ms * ms / f->ms,
                         ft__interval_level(quantile));
}

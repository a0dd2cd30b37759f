/* typed.c: the typed door. A program's structs are not trusted: every member that selects something is checked before
 * it does, as the JSON door checks its keys. */
#include <string.h>

#include "api/grow.h"
#include "base/json.h"
#include "device/gpu.h"
#include "graph/operator.h"
#include "kernel/kernel.h"
#include "study/context.h"

/* -- devices ----------------------------------------------------------------------------------- */

static ft_status hand_over(ft_status status, const ft_device *found, ft_device *out, size_t size)
{
    if (status == FT_OK) ft__give_struct(out, size, found, sizeof *found);
    return status;
}

ft_status ft_device_find_sized(const ft_context *ft, const char *name, ft_device *out, size_t size, ft_error *err)
{
    ft_device found;
    if (!name) return ft__fail(err, FT_E_MISSING, "a device needs a name or the path of a spec file");
    return hand_over(ft__context_device(ft, name, &found, err), &found, out, size);
}

ft_status ft_device_read_sized(const ft_context *ft, const char *spec, size_t length, ft_device *out, size_t size,
                               ft_error *err)
{
    ft_device found;
    json_t *document = NULL;
    (void)ft; /* every context has the same catalogue to extend */
    FT_TRY(ft__json_parse(spec ? spec : "", spec ? length : 0, "", &document, err));
    ft_status status = ft__device_read(document, "", &found, NULL, err);
    json_decref(document);
    return hand_over(status, &found, out, size);
}

size_t ft_device_count(const ft_context *ft) { return ft__context_device_count(ft); }

ft_status ft_device_at_sized(const ft_context *ft, size_t index, ft_device *out, size_t size, ft_error *err)
{
    ft_device found;
    return hand_over(ft__context_device_at(ft, index, &found, err), &found, out, size);
}

/* -- operators --------------------------------------------------------------------------------- */

void ft_op_init_sized(ft_op *op, size_t size, const char *name)
{
    ft_op own;
    ft__op_init(name ? name : "", &own);
    ft__give_struct(op, size, &own, sizeof own);
}

/* Where the kind says all, a name may be missing. */
static const char *usual_name(ft_op_kind kind)
{
    switch (kind) {
    case FT_OP_GEMM: return "gemm";
    case FT_OP_ATTENTION: return "attention";
    case FT_OP_MLA: return "mla";
    case FT_OP_CONV2D: return "conv2d";
    case FT_OP_MOE: return "moe";
    case FT_OP_OTHER: return "other";
    default: return NULL;
    }
}

static ft_status in_list(const char *member, long value, long count, ft_error *err)
{
    if (value >= 0 && value < count) return FT_OK;
    return ft__fail_at(err, FT_E_RANGE, member, 0, 0, "\"%s\" must be from 0 to %ld, got %ld", member, count - 1,
                       value);
}

static ft_status some(const char *member, double value, double most, ft_error *err)
{
    if (value >= 0 && value <= most) return FT_OK;
    return ft__fail_at(err, FT_E_RANGE, member, 0, 0, "\"%s\" must be a number from 0 to %g, got %g", member, most,
                       value);
}

/* What the JSON door cannot say, a struct can: formats that are none, rates that are no numbers. */
static ft_status look_through(ft_op *op, ft_error *err)
{
    FT_TRY(in_list("kind", (long)op->kind, FT_OP_KIND_COUNT, err));
    FT_TRY(in_list("dtype", (long)op->dtype, FT_DTYPE_COUNT, err));
    FT_TRY(in_list("kv_dtype", (long)op->kv_dtype, FT_DTYPE_COUNT, err));
    FT_TRY(in_list("pass", (long)op->pass, FT_PASS_FWD_BWD + 1, err));
    FT_TRY(in_list("timing", (long)op->timing, FT_TIMING_OP + 1, err));
    FT_TRY(in_list("engine", (long)op->engine, FT_ENGINE_COUNT, err));
    FT_TRY(in_list("weights", (long)op->weights, FT_STORAGE_COUNT, err));
    if (!op->name) op->name = usual_name(op->kind);
    if (!op->name)
        return ft__fail_at(err, FT_E_MISSING, "name", 0, 0,
                           "\"name\" says which operator of its kind it is (\"gelu\", \"softmax\", \"adamw_fused\")");
    switch (op->kind) {
    case FT_OP_GEMM:
        if (op->u.gemm.quantized < -1 || op->u.gemm.quantized > 1)
            return ft__fail_at(err, FT_E_RANGE, "quantized", 0, 0, "\"quantized\" must be -1, 0 or 1, got %d",
                               op->u.gemm.quantized);
        return in_list("by", op->u.gemm.by, FT_WEIGHT_KERNEL_COUNT, err);
    case FT_OP_ELEMENTWISE:
        FT_TRY(in_list("pattern", op->u.elementwise.pattern, 2 * FT_PATTERN_MIXED, err));
        FT_TRY(some("ops_per_element", op->u.elementwise.ops_per_element, 1e9, err));
        return some("bytes", op->u.elementwise.bytes, 1e15, err);
    case FT_OP_ROW:
        if (ft__row_op_find(op->name) < 0)
            return ft__fail_at(err, FT_E_NAME, "name", 0, 0, "\"%.60s\" is not an operator on rows", op->name);
        return some("vocab", (double)op->u.row.vocab, 1e15, err);
    case FT_OP_MOE:
        FT_TRY(in_list("backend", op->u.moe.backend, FT_MOE_BACKEND_COUNT, err));
        FT_TRY(some("ep", (double)op->u.moe.ep, 1e9, err));
        return some("skew", op->u.moe.skew, 1e9, err);
    case FT_OP_COLLECTIVE: return in_list("nccl", op->u.collective.nccl, 100000, err);
    default: return FT_OK;
    }
}

static ft_status take(const ft_op *op, size_t op_size, const ft_device *device, size_t device_size, ft_op *own,
                      ft_device *place, ft_error *err)
{
    if (!op || !device) return ft__fail(err, FT_E_USAGE, "an operator and a device are needed, got NULL");
    memset(own, 0, sizeof *own);
    memset(place, 0, sizeof *place);
    FT_TRY(ft__take_struct(own, sizeof *own, op, op_size, "operators", err));
    FT_TRY(ft__take_struct(place, sizeof *place, device, device_size, "devices", err));
    FT_TRY(ft__device_figures(place, err));
    FT_TRY(look_through(own, err));
    return ft__op_check(own, place, err);
}

ft_status ft_op_check_sized(const ft_op *op, size_t op_size, const ft_device *device, size_t device_size, ft_error *err)
{
    ft_op own;
    ft_device place;
    return take(op, op_size, device, device_size, &own, &place, err);
}

ft_status ft_kernel_sized(const ft_context *ft, const ft_device *device, size_t device_size, const ft_op *op,
                          size_t op_size, ft_forecast *out, size_t out_size, ft_error *err)
{
    ft_op own;
    ft_device place;
    ft_forecast made;
    if (!ft || !out) return ft__fail(err, FT_E_USAGE, "ft_kernel needs a context and a place for the forecast");
    FT_TRY(take(op, op_size, device, device_size, &own, &place, err));
    FT_TRY(ft__context_forecast(ft, &place, &own, ft__context_quantile(ft), &made, err));
    ft__give_struct(out, out_size, &made, sizeof made);
    return FT_OK;
}

/* price.c: what a group should take. */
#include <math.h>
#include <string.h>

#include "kernel/manner.h"
#include "kernel/walk.h"
#include "trace/groups.h"
#include "trace/price_constants.h"

/* A format that the device lacks runs as the next wider one that it has; bf16 as fp16, as people train there. */
static bool settle_format(const ft_device *device, ft_op *op)
{
    static const ft_dtype next[FT_DTYPE_COUNT] = {
        [FT_FP64] = FT_FP64, [FT_FP32] = FT_FP32, [FT_TF32] = FT_FP32, [FT_FP16] = FT_FP32,
        [FT_BF16] = FT_FP16, [FT_FP8] = FT_BF16,  [FT_INT8] = FT_BF16, [FT_FP4] = FT_FP8};
    bool changed = false;
    bool matrix = op->kind == FT_OP_GEMM || op->kind == FT_OP_ATTENTION || op->kind == FT_OP_CONV2D;
    for (int i = 0; matrix && i < 4 && !(device->peak_tflops[op->dtype] > 0) && next[op->dtype] != op->dtype; i++) {
        op->dtype = op->kv_dtype = next[op->dtype];
        changed = true;
    }
    return changed;
}

/* As timeline/timed.c: a chain of waits for memory, as long as its trips. */
static double with_walk(const ft_device *device, const ft_called_part *part, const ft_forecast *f)
{
    if (part->walk == FT_WALK_NONE) return f->ms;
    return fmax(f->ms, f->launch_ms + ft__walk_ms(device, part->walk, part->trips, part->blocks));
}

static ft_status price_parts(const ft_predictor *p, const ft_device *device, const ft_called *called, double quantile,
                             ft_dtype as, ft_price *out, ft_error *err)
{
    double longest = 0;
    for (int i = 0; i < called->count; i++) {
        const ft_called_part *part = &called->part[i];
        ft_op op = part->op;
        ft_forecast f;
        if (as != FT_DTYPE_COUNT) op.dtype = op.kv_dtype = as;
        out->instead |= settle_format(device, &op);
        FT_TRY(ft__op_check(&op, device, err));
        FT_TRY(ft__kernel_forecast(p, device, &op, quantile, &f, err));
        double effort = ft__manner_effort(device, part->manner, part->each, &op);
        double scale = with_walk(device, part, &f) / f.ms * effort * part->times, ms = f.ms * scale;
        out->ms += ms;
        out->low_ms += f.low_ms * scale;
        out->high_ms += f.high_ms * scale;
        out->flops += f.flops * part->times;
        out->bytes += f.bytes * part->times;
        out->roofline_ms += f.roofline_ms * part->times;
        out->launch_ms += f.launch_ms * part->times;
        if (ms <= longest) continue;
        longest = ms;
        out->bound = f.bound;
        out->family = f.family ? f.family : "";
        out->source = f.source;
        out->dtype = op.dtype;
        memcpy(out->note, f.note, sizeof out->note);
    }
    return FT_OK;
}

/* Copies between host and GPU at the bus's speed; half of that from memory that is not pinned, which nobody knows. */
static void price_copy(const ft_device *device, const ft_trace_group *g, ft_price *out)
{
    double each = g->calls > 0 ? g->bytes / g->calls : 0, gbps = device->pcie_gbps;
    if (!(gbps > 0)) gbps = FT_K_PRICE_COPY_USUAL_GBPS;
    if (g->kind == FT_GROUP_AROUND) gbps = device->memory_gbps / 2;
    out->ms = FT_K_PRICE_COPY_MS + each / (FT_K_PRICE_COPY_SHARE * gbps * 1e6);
    out->low_ms = FT_K_PRICE_COPY_BELOW * out->ms;
    out->high_ms = FT_K_PRICE_COPY_ABOVE * out->ms;
    out->bytes = each;
    out->roofline_ms = each / (gbps * 1e6);
    out->bound = FT_BOUND_MEMORY;
    out->source = FT_SOURCE_ROOFLINE;
}

ft_status ft__price(const ft_predictor *p, const ft_device *device, const ft_trace_group *g, double quantile,
                    ft_dtype as, ft_price *out, ft_error *err)
{
    memset(out, 0, sizeof *out);
    out->family = "";
    out->bound = FT_BOUND_MEMORY;
    out->source = FT_SOURCE_ROOFLINE;
    out->dtype = FT_DTYPE_COUNT;
    if (g->kind == FT_GROUP_UP || g->kind == FT_GROUP_DOWN || g->kind == FT_GROUP_AROUND) {
        price_copy(device, g, out);
        return FT_OK;
    }
    if (g->kind == FT_GROUP_EXCHANGE) out->bound = FT_BOUND_COMMUNICATION;
    if (g->kind == FT_GROUP_KERNEL && g->called.class == FT_CALLED_PRODUCT) out->bound = FT_BOUND_COMPUTE;
    if (g->kind != FT_GROUP_OP || g->called.count == 0) return FT_OK;
    ft_error ignored = {0};
    ft_status s = price_parts(p, device, &g->called, quantile, as, out, &ignored);
    if (s == FT_E_MEMORY || s == FT_E_BUG) {
        if (err) *err = ignored;
        return s;
    }
    if (s != FT_OK) { /* sizes that no forecast takes: nobody knows */
        memset(out, 0, sizeof *out);
        out->family = "";
        out->bound = FT_BOUND_MEMORY;
        out->source = FT_SOURCE_ROOFLINE;
        out->dtype = FT_DTYPE_COUNT;
        return FT_OK;
    }
    if (!g->called.known) { /* one pass over its tensors is a guess */
        out->low_ms = fmin(out->low_ms, FT_K_PRICE_GUESS_BELOW * out->ms);
        out->high_ms = fmax(out->high_ms, FT_K_PRICE_GUESS_ABOVE * out->ms);
    }
    return FT_OK;
}

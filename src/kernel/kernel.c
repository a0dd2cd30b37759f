/* From a request to forecasts of single kernels: passes that are several kernels, attention of no particular engine. */
#include "kernel/kernel.h"

#include <math.h>
#include <string.h>

#include "graph/operator.h"
#include "kernel/attention_constants.h"
#include "kernel/attention_library.h"
#include "kernel/attention_wide.h"
#include "kernel/expert.h"
#include "kernel/moe_backend.h"
#include "kernel/power.h"
#include "kernel/skew.h"
#include "kernel/weight_only.h"

void ft__forecast_scale(ft_forecast *f, double by)
{
    f->ms *= by;
    f->low_ms *= by;
    f->high_ms *= by;
    f->sustained_ms *= by;
}

void ft__forecast_add(ft_forecast *f, double bytes, double ms)
{
    f->bytes += bytes;
    f->intensity = f->bytes > 0 ? f->flops / f->bytes : 0;
    f->ms += ms;
    f->low_ms += ms;
    f->high_ms += ms;
    f->sustained_ms += f->sustained_ms > 0 ? ms : 0;
}

/* The gradients of a product are products: with C = A B, dA = dC B' and dB = A' dC, each stored as its operand is (a
 * transposed one comes out as dA' = B dC' or dB' = dC' A). */
static void gradient_products(const ft_op *op, ft_op out[2])
{
    int64_t m = op->u.gemm.m, n = op->u.gemm.n, k = op->u.gemm.k;
    bool a_t = op->u.gemm.layout[0] == 't', b_t = op->u.gemm.layout[1] == 't';
    for (int i = 0; i < 2; i++) {
        out[i] = *op;
        out[i].pass = FT_PASS_FWD;
        out[i].u.gemm.bias = false;
    }
    out[0].u.gemm.m = a_t ? k : m;
    out[0].u.gemm.n = a_t ? m : k;
    out[0].u.gemm.k = n;
    out[0].u.gemm.layout[0] = a_t ? (b_t ? 't' : 'n') : 'n';
    out[0].u.gemm.layout[1] = a_t ? 't' : b_t ? 'n' : 't';
    out[1].u.gemm.m = b_t ? n : k;
    out[1].u.gemm.n = b_t ? k : n;
    out[1].u.gemm.k = m;
    out[1].u.gemm.layout[0] = b_t ? 't' : a_t ? 'n' : 't';
    out[1].u.gemm.layout[1] = b_t && a_t ? 't' : 'n';
}

/* What a request for more than a forward pass runs, one after the other; 0 when the family answers for it as a whole
 * (attention's backward was measured with its forward). */
static int parts_of(const ft_op *op, ft_op part[3])
{
    int count = 0;
    bool product = op->kind == FT_OP_GEMM, split = product || op->kind == FT_OP_ROW || op->kind == FT_OP_CONV2D;
    if (!split || op->pass == FT_PASS_FWD || (op->pass == FT_PASS_BWD && !product)) return 0;
    if (op->pass == FT_PASS_FWD_BWD) {
        part[count] = *op;
        part[count++].pass = FT_PASS_FWD;
    }
    if (product) {
        gradient_products(op, part + count);
        return count + 2;
    }
    part[count] = *op;
    part[count++].pass = FT_PASS_BWD;
    return count;
}

/* Errors of one family have one cause: the ends of the parts' intervals add up. */
static ft_status forecast_parts(const ft_predictor *p, const ft_device *device, const ft_op *op, const ft_op *part,
                                int count, double quantile, ft_forecast *out, ft_error *err)
{
    ft_forecast f[3], sum;
    int longest = 0;
    ft__forecast_begin(device, op, &sum);
    for (int i = 0; i < count; i++) {
        FT_TRY(ft__expert_forecast(p, device, &part[i], quantile, &f[i], err));
        sum.ms += f[i].ms;
        sum.low_ms += f[i].low_ms;
        sum.high_ms += f[i].high_ms;
        sum.launch_ms += f[i].launch_ms;
        sum.sustained_ms += f[i].sustained_ms;
        if (f[i].ms > f[longest].ms) longest = i;
    }
    *out = f[longest]; /* bound, tile, source: what the longest of them is */
    out->ms = sum.ms;
    out->low_ms = sum.low_ms;
    out->high_ms = sum.high_ms;
    out->launch_ms = sum.launch_ms;
    out->sustained_ms = sum.sustained_ms;
    out->flops = sum.flops;
    out->bytes = sum.bytes;
    out->intensity = sum.intensity;
    out->roofline_ms = sum.roofline_ms;
    return FT_OK;
}

/* How close the measurements of this engine's own attention stand; FT_KIN_LEVELS when the predictor has none. */
static ft_kinship engine_kinship(const ft_predictor *p, const ft_device *device, const ft_op *op)
{
    int variant;
    ft_kinship kinship;
    const ft_family *family = ft__family_of(op, &variant);
    const ft_expert *e = family ? ft__predictor_expert(p, family, variant, device, &kinship) : NULL;
    return e && !strcmp(e->variant, family->variant_name(variant)) ? kinship : FT_KIN_LEVELS;
}

/* Attention for which nobody said whose it is: the bare kernel where this GPU was measured so or there is no cache to
 * write, else the engines' mixture. Without one (fp8, a stranger): the fastest of the engines that stand equally close,
 * in an interval over all of them; they differ more from each other than each of them from its forecast. */
static ft_status forecast_any_engine(const ft_predictor *p, const ft_device *device, const ft_op *asked,
                                     double quantile, ft_forecast *out, ft_error *err)
{
    ft_op op = *asked;
    bool encoder = !op.u.attention.causal && op.u.attention.q_len > 1, first = true;
    op.engine = FT_ENGINE_BARE;
    if (encoder || engine_kinship(p, device, &op) == FT_KIN_SELF)
        return ft__expert_forecast(p, device, &op, quantile, out, err);
    bool low = ft_dtype_bytes(op.dtype) < 2 || ft_dtype_bytes(op.kv_dtype) < 2; /* no mixture was fitted for these */
    if (!low && engine_kinship(p, device, asked) < FT_KIN_WORLD)
        return ft__expert_forecast(p, device, asked, quantile, out, err);
    ft_kinship kinship[FT_ENGINE_COUNT], closest = FT_KIN_LEVELS;
    for (int e = FT_ENGINE_TRTLLM; e < FT_ENGINE_COUNT; e++) {
        op.engine = (ft_engine)e;
        kinship[e] = engine_kinship(p, device, &op);
        if (kinship[e] < closest) closest = kinship[e];
    }
    op.engine = FT_ENGINE_BARE;
    if (closest == FT_KIN_LEVELS) return ft__expert_forecast(p, device, &op, quantile, out, err);
    for (int e = FT_ENGINE_TRTLLM; e < FT_ENGINE_COUNT; e++) {
        if (kinship[e] != closest || (!first && closest == FT_KIN_WORLD && e == FT_ENGINE_SGLANG)) continue;
        ft_forecast f;
        op.engine = (ft_engine)e;
        FT_TRY(ft__expert_forecast(p, device, &op, quantile, &f, err));
        double least = first ? f.low_ms : fmin(out->low_ms, f.low_ms),
               most = first ? f.high_ms : fmax(out->high_ms, f.high_ms);
        if (first || f.ms < out->ms) *out = f;
        out->low_ms = least;
        out->high_ms = most;
        first = false;
    }
    return FT_OK;
}

/* Engines share attention's libraries on the newer GPUs (FlashAttention 3, FlashInfer's generated kernels): one that
 * was measured on strangers alone runs what vLLM was measured with on this GPU or on a sibling. */
static bool lends_attention(const ft_predictor *p, const ft_device *device, const ft_op *op, ft_op *lent)
{
    if (op->engine != FT_ENGINE_SGLANG || engine_kinship(p, device, op) < FT_KIN_WORLD) return false;
    *lent = *op;
    lent->engine = FT_ENGINE_VLLM;
    return engine_kinship(p, device, lent) < FT_KIN_WORLD;
}

/* A backward pass alone was never measured: it is what both passes take beyond the forward one. Each of the two is
 * known to a hundredth where their experts' own guess at the rest is 6 % short (heads of 64) or 2 % long (128). The
 * guess keeps a difference of two forecasts of strangers within reason. */
static ft_status forecast_backward(const ft_predictor *p, const ft_device *device, const ft_op *op, double quantile,
                                   ft_forecast *out, ft_error *err)
{
    ft_op kernel = *op; /* without the host's share, which a call has once */
    kernel.timing = FT_TIMING_DEVICE;
    ft_op both = kernel, forward = kernel;
    both.pass = FT_PASS_FWD_BWD;
    forward.pass = FT_PASS_FWD;
    forward.engine = FT_ENGINE_BARE;
    ft_forecast guess, whole, first;
    FT_TRY(ft__expert_forecast(p, device, op, quantile, out, err));
    FT_TRY(ft__expert_forecast(p, device, &kernel, quantile, &guess, err));
    FT_TRY(ft__expert_forecast(p, device, &both, quantile, &whole, err));
    FT_TRY(ft__expert_forecast(p, device, &forward, quantile, &first, err));
    double body = guess.ms - guess.launch_ms, rest = whole.ms - whole.launch_ms - (first.ms - first.launch_ms);
    double by =
        (guess.launch_ms + fmin(fmax(rest, FT_K_ATTENTION_BACK_LEAST * body), FT_K_ATTENTION_BACK_MOST * body)) /
        guess.ms;
    by = fmax(by, guess.roofline_ms / guess.ms);
    ft__forecast_scale(out, by);
    return FT_OK;
}

static ft_status forecast_whole(const ft_predictor *p, const ft_device *device, const ft_op *op, double quantile,
                                ft_forecast *out, ft_error *err)
{
    ft_op part[3];
    int parts = parts_of(op, part);
    if (parts) return forecast_parts(p, device, op, part, parts, quantile, out, err);
    if (op->kind == FT_OP_MOE && op->u.moe.skew > 0) return ft__skewed_forecast(p, device, op, quantile, out, err);
    bool learned = p->mode == FT_PREDICT_LEARNED;
    if (learned && ft__weight_only(op)) return ft__weight_only_forecast(p, device, op, quantile, out, err);
    if (learned && op->kind == FT_OP_ATTENTION && op->pass == FT_PASS_BWD)
        return forecast_backward(p, device, op, quantile, out, err);
    bool attends = op->kind == FT_OP_ATTENTION && op->pass == FT_PASS_FWD;
    bool open = attends && op->engine == FT_ENGINE_ANY;
    ft_op lent;
    if (attends && learned && lends_attention(p, device, op, &lent))
        return ft__expert_forecast(p, device, &lent, quantile, out, err);
    return open && learned ? forecast_any_engine(p, device, op, quantile, out, err)
                           : ft__expert_forecast(p, device, op, quantile, out, err);
}

static ft_status forecast_held(const ft_predictor *p, const ft_device *device, const ft_op *op, double quantile,
                               ft_forecast *out, ft_error *err)
{
    ft_op settled = *op;
    bool same = ft__stored_bytes(op) >= ft_dtype_bytes(op->dtype) && op->weights != FT_STORED_FP8_BLOCK;
    if (same) settled.weights = FT_STORED_AS_COMPUTED;
    if (op->kind == FT_OP_MOE) settled.u.moe.backend = (int)ft__moe_backend(device, op);
    FT_TRY(forecast_whole(p, device, &settled, quantile, out, err));
    if (ft__attention_wide(device, op)) {
        ft__attention_wide_apply(device, op, out);
        return FT_OK;
    }
    if (!ft__library_named(device, op)) return FT_OK;
    ft_op longer;
    ft_forecast steady = *out;
    if (ft__library_longer(op, &longer)) FT_TRY(forecast_whole(p, device, &longer, quantile, &steady, err));
    ft__library_apply(device, op, &steady, quantile, out);
    return FT_OK;
}

/* A board that is held to less is not faster by it. Corrections that were learned from boards at their own limit may
 * say so of some products. */
ft_status ft__kernel_forecast(const ft_predictor *p, const ft_device *device, const ft_op *op, double quantile,
                              ft_forecast *out, ft_error *err)
{
    FT_TRY(forecast_held(p, device, op, quantile, out, err));
    if (!(ft__watts_limit(device) < device->tdp_w)) return FT_OK;
    ft_device released = *device;
    ft_forecast without;
    released.power_cap_w = 0;
    FT_TRY(forecast_held(p, &released, op, quantile, &without, err));
    if (without.ms > out->ms && out->ms > 0) ft__forecast_scale(out, without.ms / out->ms);
    return FT_OK;
}

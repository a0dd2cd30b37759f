/* The roofline as an answer of last resort, and the baselines of the literature as predictors. */
#include "kernel/reference.h"

#include <math.h>
#include <string.h>

#include "device/gpu.h"
#include "kernel/expert_constants.h"
#include "kernel/kernel.h"

static ft_bound roof_of(const ft_device *device, const ft_forecast *f)
{
    return f->roofline_ms > 1.001 * f->bytes / (device->memory_gbps * 1e6) ? FT_BOUND_COMPUTE : FT_BOUND_MEMORY;
}

static void interval(double quantile, double factor_at_90, ft_forecast *out)
{
    double widen = pow(factor_at_90, quantile / 0.9);
    out->low_ms = out->ms / widen;
    out->high_ms = out->ms * widen;
    out->sustained_ms = out->ms;
}

void ft__roofline_forecast(const ft_device *device, const ft_op *op, double quantile, bool pure, ft_forecast *out)
{
    const struct ft__k_expert_roofline *typical = &ft__k_expert_roofline;
    out->source = FT_SOURCE_ROOFLINE;
    out->bound = roof_of(device, out);
    if (pure) {
        out->ms = fmax(out->roofline_ms, 1e-6);
    } else {
        out->launch_ms = typical->launch_ms;
        out->ms = out->roofline_ms / typical->efficiency + typical->launch_ms;
        if (op->timing == FT_TIMING_OP) out->ms = ft__op_time(out->ms, typical->gap_ms);
        if (typical->launch_ms > out->roofline_ms) out->bound = FT_BOUND_OVERHEAD;
    }
    interval(quantile, typical->factor, out);
    if (!pure) out->low_ms = fmax(out->low_ms, fmin(out->roofline_ms, out->ms));
}

bool ft__linear_forecast(const ft_predictor *p, const ft_family *family, int variant, const ft_device *device,
                         const ft_op *op, double quantile, ft_forecast *out)
{
    const ft_expert *own = NULL, *world = NULL;
    for (size_t i = 0; i < p->expert_count; i++) {
        const ft_expert *e = &p->experts[i];
        if (e->family[0] != '~' || strcmp(e->family + 1, family->name) ||
            strcmp(e->variant, family->variant_name(variant)))
            continue;
        if (!strcmp(e->gpu, device->name)) own = e;
        if (e->gpu[0] == '*') world = e;
    }
    const ft_expert *e = own ? own : world;
    if (!e) return false;
    double compute = out->flops / (ft__peak_tflops(device, op->dtype) * 1e9),
           memory = out->bytes / (device->memory_gbps * 1e6);
    out->ms = fmax(e->theta[0] * 1e-3 + e->theta[1] * compute + e->theta[2] * memory, 1e-6);
    out->launch_ms = e->theta[0] * 1e-3;
    out->source = own ? FT_SOURCE_LEARNED : FT_SOURCE_PHYSICS;
    out->kin = own ? own->gpu : "";
    out->bound = roof_of(device, out);
    interval(quantile, FT_K_EXPERT_BASELINE_FACTOR, out);
    return true;
}

ft_status ft__scaling_forecast(const ft_predictor *p, const ft_device *device, const ft_op *op, double quantile,
                               ft_forecast *out, ft_error *err)
{
    ft_device from;
    ft_predictor learned = *p;
    learned.mode = FT_PREDICT_LEARNED;
    FT_TRY(ft__catalogue_find(p->scaling_from, &from, err));
    FT_TRY(ft__kernel_forecast(&learned, &from, op, quantile, out, err));
    /* T_d = (D_o/D_d)^g (W_o/W_d)^(1-g) (C_o/C_d)^(1-g) T_o: bandwidth per block and clock, weighed by g = 1 when the
     * kernel is memory-bound and falling to 0.5 at the ridge, as in the paper's section 4.2. */
    double ridge = ft__peak_tflops(&from, op->dtype) * 1e3 / from.memory_gbps;
    double g = out->intensity < ridge ? 1 - 0.5 * out->intensity / ridge : 0.5 * ridge / out->intensity;
    double scale = pow(from.memory_gbps / device->memory_gbps, g) * pow((double)from.sms / device->sms, 1 - g) *
                   pow(from.boost_mhz / device->boost_mhz, 1 - g);
    out->ms *= scale;
    out->roofline_ms = ft__roofline_ms(device, op);
    out->source = FT_SOURCE_PHYSICS;
    interval(quantile, FT_K_EXPERT_BASELINE_FACTOR, out);
    return FT_OK;
}

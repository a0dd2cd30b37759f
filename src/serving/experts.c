/* experts.c: fused experts of a serving engine on one rank.
 *
 *   t = t0 + sqrt((weights of the experts awake / (eb BW))^2 + (6 T k H I / ep / (ec peak))^2) + passes / (pp BW)
 *
 * Tokens pick their experts at random, so that of E experts E (1 - (1 - k/E)^T) are awake. */
#include <math.h>

#include "kernel/kernel.h"
#include "serving/backends_constants.h"
#include "serving/cost.h"

typedef struct backend {
    double launch_us, bandwidth, arithmetic, passes;
} backend;

/* The nearest entry: the right instructions and engine, then the formats. */
static backend find(const ft_served *m)
{
    bool tcgen05 = m->device->matrix_issue == FT_ISSUE_TCGEN05, trtllm = m->engine->kernels == FT_ENGINE_TRTLLM;
    double math = 8 * ft_dtype_bytes(m->expert_dtype), best = INFINITY;
    backend found = {0};
    for (int i = 0; i < FT_K_BACKENDS_EXPERTS_COUNT; i++) {
        double apart = fabs(log2(ft__k_backends_experts[i].weight_bits / m->expert_bits)) +
                       fabs(log2(ft__k_backends_experts[i].math_bits / math));
        if (ft__k_backends_experts[i].tcgen05 != tcgen05) apart += 100;
        if (!(trtllm ? ft__k_backends_experts[i].trtllm : ft__k_backends_experts[i].other)) apart += 10;
        if (apart >= best) continue;
        best = apart;
        found = (backend){ft__k_backends_experts[i].launch_us, ft__k_backends_experts[i].bandwidth,
                          ft__k_backends_experts[i].arithmetic, ft__k_backends_experts[i].passes};
    }
    return found;
}

ft_status ft__experts_ms(const ft_context *ft, ft_scratch *scratch, const ft_served *m, double tokens, double *out,
                         ft_error *err)
{
    const ft_arch *a = m->arch;
    (void)ft, (void)scratch, (void)err;
    double experts = (double)a->experts, k = (double)a->topk, hidden = (double)a->hidden, ep = (double)m->ep;
    double width = (double)(a->moe_ffn > 0 ? a->moe_ffn : a->ffn) / fmax(1, (double)(m->tp * m->dp) / ep);
    double awake = experts * -expm1(tokens * log1p(-fmin(k / experts, 1 - 1e-9)));
    double memory = m->device->memory_gbps * 1e6, peak = ft__peak_tflops(m->device, m->expert_dtype) * 1e9; /* per ms */
    backend b = find(m);
    double weights = awake / ep * 3 * hidden * width * m->expert_bits / 8 / (b.bandwidth * memory);
    double flops = 6 * tokens * k * hidden * width / ep / (b.arithmetic * peak);
    double passes = tokens * k / ep * (4 * hidden + 4 * width) + 2 * tokens * hidden;
    *out = b.launch_us / 1e3 + sqrt(weights * weights + flops * flops) + passes / (b.passes * memory);
    return FT_OK;
}

/* A made-up forecast that moves of advice change. */
#ifndef FT_TEST_MADE_UP_STEP_H
#define FT_TEST_MADE_UP_STEP_H
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "explain/advice.h"
#include "explain/difference.h"
#include "failing_alloc.h"

static const ft_device device = {.name = "made_up",
                                 .sms = 100,
                                 .lanes_per_sm = 128,
                                 .boost_mhz = 1000,
                                 .memory_gbps = 1000,
                                 .vector_tflops = {[FT_FP32] = 20},
                                 .peak_tflops = {[FT_FP32] = 20, [FT_TF32] = 80, [FT_BF16] = 100, [FT_FP16] = 100}};
static const ft_arch arch = {.model_type = "made_up",
                             .design = FT_DECODER_ONLY,
                             .layers = 4,
                             .hidden = 512,
                             .heads = 8,
                             .head_dim = 64,
                             .ffn = 2048,
                             .vocab = 1000};

typedef struct made_up {
    ft_arena *arena;
    ft_graph *graph;
    double room;
    ft_status failure; /* of every forecast */
    bool cancel;       /* flash attention gains nothing once compiled */
    int asked;
    bool slim;     /* flash attention makes it fit */
    double faster; /* products on another GPU: the share of their time that it saves */
} made_up;

/* One product and one pointwise kernel. */
static ft_graph *small_graph(ft_arena *arena)
{
    ft_graph *g = ft__graph_new(arena, FT_BF16);
    assert_non_null(g);
    ft_block b = {.name = "layers",
                  .kind = FT_BLOCK_LAYERS,
                  .phase = FT_FORWARD,
                  .repeat = 1,
                  .carry_in = FT_NONE,
                  .carry_out = FT_NONE,
                  .fed_by = FT_NONE,
                  .mirror = -1};
    assert_non_null(ft__graph_block(g, &b));
    for (int i = 0; i < 2; i++) {
        ft_node n = {.at = i ? FT_AT(MLP_ACT) : FT_AT(MLP_UP_PROJ),
                     .name = i ? "act" : "up",
                     .phase = FT_FORWARD,
                     .count = 1,
                     .traffic = 1,
                     .effort = 1};
        ft__op_init(i ? "gelu" : "linear", &n.op);
        n.op.dtype = FT_BF16;
        n.verb = i ? FT_DO_POINTWISE : FT_DO_LINEAR;
        if (i)
            n.op.u.elementwise.numel = 1 << 20;
        else
            n.op.u.gemm.m = 4096, n.op.u.gemm.n = 1001, n.op.u.gemm.k = 512;
        assert_non_null(ft__graph_node(g, &n));
    }
    g->blocks[0].count = 2;
    return g;
}

static void fill_step(const ft_change *c, const made_up *m, ft_step *out)
{
    double product = 50, pointwise = 40, batch = (double)c->work.batch;
    if (c->work.dtype == FT_FP32) product *= 4;
    if (c->work.dtype == FT_TF32) product *= 2;
    if (c->work.execution == FT_RUN_COMPILE) pointwise *= 0.25;
    if (c->work.attention == FT_EAGER && !(m->cancel && c->work.execution == FT_RUN_COMPILE)) pointwise += 20;
    if (c->arch->vocab % 64) product += 5;
    if (c->device != &device) product *= 1 - m->faster;
    ft_timed *k = ft__arena_array(m->arena, 2, sizeof *k);
    assert_non_null(k);
    k[0] = (ft_timed){.node = 0,
                      .times = 1,
                      .forecast = {.ms = product * batch,
                                   .low_ms = 0.9 * product * batch,
                                   .high_ms = 1.1 * product * batch,
                                   .bound = FT_BOUND_COMPUTE,
                                   .family = "gemm",
                                   .flops = 1e12 * batch,
                                   .bytes = 1e9,
                                   .tile_m = 128,
                                   .tile_n = 128,
                                   .tiles = 150,
                                   .waves = 1.5}};
    k[1] = (ft_timed){.node = 1,
                      .times = 1,
                      .forecast = {.ms = pointwise * batch,
                                   .low_ms = 0.8 * pointwise * batch,
                                   .high_ms = 1.2 * pointwise * batch,
                                   .bound = FT_BOUND_COMPUTE,
                                   .family = "pointwise",
                                   .flops = 1e9,
                                   .bytes = 1e9 * batch}};
    *out = (ft_step){.kernels = k, .kernel_count = 2};
    out->busy_ms = (product + pointwise) * batch;
    out->host_ms = 30;
    out->step_ms = fmax(out->busy_ms, 30);
    out->low_ms = 0.9 * out->step_ms, out->high_ms = 1.1 * out->step_ms;
    out->class_ms[FT_CONTRACTION] = product * batch;
    out->class_ms[FT_ELEMENTWISE] = pointwise * batch;
    out->regime[FT_BOUND_COMPUTE] = 1;
    out->memory.peak_bytes = out->memory.reserved_bytes = 10 * batch * ft_dtype_bytes(c->work.dtype);
    if (c->work.recompute == FT_RECOMPUTE_FULL) out->memory.peak_bytes /= 2;
    if (m->slim && c->work.attention == FT_FLASH) out->memory.peak_bytes = out->memory.reserved_bytes = 10;
    out->memory.capacity_bytes = m->room;
    out->memory.fits = out->memory.peak_bytes <= m->room;
}

static ft_change request(void)
{
    return (ft_change){.arch = &arch,
                       .work = {.task = FT_TRAIN,
                                .dtype = FT_FP32,
                                .kv_dtype = FT_FP32,
                                .batch = 2,
                                .seq = 512,
                                .accumulate = 1,
                                .attention = FT_EAGER},
                       .parallel = {.dp = 1, .tp = 1, .pp = 1, .vpp = 1, .cp = 1, .ep = 1},
                       .device = &device};
}

static made_up *fresh(void)
{
    static made_up m;
    ft_arena *arena = ft__arena_new(0);
    assert_non_null(arena);
    m = (made_up){.arena = arena, .graph = small_graph(arena), .room = 1000};
    return &m;
}
#endif

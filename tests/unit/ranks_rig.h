/* A step on many GPUs, set up: the model, the work, the layout, the cluster, and room for the answer. */
#ifndef FT_TEST_RANKS_RIG_H
#define FT_TEST_RANKS_RIG_H

#include "layout_models.h"
#include "shipped_predictor.h"

/* Nodes of eight with NVLink and 400 Gb/s per GPU. */
static inline ft_cluster connected_nodes(int64_t gpus)
{
    ft_cluster c = {.tiers = 2, .gpus_per_node = 8, .nodes = (gpus + 7) / 8, .gpus = gpus};
    c.tier[0] = (ft_tier){.fabric = FT_NVLINK,
                          .gbps = 450,
                          .efficiency = 0.8,
                          .latency_us = 2,
                          .gpus = 8,
                          .switched = true,
                          .oversubscription = 1};
    c.tier[1] = (ft_tier){.fabric = FT_INFINIBAND,
                          .gbps = 50,
                          .efficiency = 0.9,
                          .latency_us = 10,
                          .gpus = gpus,
                          .switched = true,
                          .oversubscription = 1};
    return c;
}

typedef struct rig {
    ft_arena *arena;
    ft_memo *memo;
    ft_device device;
    ft_arch arch;
    ft_workload work;
    ft_parallel parallel;
    ft_cluster cluster;
    ft_step step;
    ft_ranked ranked;
} rig;

static inline void end(rig *r)
{
    ft__arch_release(&r->arch);
    ft__memo_free(r->memo);
    ft__arena_free(r->arena);
}

static inline ft_ranks ranks_of(rig *r)
{
    return (ft_ranks){.arch = &r->arch,
                      .work = &r->work,
                      .parallel = &r->parallel,
                      .cluster = &r->cluster,
                      .device = &r->device,
                      .predictor = predictor,
                      .quantile = 0.9,
                      .memo = r->memo,
                      .arena = r->arena};
}

/* The step, and what holds for every one of them. */
static inline void forecast_sound(rig *r)
{
    ft__arena_reset(r->arena);
    ft_ranks ranks = ranks_of(r);
    ft_error err;
    ft_graph *shown;
    if (ft__ranks_forecast(&ranks, &r->step, &r->ranked, &shown, &err) != FT_OK) fail_msg("%s", err.message);
    assert_true(r->step.low_ms > 0 && r->step.low_ms <= r->step.step_ms && r->step.step_ms <= r->step.high_ms);
    assert_true(r->step.comm_exposed_ms >= 0 && r->step.comm_exposed_ms <= r->step.comm_ms + 1e-9);
    double shares = 0;
    for (int i = 0; i < 4; i++) shares += r->step.regime[i];
    if (fabs(shares - 1) > 0.02)
        fail_msg("shares add up to %.3f: compute %.3f memory %.3f", shares, r->step.regime[FT_BOUND_COMPUTE],
                 r->step.regime[FT_BOUND_MEMORY]);
}

/* However little there is, the answer is an error or the step: every size of memory from `1/finer` to the next. */
static inline void assert_survives_want(rig *r, size_t most, size_t finer, int least_failures)
{
    int failed = 0, done = 0;
    for (size_t cap = 1024; cap <= most; cap += cap / finer) {
        ft_ranks ranks = ranks_of(r);
        ranks.arena = ft__arena_new(cap);
        ft_error err;
        ft_status status = ft__ranks_forecast(&ranks, &r->step, NULL, NULL, &err);
        assert_true(status == FT_OK || status == FT_E_MEMORY);
        failed += status != FT_OK;
        done += status == FT_OK;
        ft__arena_free(ranks.arena);
    }
    assert_true(failed > least_failures && done > 0);
}

/* Of how many ranks and micro-batches it may be: a forecast lists what differs, and that fits into this many bytes.
 * (How long one takes is for `make bench` to say: a test does not depend on how fast the machine is.) */
static inline void assert_small(rig *r, void (*forecast)(rig *), size_t most)
{
    ft_arena *own = r->arena;
    r->arena = ft__arena_new(most);
    assert_non_null(r->arena);
    forecast(r); /* fails the test where it needs more */
    ft__arena_free(r->arena);
    r->arena = own;
}
#endif

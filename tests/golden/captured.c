/* Modules that are replayed from CUDA graphs, and processes that wait for the slowest of them: the host's time goes the
 * right way, and kernels stay what they are. */
#include "switching.h"

static outcome train(const char *more)
{
    return outcome_of(
        golden_ask("{\"task\":\"train\",\"model\":\"llama-3.2-1b\",\"gpu\":\"h100_sxm\",\"batch\":2,\"seq\":"
                   "2048%s}",
                   more));
}

/* Experts of one sequence on 64 GPUs, where the host sets the pace: what the step and its hosts take with modules in
 * graphs. */
static double experts_value(const char *key, const char *more)
{
    return golden_value(key,
                        "{\"task\":\"train\",\"model\":\"qwen3-235b-a22b\",\"gpu\":\"h100_sxm\",\"batch\":1,"
                        "\"seq\":4096,\"global_batch\":64,\"dtype\":\"fp8\",\"execution\":\"fused\",\"parallel\":"
                        "{\"tp\":4,\"sp\":true,\"etp\":1,\"pp\":8,\"ep\":8,\"dp\":2,\"zero\":1}%s}",
                        more);
}

static void modules_in_graphs(void **state)
{
    (void)state;
#define GRAPHS(of) ",\"cuda_graph_modules\":[" of "]"
    const char *ways[] = {"",
                          GRAPHS("\"moe_router\""),
                          GRAPHS("\"moe_router\",\"moe_preprocess\""),
                          GRAPHS("\"attn\",\"moe_router\",\"moe_preprocess\""),
                          GRAPHS("\"attn\",\"moe\""),
                          GRAPHS("\"full_iteration\"")};
    enum { WAYS = sizeof ways / sizeof *ways };
    double ms[WAYS], host[WAYS];
    for (int i = 0; i < WAYS; i++) {
        ms[i] = experts_value("step_ms", ways[i]);
        host[i] = experts_value("host_ms", ways[i]);
        if (i) less("the host's time with more in graphs", host[i], host[i - 1]);
        if (i) golden_holds(ms[i] <= ms[i - 1], "a step with more in graphs: %g and %g ms", ms[i], ms[i - 1]);
    }
    golden_holds(host[2] < 0.93 * host[0], "router and map: %g of %g ms", host[2], host[0]);
    golden_holds(host[3] < 0.7 * host[0], "attention too: %g of %g ms", host[3], host[0]);
    golden_near("whole layers, all of which attention and experts are", experts_value("host_ms", GRAPHS("\"layer\"")),
                host[4], 0.02);
    less("a step as one graph", ms[5], 0.8 * ms[0]);
    /* Kernels are the same. */
    golden_near("what kernels take", experts_value("busy_ms", ways[3]), experts_value("busy_ms", ""), 1e-9);
    outcome fused = train(",\"execution\":\"fused\""),
            dense = train(",\"execution\":\"fused\"" GRAPHS("\"attn\",\"mlp\""));
    less("a dense step with layers in graphs", dense.ms, fused.ms);
    golden_near("a step with layers that run again",
                train(",\"execution\":\"fused\",\"recompute\":\"full\"" GRAPHS("\"attn\"")).ms,
                train(",\"execution\":\"fused\",\"recompute\":\"full\"").ms, 1e-9);
}

/* Processes that exchange tokens wait for the slowest: more of them, longer. Without experts nobody does. */
static double slowest_ms(const char *model, int ep)
{
    return golden_value(
        "host_ms",
        "{\"task\":\"train\",\"model\":\"%s\",\"gpu\":\"h100_sxm\",\"batch\":1,\"seq\":1024,"
        "\"execution\":\"fused\",\"stack\":{\"base\":\"megatron\",\"traits\":{\"gradient_hooks\":false}},"
        "\"parallel\":{\"dp\":32,\"ep\":%d,\"zero\":1}}",
        model, ep);
}

static void the_slowest_process(void **state)
{
    (void)state;
    double alone = slowest_ms("qwen3-30b-a3b", 1), eight = slowest_ms("qwen3-30b-a3b", 8),
           all = slowest_ms("qwen3-30b-a3b", 32);
    golden_holds(eight > 1.15 * alone && all > 1.05 * eight && all < 1.6 * alone, "hosts of 1, 8, 32: %g %g %g ms",
                 alone, eight, all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(modules_in_graphs),
        cmocka_unit_test(the_slowest_process),
    };
    return cmocka_run_group_tests(tests, golden_open, golden_close);
}

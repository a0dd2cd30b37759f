/* What a stack does where the request leaves it open: Megatron's formats of gradients, and Megatron of 2021. */
#include "layout_models.h"
#include "shipped_predictor.h"

#include "timeline/states.h"

static ft_workload work_in(ft_dtype dtype, ft_execution execution)
{
    ft_workload w = train_work(1, 2048);
    w.dtype = dtype;
    w.execution = execution;
    return w;
}

static void gradients_travel_as_the_recipes_say(void **state)
{
    (void)state;
    static const struct {
        ft_dtype dtype;
        ft_execution execution;
        int zero;
        double asked, bytes;
    } cases[] = {
        {FT_BF16, FT_RUN_FUSED, 0, 0, 4}, {FT_BF16, FT_RUN_FUSED, 1, 0, 4}, {FT_BF16, FT_RUN_FUSED, 3, 0, 2},
        {FT_FP8, FT_RUN_FUSED, 0, 0, 2},  {FT_FP4, FT_RUN_FUSED, 1, 0, 2},  {FT_FP16, FT_RUN_FUSED, 0, 0, 2},
        {FT_FP32, FT_RUN_FUSED, 0, 0, 4}, {FT_FP8, FT_RUN_FUSED, 0, 4, 4},  {FT_BF16, FT_RUN_FUSED, 0, 2, 2},
        {FT_FP8, FT_RUN_EAGER, 0, 0, 4},  {FT_FP16, FT_RUN_EAGER, 1, 0, 2}, {FT_FP8, FT_RUN_COMPILE, 3, 0, 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ft_workload w = work_in(cases[i].dtype, cases[i].execution);
        ft_parallel p = layout_of(1, 1, 1, 1, 8);
        p.zero = cases[i].zero;
        p.reduce_bytes = cases[i].asked;
        if (ft__ranks_reduce_bytes(&p, &w) != cases[i].bytes)
            fail_msg("case %d: %g bytes", (int)i, ft__ranks_reduce_bytes(&p, &w));
    }
    /* DDP's buckets have the parameters' format; nanotron's hook, which sums in fp32, is for bf16. */
    ft_workload bf16 = work_in(FT_BF16, FT_RUN_EAGER);
    ft_parallel data = layout_of(1, 1, 1, 1, 8);
    assert_true(ft__ranks_reduce_bytes(&data, &bf16) == 4);
    ft_workload pure = work_in(FT_FP16, FT_RUN_FUSED);
    pure.master_weights = false;
    ft_parallel p = layout_of(1, 1, 1, 1, 8);
    assert_true(ft__ranks_reduce_bytes(&p, &pure) == 2);
}

static void compiled_graphs_wait_for_keys(void **state)
{
    (void)state;
    static const struct {
        ft_context_kind kind;
        ft_execution execution;
        double left;
    } cases[] = {
        {FT_CONTEXT_RING, FT_RUN_FUSED, 0.25},       {FT_CONTEXT_RING, FT_RUN_COMPILE, 0.25},
        {FT_CONTEXT_ULYSSES, FT_RUN_FUSED, 0},       {FT_CONTEXT_GATHER, FT_RUN_FUSED, 0},
        {FT_CONTEXT_PYTORCH, FT_RUN_EAGER, 0.75},    {FT_CONTEXT_PYTORCH, FT_RUN_COMPILE, -1},
        {FT_CONTEXT_PYTORCH, FT_RUN_CUDA_GRAPH, -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ft_workload w = work_in(FT_BF16, cases[i].execution);
        ft_parallel p = layout_of(1, 1, 4, 1, 1);
        p.context = cases[i].kind;
        if (ft__ranks_attention_left(&p, &w) != cases[i].left)
            fail_msg("case %d: %g", (int)i, ft__ranks_attention_left(&p, &w));
    }
}

static ft_memory memory_of(ft_dtype dtype, int zero, double asked, double *elements)
{
    ft_arena *arena = ft__arena_new(0);
    ft_arch arch = open_model("llama-3.2-1b");
    ft_workload w = work_in(dtype, FT_RUN_FUSED);
    w.seq = 64; /* so that the update is the fullest moment */
    ft_device device = limit_device("h100_sxm");
    ft_parallel p = layout_of(1, 1, 1, 1, 8);
    p.zero = zero;
    p.reduce_bytes = asked;
    ft_ranks r = {.arch = &arch, .work = &w, .parallel = &p, .device = &device, .arena = arena};
    ft_memory m;
    ft_error err;
    int64_t worst;
    if (ft__ranks_memory(&r, &m, &worst, &err) != FT_OK) fail_msg("%s", err.message);
    ft_stage s = rank_of(&arch, &w, &p, 0, arena);
    *elements = s.dense;
    m.peak_bytes -= ft__stand_ins(s.g, &w); /* which the table does not count */
    ft__arch_release(&arch);
    ft__arena_free(arena);
    return m;
}

/* Megatron-LM's table (dist_optimizer.md), bytes per parameter over d ranks: 18 and 6 + 12/d with gradients in fp32, 20
 * and 4 + 16/d with gradients in 16 bits, of which the update makes fp32 ones for itself
 * (the fullest moment where these are whole). */
static void memory_follows_the_format(void **state)
{
    (void)state;
    static const struct {
        ft_dtype dtype;
        int zero;
        double asked, kept, all;
    } cases[] = {
        {FT_BF16, 0, 0, 18, 0},           {FT_BF16, 1, 0, 6 + 12.0 / 8, 0}, {FT_FP16, 0, 0, 16, 20},
        {FT_FP16, 1, 0, 4 + 12.0 / 8, 0}, {FT_FP8, 0, 0, 16, 20},           {FT_FP8, 1, 0, 4 + 12.0 / 8, 0},
        {FT_FP16, 0, 4, 18, 0},           {FT_BF16, 1, 2, 4 + 12.0 / 8, 0}, {FT_BF16, 0, 2, 16, 20},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double elements;
        ft_memory m = memory_of(cases[i].dtype, cases[i].zero, cases[i].asked, &elements);
        double kept = (m.weights_bytes + m.gradients_bytes + m.optimizer_bytes) / elements;
        double all = (m.peak_bytes - m.activations_bytes) / elements;
        if (fabs(kept / cases[i].kept - 1) > 0.01 || (cases[i].all > 0 && fabs(all / cases[i].all - 1) > 0.01))
            fail_msg("case %d: %.2f kept, %.2f in all; %.2f and %.2f expected", (int)i, kept, all, cases[i].kept,
                     cases[i].all);
    }
}

static const ft_stack *named(const char *name)
{
    const ft_stack *stack = NULL;
    ft_error err;
    if (ft__stack_find(name, &stack, &err) != FT_OK) fail_msg("%s", err.message);
    return stack;
}

static void a_stack_of_2021_is_named_and_never_guessed(void **state)
{
    (void)state;
    ft_workload now = work_in(FT_FP16, FT_RUN_FUSED), then = now;
    then.stack = named("megatron_2021");
    ft_parallel p = layout_of(8, 4, 1, 1, 4);
    p.schedule = FT_INTERLEAVED;
    p.vpp = 2;
    assert_string_equal(ft__ranks_stack(&p, &now)->name, "megatron_recipe");
    assert_false(ft__ranks_overlaps(&p, &then));
    assert_true(ft__ranks_overlaps(&p, &now));
    assert_true(ft__ranks_waits_for_sends(&p, &then));
    assert_false(ft__ranks_waits_for_sends(&p, &now));
    ft_parallel asked = p; /* who says what it does is taken at their word */
    asked.overlap = asked.overlap_sends = true;
    assert_true(ft__ranks_overlaps(&asked, &then));
    assert_false(ft__ranks_waits_for_sends(&asked, &then));
    asked = p;
    asked.no_overlap = asked.wait_sends = true;
    assert_false(ft__ranks_overlaps(&asked, &now));
    assert_true(ft__ranks_waits_for_sends(&asked, &now));
    ft_parallel alone = layout_of(8, 1, 1, 1, 4); /* PyTorch's DDP */
    assert_true(ft__ranks_overlaps(&alone, &then));
}

/* A number format says nothing of the software. */
static void formats_choose_no_stack(void **state)
{
    (void)state;
    static const ft_execution ways[] = {FT_RUN_EAGER, FT_RUN_FUSED, FT_RUN_COMPILE, FT_RUN_CUDA_GRAPH, FT_RUN_IDEAL};
    for (size_t e = 0; e < sizeof ways / sizeof *ways; e++)
        for (int zero = 0; zero <= 3; zero++)
            for (int masters = 0; masters < 2; masters++) {
                ft_parallel p = layout_of(2, 1, 1, 1, 8);
                p.zero = zero;
                ft_workload first = work_in(FT_BF16, ways[e]);
                first.master_weights = masters;
                for (int d = 0; d < FT_DTYPE_COUNT; d++) {
                    ft_workload w = first;
                    w.dtype = (ft_dtype)d;
                    assert_ptr_equal(ft__ranks_stack(&p, &w), ft__ranks_stack(&p, &first));
                }
            }
}

static double step_of(const ft_parallel *p, const char *stack, double *gathered)
{
    ft_arena *arena = ft__arena_new(0);
    ft_memo *memo = ft__memo_new();
    ft_arch arch = open_model("gpt3-6.7b");
    ft_workload w = work_in(FT_FP16, FT_RUN_FUSED);
    w.stack = stack ? named(stack) : NULL;
    w.accumulate = 16;
    ft_device device = limit_device("a100_sxm_80gb");
    ft_cluster c = {.tiers = 2, .gpus_per_node = 8, .nodes = 16, .gpus = 128};
    c.tier[0] = (ft_tier){.fabric = FT_NVLINK, .gbps = 300, .efficiency = 0.8, .gpus = 8, .oversubscription = 1};
    c.tier[1] = (ft_tier){.fabric = FT_INFINIBAND, .gbps = 25, .efficiency = 0.9, .gpus = 128, .oversubscription = 1};
    c.tier[0].switched = c.tier[1].switched = true;
    ft_ranks r = {.arch = &arch,
                  .work = &w,
                  .parallel = p,
                  .cluster = &c,
                  .device = &device,
                  .predictor = predictor,
                  .quantile = 0.9,
                  .memo = memo,
                  .arena = arena};
    ft_step step;
    ft_ranked details;
    ft_error err;
    if (ft__ranks_forecast(&r, &step, &details, NULL, &err) != FT_OK) fail_msg("%s", err.message);
    *gathered = details.gather_received_ms;
    ft__memo_free(memo);
    ft__arch_release(&arch);
    ft__arena_free(arena);
    return step.step_ms;
}

static void a_step_of_2021_takes_longer(void **state)
{
    (void)state;
    double gathered, none;
    ft_parallel p = layout_of(8, 4, 1, 1, 4);
    p.schedule = FT_INTERLEAVED;
    p.vpp = 2;
    double then = step_of(&p, "megatron_2021", &gathered), now = step_of(&p, NULL, &none);
    assert_true(gathered > 0 && none == 0);
    assert_true(then > 1.02 * now);
    p.overlap = true; /* each choice costs something */
    double beside = step_of(&p, "megatron_2021", &gathered);
    assert_true(beside < then);
    p.overlap_sends = true;
    assert_true(step_of(&p, "megatron_2021", &gathered) < beside);
}

static double stand_ins_of(const char *model, const ft_workload *w, int64_t tp, int64_t pp)
{
    ft_arena *arena = ft__arena_new(0);
    ft_arch arch = open_model(model);
    ft_parallel p = layout_of(tp, pp, 1, 1, 1);
    double bytes = ft__stand_ins(rank_of(&arch, w, &p, 0, arena).g, w);
    ft__arch_release(&arch);
    ft__arena_free(arena);
    return bytes;
}

/* What autograd gets for gradients that are added up already: a tensor for every shape of a layer's weights and the
 * head's, however many layers there are. */
static void stand_ins_are_one_of_each_shape(void **state)
{
    (void)state;
    const double h = 4096, ffn = 14336, kv = 1024, vocab = 128256;
    const double layer = 2 * h * h + 2 * h * kv + 3 * h * ffn;
    ft_workload w = work_in(FT_BF16, FT_RUN_FUSED);
    assert_true(stand_ins_of("llama-3-8b", &w, 1, 1) == 2 * (layer + vocab * h));
    assert_true(stand_ins_of("llama-3-8b", &w, 8, 1) == 2 * (layer + vocab * h) / 8);
    assert_true(stand_ins_of("llama-3-8b", &w, 1, 4) == 2 * layer); /* the head is elsewhere */
    /* Mixtral: one expert's two weights, a router of eight, 32000 words. */
    assert_true(stand_ins_of("mixtral-8x7b", &w, 1, 1) ==
                2 * (2 * h * h + 2 * h * kv + 3 * h * ffn + 8 * h + 32000 * h));
    w.master_weights = false; /* no sums to add to */
    assert_true(stand_ins_of("llama-3-8b", &w, 1, 1) == 0);
    w = work_in(FT_BF16, FT_RUN_EAGER);
    assert_true(stand_ins_of("llama-3-8b", &w, 1, 1) == 0);
    w = work_in(FT_FP16, FT_RUN_FUSED);
    assert_true(stand_ins_of("llama-3-8b", &w, 1, 1) == 2 * (layer + vocab * h));
    w.stack = named("megatron_2021"); /* before Transformer Engine */
    assert_true(stand_ins_of("llama-3-8b", &w, 1, 1) == 0);
}

/* They stay, and no gradient comes beside them: going back through a layer, a rank holds them and the libraries'. */
static void stand_ins_stay(void **state)
{
    (void)state;
    double peak[2];
    for (int i = 0; i < 2; i++) {
        ft_arena *arena = ft__arena_new(0);
        ft_arch arch = open_model("llama-3-8b");
        ft_workload w = work_in(FT_BF16, FT_RUN_FUSED);
        w.seq = 16384;
        if (i) w.stack = named("megatron_2021"); /* as many bytes otherwise */
        ft_device device = limit_device("h100_sxm");
        ft_parallel p = layout_of(1, 4, 1, 1, 2);
        p.zero = 1;
        p.reduce_bytes = 4;
        ft_ranks r = {.arch = &arch, .work = &w, .parallel = &p, .device = &device, .arena = arena};
        ft_memory m;
        ft_error err;
        int64_t worst;
        w.accumulate = 8;
        if (ft__ranks_memory(&r, &m, &worst, &err) != FT_OK) fail_msg("%s", err.message);
        assert_int_equal(worst, 0);
        peak[i] = m.peak_bytes;
        ft__arch_release(&arch);
        ft__arena_free(arena);
    }
    const double h = 4096, ffn = 14336, kv = 1024, layer = 2 * h * h + 2 * h * kv + 3 * h * ffn;
    assert_true(fabs(peak[0] - peak[1] - 2 * layer) < 2 * h * ffn + 1e6); /* less the gradient that comes and goes */
    assert_true(peak[0] > peak[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_travel_as_the_recipes_say),
        cmocka_unit_test(compiled_graphs_wait_for_keys),
        cmocka_unit_test(stand_ins_are_one_of_each_shape),
        cmocka_unit_test(stand_ins_stay),
        cmocka_unit_test(memory_follows_the_format),
        cmocka_unit_test(a_stack_of_2021_is_named_and_never_guessed),
        cmocka_unit_test(formats_choose_no_stack),
        cmocka_unit_test(a_step_of_2021_takes_longer),
    };
    return cmocka_run_group_tests(tests, open_predictor, close_predictor);
}

/* A step on many GPUs: what it exchanges in closed form, what its ranks hold, and how long its forecast takes. */
#include "ranks_rig.h"

/* GPUs that share nothing but a slow network: its bytes are all that an exchange costs. */
static ft_cluster slow_network(int64_t gpus, double gbps)
{
    ft_cluster c = {.tiers = 2, .gpus_per_node = 1, .nodes = gpus, .gpus = gpus};
    c.tier[0] = (ft_tier){.fabric = FT_NVLINK, .gbps = 300, .efficiency = 1, .gpus = 1, .oversubscription = 1};
    c.tier[1] = (ft_tier){.fabric = FT_INFINIBAND, .gbps = gbps, .efficiency = 1, .gpus = gpus, .oversubscription = 1};
    c.tier[1].switched = true;
    return c;
}

static void begin(rig *r, const char *model)
{
    *r = (rig){.arena = ft__arena_new(0),
               .memo = ft__memo_new(),
               .device = limit_device("h100_sxm"),
               .arch = open_model(model),
               .work = train_work(1, 2048),
               .parallel = layout_of(1, 1, 1, 1, 1)};
    r->cluster = connected_nodes(16384);
}

static void close_to(double found, double expected, double within, const char *what)
{
    if (fabs(found / expected - 1) > within) fail_msg("%s: %.4g, expected %.4g", what, found, expected);
}

/* -- volumes ----------------------------------------------------------------------------------- */

/* An all-reduce sends 2 (n-1)/n of its bytes, ZeRO-3 three times (n-1)/n of the parameters (Rajbhandari et al.). */
static void data_parallel_volumes(void **state)
{
    (void)state;
    rig r;
    begin(&r, "llama-3.2-1b");
    for (int64_t n = 2; n <= 64; n *= 4) {
        double ring = ((double)n - 1) / (double)n, gb = 1e-9;
        r.cluster = slow_network(n, 0.5);
        r.parallel = layout_of(1, 1, 1, 1, n);
        forecast_sound(&r);
        double elements = r.ranked.stages[0].dense;
        double ms = elements * gb / 0.5 * 1e3;
        close_to(r.step.axis_ms[FT_AXIS_DATA], 2 * ring * 4 * ms, 0.05, "ddp");
        assert_true(r.step.comm_exposed_ms > 0.8 * r.step.comm_ms); /* nothing hides on such a network */
        r.parallel.zero = 1; /* gradients scattered in fp32, parameters gathered in bf16 */
        forecast_sound(&r);
        close_to(r.step.axis_ms[FT_AXIS_DATA], ring * (4 + 2) * ms, 0.05, "zero 1");
        r.parallel.zero = 3;
        forecast_sound(&r);
        close_to(r.step.axis_ms[FT_AXIS_DATA], 3 * ring * 2 * ms, 0.05, "zero 3");
        r.parallel.keep_gathered = true;
        forecast_sound(&r);
        close_to(r.step.axis_ms[FT_AXIS_DATA], 2 * ring * 2 * ms, 0.05, "zero 3, parameters kept");
        r.parallel.keep_gathered = false;
        r.parallel.zero = 0;
        r.work.accumulate = 4; /* once per step, however many micro-batches */
        forecast_sound(&r);
        close_to(r.step.axis_ms[FT_AXIS_DATA], 2 * ring * 4 * ms, 0.05, "ddp, accumulated");
        r.work.accumulate = 1;
    }
    end(&r);
}

/* On a network that hides nothing a step lasts as long as its kernels and its exchanges: tables at both ends of the
 * model are gathered as often as they are counted, and nothing after the last of a pass. */
static void nothing_is_gathered_for_nobody(void **state)
{
    (void)state;
    rig r;
    begin(&r, "llama-3-8b");
    r.work.execution = FT_RUN_IDEAL;
    r.cluster = slow_network(4, 0.5);
    r.parallel = layout_of(1, 1, 1, 1, 4);
    r.parallel.zero = 3;
    for (int64_t micros = 1; micros <= 4; micros *= 4) {
        r.work.accumulate = micros;
        forecast_sound(&r);
        close_to(r.step.step_ms, r.step.busy_ms + r.step.comm_ms, 0.01, "kernels and exchanges");
    }
    r.parallel.zero = 1; /* updated parameters, beside the next forward pass or before it */
    forecast_sound(&r);
    double before = r.step.step_ms;
    r.parallel.gather_ahead = true;
    forecast_sound(&r);
    assert_true(r.step.step_ms < before);
    end(&r);
}

/* FSDP in a pipeline: parameters once, gradients once, however many micro-batches, and these with nothing beside
 * them. */
static void stages_exchange_once(void **state)
{
    (void)state;
    rig r;
    begin(&r, "llama-3.2-1b");
    r.work.execution = FT_RUN_COMPILE;
    r.parallel = layout_of(1, 2, 1, 1, 4);
    r.parallel.zero = 3;
    r.cluster = slow_network(8, 5);
    for (int64_t micros = 2; micros <= 8; micros *= 4) {
        r.work.accumulate = micros;
        forecast_sound(&r);
        const ft_stage *first = &r.ranked.stages[0], *last = &r.ranked.stages[1];
        bool late = first->forward_ms + first->backward_ms < last->forward_ms + last->backward_ms;
        const ft_stage *slow = late ? last : first;
        double ms = slow->dense * 1e-9 / 5 * 1e3, ring = 0.75;
        close_to(r.step.axis_ms[FT_AXIS_DATA], ring * (2 + 2) * ms, 0.05, "gathered and reduced once");
        close_to(slow->last_backward_ms - slow->backward_ms, ring * 2 * ms, 0.05,
                 "reduced after the last backward pass");
        assert_true(slow->first_forward_ms > slow->forward_ms);
        double step = r.step.step_ms;
        r.parallel.drop_gathered = true;
        forecast_sound(&r);
        close_to(r.step.axis_ms[FT_AXIS_DATA], ring * (2 + 4 * (double)micros) * ms, 0.05, "gathered again and again");
        assert_true(r.step.step_ms > step);
        r.parallel.drop_gathered = false;
    }
    end(&r);
}

/* Shards of eight ranks, eight copies: a scattering inside, a sum over the copies of an eighth. */
static void hybrid_shards_cross_fewer_ranks(void **state)
{
    (void)state;
    rig r;
    begin(&r, "llama-3.2-1b");
    r.cluster = slow_network(64, 0.5);
    r.parallel = layout_of(1, 1, 1, 1, 64);
    r.parallel.zero = 3;
    r.parallel.shard = 8;
    forecast_sound(&r);
    double ms = r.ranked.stages[0].dense * 2e-9 / 0.5 * 1e3, inside = 7.0 / 8;
    close_to(r.step.axis_ms[FT_AXIS_DATA], (3 * inside + 2 * inside / 8) * ms, 0.05, "hybrid");
    double kept = ft__ranks_kept(&r.parallel, 1, 0);
    assert_true(kept == 1.0 / 8);
    end(&r);
}

static void overlap_hides_what_there_is_time_for(void **state)
{
    (void)state;
    rig r;
    begin(&r, "llama-3-8b");
    r.work.seq = 4096;
    /* Persistent products (H100) lose more beside an exchange than those whose blocks are tiles. */
    static const struct {
        const char *gpu;
        double least, most;
    } hides[] = {{"a100_sxm_80gb", 0.7, 1}, {"h100_sxm", 0.35, 0.7}};
    for (size_t i = 0; i < sizeof hides / sizeof *hides; i++) {
        r.device = limit_device(hides[i].gpu);
        r.parallel = layout_of(1, 1, 1, 1, 64);
        forecast_sound(&r);
        double beside = r.step.step_ms, comm = r.step.axis_ms[FT_AXIS_DATA];
        r.parallel.no_overlap = true;
        forecast_sound(&r);
        double hidden = (r.step.step_ms - beside) / comm;
        assert_true(hidden > hides[i].least && hidden < hides[i].most);
    }
    r.parallel.no_overlap = false;
    r.parallel.zero = 1;
    forecast_sound(&r);
    double after = r.step.step_ms;
    r.parallel.gather_ahead = true; /* parameters come beside the next forward pass */
    forecast_sound(&r);
    assert_true(r.step.step_ms < after);
    end(&r);
}

/* Sharded gradients leave with every micro-batch. A network that cannot keep up sets the pace, however long the row:
 * no step is shorter than what its data ranks exchange one after the other, nor longer than that and its kernels. */
static void every_micro_batch_sends_its_gradients(void **state)
{
    (void)state;
    rig r;
    begin(&r, "llama-3.2-1b");
    r.cluster = slow_network(16, 0.5);
    for (int kind = 2; kind <= 4; kind++)
        for (int64_t micros = 1; micros <= 64; micros *= 2) {
            int zero = kind < 3 ? 2 : 3;
            r.parallel = layout_of(1, 1, 1, 1, 16);
            r.parallel.zero = zero;
            r.parallel.shard = kind == 4; /* nothing to gather: copies alone */
            r.work.accumulate = micros;
            forecast_sound(&r);
            double beside = r.step.step_ms, sent = r.step.axis_ms[FT_AXIS_DATA];
            double most = (zero == 3 ? 1.2 : 1.02) * sent + 1.1 * r.step.busy_ms; /* one gather of each pass is early */
            if (beside < 0.99 * sent || beside > most)
                fail_msg("zero %d, %d micro-batches: a step of %.0f ms sends %.0f", zero, (int)micros, beside, sent);
            r.parallel.no_overlap = true;
            forecast_sound(&r);
            if (r.step.step_ms < (zero == 3 ? 0.95 : 0.99) * beside || r.step.step_ms > most)
                fail_msg("zero %d, %d micro-batches, sent after each: %.0f ms, beside it %.0f", zero, (int)micros,
                         r.step.step_ms, beside);
        }
    r.work.accumulate = 1;
    end(&r);
}

/* Also where the host sets the pace of a micro-batch alone: while it waits for the network it runs ahead. */
static void a_host_that_runs_ahead_does_not_outrun_the_wire(void **state)
{
    (void)state;
    rig r;
    begin(&r, "smollm2-135m");
    r.work.seq = 128;
    r.parallel = layout_of(1, 1, 1, 1, 16);
    r.parallel.zero = 2;
    for (double gbps = 1; gbps <= 64; gbps *= 2) {
        r.cluster = slow_network(16, gbps);
        r.work.accumulate = 64;
        forecast_sound(&r);
        if (r.step.step_ms < 0.999 * r.step.axis_ms[FT_AXIS_DATA])
            fail_msg("%g GB/s: a step of %.1f ms sends for %.1f", gbps, r.step.step_ms, r.step.axis_ms[FT_AXIS_DATA]);
    }
    end(&r);
}

/* -- memory ------------------------------------------------------------------------------------ */

/* Bytes per parameter with Adam in mixed precision: 18 on every rank, 6 + 12/d with a distributed optimizer, 2 + 16/d
 * and 18/d with gradients and parameters sharded too (Megatron-LM's documentation; Rajbhandari et al. 2020). */
static void states_are_sharded(void **state)
{
    (void)state;
    rig r;
    begin(&r, "llama-3.2-1b");
    double d = 8;
    static const double whole[] = {18, 6, 2, 0}, part[] = {0, 12, 16, 18};
    for (int zero = 0; zero <= 3; zero++) {
        r.parallel = layout_of(1, 1, 1, 1, 8);
        r.parallel.zero = zero;
        forecast_sound(&r);
        const ft_memory *m = &r.step.memory;
        double bytes = (m->weights_bytes + m->gradients_bytes + m->optimizer_bytes) / r.ranked.stages[0].dense;
        close_to(bytes, whole[zero] + part[zero] / d, 0.01, "bytes per parameter");
        if (zero == 3) assert_true(m->communication_bytes >= 2 * r.ranked.stages[0].layer_bytes);
    }
    /* Experts are held by fewer ranks. */
    ft_parallel p = layout_of(1, 1, 1, 4, 8);
    p.zero = 1;
    assert_true(ft__ranks_kept(&p, 1, 1) == (1.0 / 8 + 1.0 / 2) / 2);
    end(&r);
}

/* DDP's buckets are a second copy of the gradients; Megatron's are the gradients. Measured: 710 MB more than alone for
 * GPT-2 of 355 M parameters in bf16. */
static void buckets_are_a_second_copy(void **state)
{
    (void)state;
    rig r;
    begin(&r, "gpt2-medium");
    r.work.execution = FT_RUN_EAGER;
    r.work.master_weights = false;
    r.work.seq = 1024;
    r.work.batch = 8;
    double peak[2];
    for (int i = 0; i < 2; i++) {
        r.parallel = layout_of(1, 1, 1, 1, i ? 2 : 1);
        forecast_sound(&r);
        peak[i] = r.step.memory.peak_bytes;
    }
    close_to(peak[1] - peak[0], 709.6e6, 0.02, "DDP's buckets");
    /* In the parameters' format, whatever their sums wait and travel in. */
    r.work.master_weights = true;
    forecast_sound(&r);
    close_to(r.step.memory.communication_bytes, 709.6e6, 0.02, "beside fp32 sums");
    r.parallel.reduce_bytes = 4;
    forecast_sound(&r);
    close_to(r.step.memory.communication_bytes, 709.6e6, 0.02, "reduced in fp32");
    r.work.master_weights = false;
    r.work.autocast = true;
    r.parallel.reduce_bytes = 2;
    forecast_sound(&r);
    close_to(r.step.memory.communication_bytes, 2 * 709.6e6, 0.02, "of fp32 parameters");
    r.work.autocast = false;
    r.parallel.reduce_bytes = 0;
    r.work.execution = FT_RUN_FUSED;
    forecast_sound(&r);
    assert_true(r.step.memory.communication_bytes == 0);
    end(&r);
}

/* Classes, launches and phases of a step are those of all its micro-batches, and add up. */
static void micro_batches_are_all_counted(void **state)
{
    (void)state;
    rig r;
    begin(&r, "llama-3.2-1b");
    double launches[2];
    for (int i = 0; i < 2; i++) {
        r.parallel = layout_of(1, 1, 1, 1, 2);
        r.work.accumulate = i ? 8 : 1;
        forecast_sound(&r);
        double classes = 0, phases = 0;
        for (int c = 0; c < FT_CLASS_COUNT; c++) classes += r.step.class_ms[c];
        for (int p = 0; p < FT_PHASE_COUNT; p++) phases += r.step.phase_ms[p];
        close_to(classes, phases, 1e-9, "classes and phases");
        close_to(classes, r.step.busy_ms, 1e-9, "classes and busy time");
        launches[i] = r.step.launches;
    }
    assert_true(launches[1] > 7 * launches[0] && launches[1] < 8 * launches[0]); /* one update */
    end(&r);
}

/* An update, which draws little, cools a micro-batch once in a step: of a long row the products are as slow as without
 * one. */
static void an_update_rests_the_board_once(void **state)
{
    (void)state;
    rig r;
    begin(&r, "llama-3-8b");
    r.device = limit_device("b200_sxm");
    r.work.seq = 4096;
    r.parallel = layout_of(1, 1, 1, 1, 8);
    r.work.optimizer = FT_NO_OPTIMIZER;
    forecast_sound(&r);
    double never = r.ranked.stages[0].forward_ms;
    r.work.optimizer = FT_ADAMW;
    forecast_sound(&r);
    double once = r.ranked.stages[0].forward_ms;
    r.work.accumulate = 64;
    forecast_sound(&r);
    assert_true(once < 0.98 * never);
    close_to(r.ranked.stages[0].forward_ms, never, 0.01, "a micro-batch of many");
    end(&r);
}

/* Hooks of FSDP set the pace of small layers, and hide behind large ones. */
static void hooks_cost_the_host(void **state)
{
    (void)state;
    rig r;
    begin(&r, "gpt2-medium");
    r.work.execution = FT_RUN_EAGER;
    double host[2], step[2][2];
    for (int large = 0; large < 2; large++)
        for (int zero = 0; zero < 2; zero++) {
            r.work.batch = large ? 64 : 1;
            r.work.seq = large ? 1024 : 256;
            r.parallel = layout_of(1, 1, 1, 1, 2);
            r.parallel.zero = zero ? 3 : 0;
            forecast_sound(&r);
            host[zero] = r.step.host_ms;
            step[large][zero] = r.step.step_ms;
        }
    assert_true(host[1] > 1.6 * host[0]); /* measured: 2.6 times what DDP's step costs the host */
    assert_true(step[0][1] > 1.6 * step[0][0]);
    assert_true(step[1][1] < 1.1 * step[1][0]);
    end(&r);
}

static void early_stages_hold_more(void **state)
{
    (void)state;
    rig r;
    begin(&r, "gpt3-6.7b");
    r.parallel = layout_of(1, 4, 1, 1, 1);
    r.work.accumulate = 16;
    r.work.batch = 4;
    forecast_sound(&r);
    assert_int_equal(r.step.worst_stage, 0);
    double one = r.step.memory.activations_bytes;
    assert_true(r.ranked.pipe.in_flight[0] == 4);
    close_to(one, 4 * r.ranked.stages[0].saved_bytes, 0.01, "four micro-batches");
    r.parallel.schedule = FT_GPIPE;
    forecast_sound(&r);
    assert_true(r.ranked.pipe.in_flight[0] == 16);
    assert_int_equal(r.step.worst_stage, 3); /* sixteen micro-batches' logits */
    assert_true(r.step.memory.activations_bytes > 4 * one);
    end(&r);
}

/* Sharded gradients do not pile up: where a step of one micro-batch is fullest they are as good as gone, and what is
 * left is what a step of two holds, less the sum that waits there. */
static void the_peak_is_looked_for_after_sharding(void **state)
{
    (void)state;
    rig r;
    begin(&r, "llama-3-8b");
    r.work.master_weights = false; /* gradients are made anew in every step */
    r.work.recompute = FT_RECOMPUTE_FULL;
    r.work.seq = 8192; /* logits outweigh the head's gradient: both are fullest at the loss */
    static const struct {
        int zero, shard;
    } ways[] = {{2, 0}, {3, 0}, {2, 8}, {3, 8}};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        r.parallel = layout_of(1, 1, 1, 1, 64);
        r.parallel.zero = ways[i].zero;
        r.parallel.shard = ways[i].shard;
        r.work.accumulate = 2;
        forecast_sound(&r);
        ft_memory two = r.step.memory;
        r.work.accumulate = 1;
        forecast_sound(&r);
        ft_memory one = r.step.memory;
        assert_true(one.activations_bytes > 0.5 * two.activations_bytes);
        assert_true(one.peak_bytes >= 0.99 * (two.peak_bytes - two.gradients_bytes));
        assert_true(one.peak_bytes <= 1.001 * two.peak_bytes);
        assert_true(one.gradients_bytes <= two.gradients_bytes * 1.001);
        double parts = one.weights_bytes + one.gradients_bytes + one.optimizer_bytes + one.activations_bytes +
                       one.temporary_bytes + one.kv_cache_bytes + one.communication_bytes;
        close_to(parts, one.peak_bytes, 1e-9, "the parts of the peak");
    }
    end(&r);
}

/* The update of a sharded model works on a shard, and by then no micro-batch is in flight. */
static void the_update_holds_no_activations(void **state)
{
    (void)state;
    rig r;
    begin(&r, "llama-3.2-1b");
    r.work.optimizer = FT_ADAMW_FOREACH; /* a copy of all states while it updates them */
    r.work.master_weights = false;
    r.work.seq = 256;
    r.parallel = layout_of(1, 1, 1, 1, 64);
    forecast_sound(&r);
    double whole = r.step.memory.peak_bytes, waiting = r.step.memory.activations_bytes;
    assert_int_equal(r.step.memory.peak_phase, FT_UPDATE);
    r.parallel.zero = 1;
    forecast_sound(&r);
    assert_int_equal(r.step.memory.peak_phase, FT_BACKWARD);
    assert_true(r.step.memory.peak_bytes < whole - 5 * r.ranked.stages[0].dense); /* 4 of states, 2 of the copy */
    r.parallel = layout_of(1, 4, 1, 1, 1);
    r.work.accumulate = 16;
    forecast_sound(&r);
    const ft_stage *s = &r.ranked.stages[0];
    assert_true(s->saved_bytes > 10 * waiting); /* what the backward pass waits for, though the peak is elsewhere */
    if (s->held.peak_phase == FT_UPDATE) assert_true(s->held.activations_bytes < s->saved_bytes);
    end(&r);
}

/* -- one GPU and many -------------------------------------------------------------------------- */

/* A GPU that exchanges nothing takes as long among others as alone; one that sends gradients no less. */
static void company_makes_nobody_faster(void **state)
{
    (void)state;
    static const char *const models[] = {"gpt2", "resnet-18", "llama-3.2-1b"};
    static const ft_execution ways[] = {FT_RUN_EAGER, FT_RUN_FUSED, FT_RUN_COMPILE, FT_RUN_CUDA_GRAPH};
    for (size_t m = 0; m < 3; m++)
        for (size_t w = 0; w < 4; w++)
            for (int kind = 0; kind < 4; kind++) {
                rig r;
                begin(&r, models[m]);
                r.work.seq = kind == 3 ? 2048 : 512;
                r.work.execution = ways[w];
                r.work.task = kind == 0 ? FT_DECODE : FT_TRAIN;
                r.work.accumulate = kind == 2 ? 6 : 1;
                if (kind == 0 && m == 1) r.work.task = FT_FORWARD_PASS;
                ft_graph *g = NULL;
                ft_step alone;
                assert_int_equal(ft__model_graph(&r.arch, &r.work, r.arena, &g, NULL), FT_OK);
                assert_int_equal(
                    ft__step_forecast(g, &r.work, &r.device, predictor, 0.9, r.memo, r.arena, &alone, NULL), FT_OK);
                r.parallel = layout_of(1, 1, 1, 1, 2);
                forecast_sound(&r);
                /* DDP's hooks, 28 us a parameter, are much beside compiled steps of 2 and 6 ms. */
                double most = ways[w] >= FT_RUN_COMPILE ? 1.9 : 1.35;
                bool silent = kind == 0 && fabs(r.step.step_ms / alone.step_ms - 1) > 1e-4;
                if (silent || r.step.step_ms < alone.step_ms * (1 - 1e-3) || r.step.step_ms > most * alone.step_ms)
                    fail_msg("%s, way %d, kind %d: %.4f ms, alone %.4f", models[m], (int)w, kind, r.step.step_ms,
                             alone.step_ms);
                end(&r);
            }
}

/* What the host takes is no exchange's. */
static void waiting_for_the_host_is_not_exposed_exchange(void **state)
{
    (void)state;
    rig r;
    begin(&r, "gpt2");
    r.work.execution = FT_RUN_EAGER;
    r.work.seq = 64; /* the GPU idles */
    r.parallel = layout_of(1, 1, 1, 1, 8);
    r.parallel.zero = 3;
    forecast_sound(&r);
    assert_true(r.step.idle_ms > 0.5 * r.step.step_ms);
    assert_true(r.step.comm_exposed_ms < 0.7 * r.step.comm_ms);
    end(&r);
}

/* The answer to what does not fit: its time, its worst rank, and what fits. */
static void what_does_not_fit_gets_a_remedy(void **state)
{
    (void)state;
    rig r;
    begin(&r, "llama-3-70b");
    r.parallel = layout_of(8, 1, 1, 1, 8);
    r.work.batch = 1;
    r.work.seq = 4096;
    r.work.accumulate = 8;
    forecast_sound(&r);
    assert_false(r.step.memory.fits);
    assert_true(r.step.step_ms > 0);
    assert_string_equal(r.step.memory.remedy, "zero 2");
    r.parallel = layout_of(1, 1, 1, 1, 64);
    r.work.accumulate = 1;
    forecast_sound(&r);
    assert_false(r.step.memory.fits);
    assert_string_equal(r.step.memory.remedy, "zero 3, recompute full");
    r.parallel = layout_of(8, 4, 1, 1, 2);
    r.parallel.zero = 1;
    r.work.accumulate = 16;
    forecast_sound(&r);
    assert_true(r.step.memory.fits);
    assert_string_equal(r.step.memory.remedy, "");
    /* Nothing helps on two GPUs: more of them do. */
    r.parallel = layout_of(1, 2, 1, 1, 1);
    forecast_sound(&r);
    assert_false(r.step.memory.fits);
    assert_string_equal(r.step.memory.remedy, "32 GPUs: tp 8, pp 4");
    /* Shards that the layout cannot keep change with it, in words too. */
    r.parallel = layout_of(1, 1, 1, 1, 64);
    r.parallel.zero = 3;
    r.parallel.shard = 64;
    r.work.recompute = FT_RECOMPUTE_FULL;
    r.work.seq = 32768;
    forecast_sound(&r);
    assert_true(r.step.memory.verdict != FT_FIT_YES);
    const char *dp = strstr(r.step.memory.remedy, "dp "), *shard = strstr(r.step.memory.remedy, "shard ");
    if (!dp || !shard || atoi(dp + 3) != atoi(shard + 6)) fail_msg("%s", r.step.memory.remedy);
    end(&r);
    /* Experts that every rank has its own of are shared out by more ranks alone. */
    begin(&r, "gpt-oss-120b");
    r.work.master_weights = false;
    r.work.accumulate = 2;
    r.parallel = layout_of(1, 1, 1, 8, 8);
    forecast_sound(&r);
    assert_false(r.step.memory.fits);
    int gpus = 0;
    assert_int_equal(sscanf(r.step.memory.remedy, "%d GPUs: ", &gpus), 1);
    assert_true(gpus == 16 || gpus == 32);
    end(&r);
}

/* -- stages ------------------------------------------------------------------------------------ */

static void equal_stages_are_one_and_bubbles_exact(void **state)
{
    (void)state;
    rig r;
    begin(&r, "llama-3.1-405b");
    r.parallel = layout_of(8, 16, 1, 1, 1);
    r.parallel.sp = true;
    r.work.accumulate = 64;
    forecast_sound(&r);
    int64_t graphs = 1;
    for (int64_t s = 1; s < 16; s++) graphs += r.ranked.stages[s].g != r.ranked.stages[s - 1].g;
    assert_true(graphs <= 4); /* 126 layers: eight on fourteen of the stages, seven on two */
    /* The first and the last stage take the longest or near it: bubbles are the way there and back. */
    double slowest = 0, way = 0;
    for (int64_t s = 0; s < 16; s++) {
        double all = r.ranked.stages[s].forward_ms + r.ranked.stages[s].backward_ms;
        slowest = fmax(slowest, all);
        way += all;
    }
    assert_true(r.ranked.pipe.total_ms >= way + 63 * slowest - slowest - 1e-6);
    assert_true(r.ranked.pipe.total_ms < 1.05 * (way + 63 * slowest));
    end(&r);
}

/* The rank whose experts are liked most sets the pace, unless it may drop what is too much. */
static void uneven_experts_take_longer(void **state)
{
    (void)state;
    rig r;
    begin(&r, "mixtral-8x7b");
    r.parallel = layout_of(1, 1, 1, 8, 8);
    forecast_sound(&r);
    double even = r.step.step_ms, sent = r.step.axis_ms[FT_AXIS_EXPERT], flops = r.step.model_flops;
    r.parallel.skew = 1.5;
    forecast_sound(&r);
    assert_true(r.step.step_ms > 1.15 * even && r.step.step_ms < 1.5 * even);
    assert_true(r.step.axis_ms[FT_AXIS_EXPERT] > 1.3 * sent);
    assert_true(r.step.model_flops == flops);
    end(&r);
}

/* Exchanges with experts run beside another micro-batch: with nothing else changed they are exposed less, however long
 * they are, the parts are still the whole, and a rank holds one micro-batch more. */
static void experts_exchange_beside_other_micro_batches(void **state)
{
    (void)state;
    static const struct {
        int64_t pp, vpp;
        ft_schedule schedule;
    } ways[] = {{1, 1, FT_1F1B}, {4, 2, FT_INTERLEAVED}, {4, 1, FT_DUALPIPE}};
    rig r;
    begin(&r, "qwen3-30b-a3b");
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        r.parallel = layout_of(1, ways[i].pp, 1, 16, 16);
        r.parallel.vpp = ways[i].vpp;
        r.parallel.schedule = ways[i].schedule;
        r.work.accumulate = 16;
        forecast_sound(&r);
        double apart = r.step.step_ms, exposed = r.step.comm_exposed_ms, sent = r.step.axis_ms[FT_AXIS_EXPERT];
        double held = r.step.memory.peak_bytes;
        r.parallel.expert_overlap = 1;
        forecast_sound(&r);
        if (!(r.step.step_ms < 0.9 * apart && r.step.step_ms > apart - sent))
            fail_msg("pp %d: %.0f ms, %.0f without overlap", (int)ways[i].pp, r.step.step_ms, apart);
        assert_true(r.step.comm_exposed_ms < exposed && r.step.axis_ms[FT_AXIS_EXPERT] == sent);
        close_to(apart - r.step.step_ms, exposed - r.step.comm_exposed_ms, 0.25, "what was hidden");
        bool dual = ways[i].schedule == FT_DUALPIPE; /* which has as many in flight in any case */
        assert_true(dual ? r.step.memory.peak_bytes == held : r.step.memory.peak_bytes > 1.02 * held);
        double joined = r.step.step_ms;
        r.parallel.expert_overlap = -1; /* as the schedule does */
        forecast_sound(&r);
        assert_true(r.step.step_ms == (dual ? joined : apart));
    }
    /* Gradients that wait for the end of every micro-batch's backward pass are not among what is hidden. */
    r.parallel = layout_of(1, 4, 1, 16, 16);
    r.parallel.schedule = FT_DUALPIPE;
    r.parallel.zero = 3;
    r.parallel.drop_gathered = r.parallel.no_overlap = true;
    forecast_sound(&r);
    double apart = r.step.step_ms;
    r.parallel.expert_overlap = 1;
    forecast_sound(&r);
    assert_true(r.step.step_ms < apart && r.step.step_ms > apart - r.step.axis_ms[FT_AXIS_EXPERT]);
    /* There is no other micro-batch. */
    r.parallel = layout_of(1, 1, 1, 16, 16);
    r.parallel.expert_overlap = 1;
    r.work.accumulate = 1;
    ft_ranks ranks = ranks_of(&r);
    ft_error err;
    assert_int_equal(ft__ranks_forecast(&ranks, &r.step, NULL, NULL, &err), FT_E_RANGE);
    assert_string_equal(err.message, "\"expert_overlap\" hides exchanges behind another micro-batch: \"global_batch\" "
                                     "must be at least 2 * batch * dp = 32");
    r.work.task = FT_PREFILL; /* which has none in any case */
    assert_int_equal(ft__ranks_forecast(&ranks, &r.step, NULL, NULL, &err), FT_OK);
    end(&r);
}

/* Gradients beside the backward pass are there no later than those behind it, however large the buckets are. */
static void no_bucket_makes_overlap_slower(void **state)
{
    (void)state;
    static const double buckets[] = {0, 1, 25, 100, 1000};
    rig r;
    begin(&r, "pythia-160m");
    r.work.execution = FT_RUN_IDEAL;
    for (int zero = 0; zero < 4; zero++)
        for (size_t i = 0; i < sizeof buckets / sizeof *buckets; i++) {
            r.parallel = layout_of(1, 1, 1, 1, 64);
            r.parallel.zero = zero;
            r.parallel.bucket_bytes = buckets[i] * 1048576;
            r.parallel.overlap = true;
            forecast_sound(&r);
            double beside = r.step.step_ms;
            r.parallel.overlap = false;
            r.parallel.no_overlap = true;
            forecast_sound(&r);
            if (beside > r.step.step_ms * (1 + 1e-9))
                fail_msg("zero %d, buckets of %g MiB: %g ms beside, %g behind", zero, buckets[i], beside,
                         r.step.step_ms);
        }
    end(&r);
}

static void running_out_of_memory_is_an_error(void **state)
{
    (void)state;
    rig r;
    begin(&r, "mixtral-8x7b");
    r.parallel = layout_of(2, 4, 1, 4, 4);
    r.parallel.sp = true;
    r.work.accumulate = 8;
    assert_survives_want(&r, (size_t)1 << 26, 3, 5);
    r.parallel.schedule = FT_INTERLEAVED;
    r.parallel.vpp = 2;
    r.parallel.expert_overlap = 1;
    assert_survives_want(&r, (size_t)1 << 26, 3, 5);
    end(&r);
}

/* A device of dualpipe runs half of the micro-batches through either of its stages. */
static void no_device_is_busy_longer_than_the_step(void **state)
{
    (void)state;
    rig r;
    begin(&r, "pythia-160m");
    for (int schedule = 0; schedule < FT_SCHEDULE_COUNT; schedule++) {
        r.parallel = layout_of(1, 4, 1, 1, 2);
        r.parallel.schedule = (ft_schedule)schedule;
        r.work.accumulate = 16;
        forecast_sound(&r);
        assert_true(r.step.busy_ms <= r.step.step_ms * (1 + 1e-9));
    }
    end(&r);
}

/* Kernels, exchanges, other stages and the host: what a stage's time went to is all of it and no more, also where it
 * finishes before the others; what stages send each other is exchange, a tied table's sum between them too. */
static void the_parts_make_up_the_step(void **state)
{
    (void)state;
    static const char *const models[] = {"deepseek-v2-lite", "bloom-560m", "llama-3.2-1b"};
    for (size_t m = 0; m < sizeof models / sizeof *models; m++)
        for (int schedule = 0; schedule < FT_SCHEDULE_COUNT; schedule++) {
            rig r;
            begin(&r, models[m]);
            r.cluster = slow_network(8, 10);
            r.parallel = layout_of(1, 4, 1, 1, 2);
            r.parallel.schedule = (ft_schedule)schedule;
            r.work.accumulate = 16;
            forecast_sound(&r);
            const ft_step *t = &r.step;
            double parts = t->busy_ms + t->comm_exposed_ms + t->bubble_ms + t->idle_ms;
            close_to(parts, t->step_ms, 1e-3, models[m]);
            assert_true(t->axis_ms[FT_AXIS_TENSOR] == 0);
            double sends = 16 * 2048 * (double)r.arch.hidden * 2 / 10e6; /* of the model's ends, one way */
            assert_true(t->axis_ms[FT_AXIS_PIPELINE] > sends && t->comm_exposed_ms <= t->comm_ms);
            end(&r);
        }
}

/* Gathered after the update or beside the next forward pass: as many bytes. */
static void what_is_gathered_ahead_is_counted(void **state)
{
    (void)state;
    rig r;
    begin(&r, "llama-3.2-1b");
    r.parallel = layout_of(1, 1, 1, 1, 16);
    r.parallel.zero = 1;
    forecast_sound(&r);
    double after = r.step.axis_ms[FT_AXIS_DATA];
    r.parallel.gather_ahead = true;
    forecast_sound(&r);
    close_to(r.step.axis_ms[FT_AXIS_DATA], after, 0.05, "gathered ahead");
    /* In buckets: over thousands of ranks a layer by itself would be all latency. Of adapters, what was updated. */
    for (int64_t adapters = 0; adapters <= 16; adapters += 16) {
        r.work.lora_rank = adapters;
        r.parallel = layout_of(1, 1, 1, 1, 4096);
        r.parallel.zero = 1;
        forecast_sound(&r);
        double step = r.step.step_ms, exchanged = r.step.axis_ms[FT_AXIS_DATA];
        r.parallel.gather_ahead = true;
        forecast_sound(&r);
        assert_true(r.step.step_ms < step);
        close_to(r.step.axis_ms[FT_AXIS_DATA], exchanged, 0.05, "gathered ahead over many ranks");
    }
    end(&r);
}

/* A last bucket that holds all there is takes what all takes after the backward pass: experts of which each rank has
 * its own are not in it. */
static void the_last_bucket_holds_no_experts(void **state)
{
    (void)state;
    rig r;
    begin(&r, "olmoe-1b-7b");
    r.cluster = slow_network(8, 5);
    r.parallel = layout_of(1, 1, 1, 8, 8);
    r.parallel.bucket_bytes = 4e9;
    forecast_sound(&r);
    double beside = r.step.step_ms;
    r.parallel.no_overlap = true;
    forecast_sound(&r);
    if (beside > 1.02 * r.step.step_ms)
        fail_msg("%.0f ms beside the backward pass, %.0f after", beside, r.step.step_ms);
    end(&r);
}

/* Dualpipe: a rank has two stages, and half of the micro-batches pass either. */
static void dualpipe_exchanges_for_two_stages(void **state)
{
    (void)state;
    rig r;
    begin(&r, "llama-3.2-1b");
    r.cluster = slow_network(8, 10);
    r.work.accumulate = 32;
    for (int zero = 0; zero < 4; zero++) {
        double data[2];
        for (int dual = 0; dual < 2; dual++) {
            r.parallel = layout_of(1, 2, 1, 1, 4);
            r.parallel.schedule = dual ? FT_DUALPIPE : FT_1F1B;
            r.parallel.zero = zero;
            forecast_sound(&r);
            data[dual] = r.step.axis_ms[FT_AXIS_DATA];
            close_to(r.step.busy_ms + r.step.comm_exposed_ms + r.step.bubble_ms + r.step.idle_ms, r.step.step_ms, 0.02,
                     "parts of the step");
        }
        double twice = zero < 2 ? 2 : 1; /* once a step for either, or with every micro-batch of each half */
        close_to(data[1], twice * data[0], 0.25, "of one stage and of both");
    }
    end(&r);
}

/* 16,384 GPUs, Llama 3 405B. */
static void a_large_step_takes_little_memory(void **state)
{
    (void)state;
    rig r;
    begin(&r, "llama-3.1-405b");
    for (int v = 0; v < 2; v++) {
        r.parallel = layout_of(8, 16, 1, 1, 128);
        r.parallel.sp = true;
        r.parallel.zero = 1;
        if (v) {
            r.parallel = layout_of(8, 18, 1, 1, 113);
            r.parallel.schedule = FT_INTERLEAVED;
            r.parallel.vpp = 7;
        }
        r.work.seq = 8192;
        r.work.accumulate = v ? 36 : 32;
        assert_small(&r, forecast_sound, (size_t)16 << 20);
    }
    end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(data_parallel_volumes),
        cmocka_unit_test(every_micro_batch_sends_its_gradients),
        cmocka_unit_test(a_host_that_runs_ahead_does_not_outrun_the_wire),
        cmocka_unit_test(nothing_is_gathered_for_nobody),
        cmocka_unit_test(stages_exchange_once),
        cmocka_unit_test(hybrid_shards_cross_fewer_ranks),
        cmocka_unit_test(overlap_hides_what_there_is_time_for),
        cmocka_unit_test(states_are_sharded),
        cmocka_unit_test(buckets_are_a_second_copy),
        cmocka_unit_test(micro_batches_are_all_counted),
        cmocka_unit_test(an_update_rests_the_board_once),
        cmocka_unit_test(hooks_cost_the_host),
        cmocka_unit_test(early_stages_hold_more),
        cmocka_unit_test(the_peak_is_looked_for_after_sharding),
        cmocka_unit_test(the_update_holds_no_activations),
        cmocka_unit_test(company_makes_nobody_faster),
        cmocka_unit_test(waiting_for_the_host_is_not_exposed_exchange),
        cmocka_unit_test(what_does_not_fit_gets_a_remedy),
        cmocka_unit_test(equal_stages_are_one_and_bubbles_exact),
        cmocka_unit_test(no_device_is_busy_longer_than_the_step),
        cmocka_unit_test(the_parts_make_up_the_step),
        cmocka_unit_test(what_is_gathered_ahead_is_counted),
        cmocka_unit_test(the_last_bucket_holds_no_experts),
        cmocka_unit_test(dualpipe_exchanges_for_two_stages),
        cmocka_unit_test(uneven_experts_take_longer),
        cmocka_unit_test(experts_exchange_beside_other_micro_batches),
        cmocka_unit_test(no_bucket_makes_overlap_slower),
        cmocka_unit_test(running_out_of_memory_is_an_error),
        cmocka_unit_test(a_large_step_takes_little_memory),
    };
    return cmocka_run_group_tests(tests, open_predictor, close_predictor);
}

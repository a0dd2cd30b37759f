/* What the ranks of a step hold. */
#include "ranks_steps.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(states_are_sharded),
        cmocka_unit_test(buckets_are_a_second_copy),
        cmocka_unit_test(micro_batches_are_all_counted),
        cmocka_unit_test(an_update_rests_the_board_once),
        cmocka_unit_test(hooks_cost_the_host),
        cmocka_unit_test(early_stages_hold_more),
        cmocka_unit_test(the_peak_is_looked_for_after_sharding),
        cmocka_unit_test(the_update_holds_no_activations),
    };
    return cmocka_run_group_tests(tests, open_predictor, close_predictor);
}

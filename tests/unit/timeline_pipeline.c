/* Bubbles come out as the papers' formulas say where these hold: equal stages, nothing to send. */
#include <string.h>

#include "pipelines.h"

static void bubbles_are_stages_over_micro_batches(void **state)
{
    (void)state;
    ft_arena *arena = ft__arena_new(0);
    for (int64_t p = 1; p <= 16; p *= 2)
        for (int64_t m = p; m <= 64; m += p) {
            double work = (double)m * 3, steps = (double)(p - 1);
            /* (p-1)/m of the work: GPipe (Huang et al. 2019), 1F1B (Narayanan et al. 2021). */
            assert_true(near(run(arena, FT_GPIPE, p, 1, m, 1, 2, 0).bubble_ms, steps * 3));
            assert_true(near(run(arena, FT_1F1B, p, 1, m, 1, 2, 0).bubble_ms, steps * 3));
            assert_true(near(run(arena, FT_1F1B, p, 1, m, 1, 2, 0).total_ms, work + steps * 3));
            for (int64_t v = 2; v <= 4; v++) { /* (p-1)/(m v) */
                ft_piped i = run(arena, FT_INTERLEAVED, p, v, m, 1, 2, 0);
                assert_true(near(i.busy_ms, work * (double)v));
                assert_true(near(i.bubble_ms, steps * 3));
            }
            /* (p-1)(F + B - 2W), B with W (Qi et al. 2023, ZB-H1): a third of 1F1B's where F = B - W = W. */
            if (m >= 2 * p) assert_true(near(run(arena, FT_ZERO_BUBBLE, p, 1, m, 1, 2, 0).bubble_ms, steps * 1));
            /* (p/2 - 1)(F&B + B - 3W) (DeepSeek-V3, table 3); a chunk is as long as in the other schedules. */
            if (m >= 2 * p && p > 1 && m % 2 == 0)
                assert_true(near(run(arena, FT_DUALPIPE, p, 2, m, 1, 2, 0).bubble_ms, ((double)p / 2 - 1) * 2));
        }
    ft__arena_free(arena);
}

/* Qi et al. 2024: all of 1f1b's activations, a half, a third, and bubbles that grow as these shrink, but never to
 * 1f1b's. In chunks, of which 1f1b's first stage holds 2 p. */
static void folded_schedules_trade_memory_for_bubbles(void **state)
{
    (void)state;
    ft_arena *arena = ft__arena_new(0);
    for (int64_t p = 2; p <= 16; p++) {
        static const ft_schedule folds[] = {FT_V_ZERO_BUBBLE, FT_V_HALF, FT_V_MIN};
        const double most[] = {2.0 * (double)p, (double)p + 3, 2.0 * (double)p / 3 + 3};
        double one = run(arena, FT_1F1B, p, 1, 4 * p, 2, 4, 0).bubble_ms, before = 0;
        for (int i = 0; i < 3; i++) {
            ft_piped v = run(arena, folds[i], p, 2, 4 * p, 1, 2, 0);
            assert_true(near(v.busy_ms, (double)(4 * p) * 6));
            if (v.bubble_ms > one || (p > 4 && v.bubble_ms < before))
                fail_msg("p %lld: %g of %g", (long long)p, v.bubble_ms, one);
            for (int64_t s = 0; s < p; s++)
                if (v.in_flight[s] > most[i])
                    fail_msg("p %lld stage %lld holds %g", (long long)p, (long long)s, v.in_flight[s]);
            before = v.bubble_ms;
        }
        /* At the fold and at the model's ends nothing is sent: 2 p - 2 boundaries there, as many back. */
        ft_piped sent = run(arena, FT_V_HALF, p, 2, 8, 1, 2, 0.5);
        double all = 0;
        for (int64_t s = 0; s < p; s++) all += sent.sent_ms[s];
        assert_true(near(all, 8 * 0.5 * 2 * (2 * (double)p - 2)));
    }
    ft__arena_free(arena);
}

static void schedules_hold_as_many_as_they_should(void **state)
{
    (void)state;
    ft_arena *arena = ft__arena_new(0);
    for (int64_t p = 2; p <= 16; p *= 2) {
        int64_t m = 4 * p;
        ft_piped gpipe = run(arena, FT_GPIPE, p, 1, m, 1, 2, 0);
        for (int64_t s = 0; s < p; s++) assert_true(gpipe.in_flight[s] == (double)m);
        ft_piped one = run(arena, FT_1F1B, p, 1, m, 1, 2, 0);
        for (int64_t s = 0; s < p; s++) assert_true(one.in_flight[s] == (double)(p - s));
        ft_piped zb = run(arena, FT_ZERO_BUBBLE, p, 1, m, 1, 2, 0);
        for (int64_t s = 0; s < p; s++) assert_true(zb.in_flight[s] <= (double)p);
        ft_piped dual = run(arena, FT_DUALPIPE, p, 2, m, 1, 2, 0);
        for (int64_t s = 0; s < p; s++) assert_true(dual.in_flight[s] <= (double)p + 1); /* table 3: PP + 1 */
        /* Narayanan et al.: p (1 + (p-1)/(p v)) micro-batches' worth on the first stage. */
        ft_piped inter = run(arena, FT_INTERLEAVED, p, 2, m, 1, 2, 0);
        assert_true(inter.in_flight[0] / 2 <= (double)p * (1 + (double)(p - 1) / (double)(2 * p)) + 0.5);
        assert_true(inter.in_flight[0] / 2 > (double)p);
    }
    ft__arena_free(arena);
}

/* The last stage of an interleaved pipeline goes back with its first micro-batch as soon as that has reached the
 * model's end, also where there are as many micro-batches as stages: of the chunk with the logits it holds one.
 * Megatron's of 2021 let all go forward first then. */
static void logits_are_held_once(void **state)
{
    (void)state;
    ft_arena *arena = ft__arena_new(0);
    for (int64_t p = 2; p <= 8; p *= 2)
        for (int64_t v = 2; v <= 8; v *= 2)
            for (int64_t m = p; m <= 3 * p; m += p) {
                double only_last[8] = {0};
                only_last[v - 1] = 1;
                ft_piped r = run(arena, FT_INTERLEAVED, p, v, m, 1, 2, 0);
                assert_true(near(ft__pipeline_alive(r.ops[p - 1], r.op_count[p - 1], only_last), 1));
                assert_true(near(r.in_flight[p - 1], (double)((v - 1) * p + 1)));
                ft_pipe early = {.schedule = FT_INTERLEAVED, .stages = p, .chunks = v, .micros = m, .all_ahead = true};
                double ones[64];
                for (int i = 0; i < 64; i++) ones[i] = 1;
                early.forward = early.backward = ones;
                assert_int_equal(ft__pipeline_run(&early, arena, &r, NULL), FT_OK);
                assert_true(
                    near(ft__pipeline_alive(r.ops[p - 1], r.op_count[p - 1], only_last), m == p ? (double)p : 1));
            }
    ft__arena_free(arena);
}

static void nothing_runs_before_what_it_needs(void **state)
{
    (void)state;
    ft_arena *arena = ft__arena_new(0);
    static const ft_schedule all[] = {FT_GPIPE, FT_1F1B, FT_INTERLEAVED, FT_ZERO_BUBBLE, FT_DUALPIPE};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        int64_t p = 4, m = 16, chunks = all[k] == FT_INTERLEAVED ? 3 : all[k] == FT_DUALPIPE ? 2 : 1;
        ft_piped r = run(arena, all[k], p, chunks, m, 1, 2, 0.25);
        ft_piped free = run(arena, all[k], p, chunks, m, 1, 2, 0);
        double without = free.total_ms;
        r = run(arena, all[k], p, chunks, m, 1, 2, 0.25);
        assert_true(r.total_ms > without);
        int64_t forwards = 0, backwards = 0, weights = 0;
        for (int64_t s = 0; s < p; s++) {
            double at = 0;
            for (int32_t i = 0; i < r.op_count[s]; i++) {
                const ft_pipe_op *op = &r.ops[s][i];
                assert_true(op->start >= at - 1e-12);
                if (!op->joined) at = op->end;
                forwards += op->kind == FT_PIPE_FORWARD;
                backwards += op->kind == FT_PIPE_BACKWARD || op->kind == FT_PIPE_INPUTS;
                weights += op->kind == FT_PIPE_BACKWARD || op->kind == FT_PIPE_WEIGHTS;
            }
        }
        int64_t pieces = p * m * (all[k] == FT_DUALPIPE ? 1 : chunks);
        assert_int_equal(forwards, pieces);
        assert_int_equal(backwards, pieces);
        assert_int_equal(weights, pieces);
    }
    ft__arena_free(arena);
}

/* Beside the next piece nothing is lost, but while an interleaved pipeline fills and drains its stages wait. */
static void sends_are_waited_for_at_both_ends(void **state)
{
    (void)state;
    ft_arena *arena = ft__arena_new(0);
    const int64_t p = 4, v = 2, m = 16;
    const double send = 0.25;
    ft_piped r = run(arena, FT_INTERLEAVED, p, v, m, 1, 2, send);
    for (int64_t s = 0; s < p; s++) {
        int64_t warm = (p - s - 1) * 2 + (v - 1) * p, waits = 0;
        for (int32_t i = 0; i < r.op_count[s]; i++) {
            const ft_pipe_op *op = &r.ops[s][i];
            bool end = i < warm || i >= r.op_count[s] - warm;
            assert_true(op->waits == end);
            waits += op->waits;
            bool sends = op->kind == FT_PIPE_FORWARD ? op->chunk * p + s < p * v - 1 : op->chunk * p + s > 0;
            if (op->waits && sends && i + 1 < r.op_count[s]) assert_true(op[1].start >= op->end + send - 1e-12);
        }
        assert_int_equal(waits, 2 * warm);
    }
    ft__arena_free(arena);
}

/* Whether a stage waits for what it sends or not, its transfers go one after the other: no step is shorter. */
static void a_wire_carries_one_after_the_other(void **state)
{
    (void)state;
    ft_arena *arena = ft__arena_new(0);
    for (int schedule = 0; schedule < FT_SCHEDULE_COUNT; schedule++)
        for (int64_t m = 16; m <= 4096; m *= 256) {
            bool chunks = schedule == FT_INTERLEAVED, folded = ft__schedule_folds((ft_schedule)schedule);
            bool dual = schedule == FT_DUALPIPE;
            ft_piped out = run(arena, (ft_schedule)schedule, 4, chunks ? 3 : dual || folded ? 2 : 1, m, 1, 2, 5);
            for (int64_t s = 0; s < 4; s++) {
                /* Forward and back, but for the ends of the model. */
                double ends = s == 0 || s == 3, sends = chunks ? 6 - ends : dual && ends ? 1 : dual ? 2 : 2 - ends;
                if (folded) sends = 4 - 2 * ends; /* the fold is an end, too */
                if (!near(out.sent_ms[s], 5 * sends * (double)m))
                    fail_msg("%s, stage %d: sends for %.0f ms", ft__schedule_name((ft_schedule)schedule), (int)s,
                             out.sent_ms[s]);
                if (out.total_ms < out.sent_ms[s] - 1e-9 || out.lost_ms[s] > out.sent_ms[s] + 1e-9)
                    fail_msg("%s, %d micro-batches: %.0f ms, stage %d sends for %.0f",
                             ft__schedule_name((ft_schedule)schedule), (int)m, out.total_ms, (int)s, out.sent_ms[s]);
            }
        }
    ft__arena_free(arena);
}

static void the_slowest_stage_sets_the_pace(void **state)
{
    (void)state;
    ft_arena *arena = ft__arena_new(0);
    double forward[4] = {1, 1, 1, 1.5}, backward[4] = {2, 2, 2, 3};
    ft_pipe p = {.schedule = FT_1F1B, .stages = 4, .chunks = 1, .micros = 64, .forward = forward, .backward = backward};
    ft_piped out;
    assert_int_equal(ft__pipeline_run(&p, arena, &out, NULL), FT_OK);
    assert_true(near(out.busy_ms, 64 * 4.5));
    assert_true(near(out.total_ms, 3 * 3 + 64 * 4.5)); /* the way to the last stage and back */
    ft__arena_free(arena);
}

/* More micro-batches than are run one by one cost as much each as the last that were; nothing else changes. */
static void very_many_micro_batches_cost_what_the_last_did(void **state)
{
    (void)state;
    static const struct {
        ft_schedule schedule;
        int64_t stages, chunks;
    } of[] = {{FT_1F1B, 1, 1},        {FT_GPIPE, 1, 1},       {FT_1F1B, 7, 1},         {FT_INTERLEAVED, 4, 3},
              {FT_INTERLEAVED, 6, 1}, {FT_ZERO_BUBBLE, 5, 1}, {FT_DUALPIPE, 8, 2},     {FT_1F1B, 64, 1},
              {FT_V_HALF, 4, 2},      {FT_V_MIN, 6, 2},       {FT_V_ZERO_BUBBLE, 8, 2}};
    ft_arena *few_arena = ft__arena_new(0), *arena = ft__arena_new(0);
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        double forward[64], backward[64];
        for (int k = 0; k < 64; k++) { /* uneven stages */
            forward[k] = 1 + 0.1 * (double)(k * 7 % 5);
            backward[k] = 2 + 0.3 * (double)(k * 11 % 7);
        }
        ft__arena_reset(few_arena);
        ft__arena_reset(arena);
        ft_pipe p = {.schedule = of[i].schedule,
                     .stages = of[i].stages,
                     .chunks = of[i].chunks,
                     .send_ms = 0.2,
                     .send_share = 0.5,
                     .weight_share = 0.45,
                     .forward = forward,
                     .backward = backward};
        ft_piped few, more, out;
        int64_t s = p.stages, listed = 4 * s + 2 * s * (1024 / (2 * s)), half = 2 * s * (512 / (2 * s));
        p.micros = listed - half;
        assert_int_equal(ft__pipeline_run(&p, few_arena, &few, NULL), FT_OK);
        p.micros = listed;
        assert_int_equal(ft__pipeline_run(&p, few_arena, &more, NULL), FT_OK);
        assert_int_equal(more.skipped, 0);
        int64_t beyond = 2 * s * (int64_t)100000000;
        p.micros = listed + beyond;
        assert_int_equal(ft__pipeline_run(&p, arena, &out, NULL), FT_OK);
        /* Rhythms may be several micro-batches long: taken over hundreds. */
        double each = (more.total_ms - few.total_ms) / (double)half, all = (double)beyond * each;
        assert_true(fabs(out.total_ms - (more.total_ms + all)) < 1e-4 * all);
        assert_true(fabs(out.busy_ms - more.busy_ms * (double)p.micros / (double)listed) < 1e-9 * all);
        assert_true(out.op_count[0] < 8 * 1200 * (int)p.chunks);
        for (int64_t k = 0; k < s; k++) {
            assert_true(near(out.in_flight[k], more.in_flight[k]));
            int64_t most = 0;
            for (int32_t n = 0; n < out.op_count[k]; n++) {
                if (out.ops[k][n].micro > most) most = out.ops[k][n].micro;
                if (n && !out.ops[k][n - 1].joined) assert_true(out.ops[k][n].start >= out.ops[k][n - 1].end - 1e-3);
            }
            assert_int_equal(most, p.micros - 1);
            assert_int_equal(out.skipped % (2 * s), 0);
            double gap = out.ops[k][out.gap[k]].start - out.ops[k][out.gap[k] - 1].start;
            assert_true(gap > 0.999 * all && gap < 1.001 * all);
        }
    }
    ft__arena_free(few_arena);
    ft__arena_free(arena);
}

static void what_a_schedule_cannot_take_is_said(void **state)
{
    (void)state;
    ft_error err;
    assert_int_equal(ft__pipeline_check(FT_INTERLEAVED, 8, 2, 12, &err), FT_E_RANGE);
    assert_string_equal(err.message,
                        "an interleaved schedule needs micro-batches in groups of \"pp\" 8: 8 or 16 of them, "
                        "not 12");
    assert_int_equal(ft__pipeline_check(FT_INTERLEAVED, 8, 2, 1, &err), FT_E_RANGE);
    assert_non_null(strstr(err.message, "8 or 16 of them, not 1"));
    assert_int_equal(ft__pipeline_check(FT_DUALPIPE, 5, 2, 12, &err), FT_E_RANGE);
    assert_string_equal(err.message, "dualpipe pairs the stages: \"pp\" must be even, 4 or 6, not 5");
    assert_int_equal(ft__pipeline_check(FT_DUALPIPE, 8, 2, 12, &err), FT_E_RANGE);
    assert_string_equal(err.message,
                        "dualpipe needs an even number of micro-batches, at least 2 * pp = 16; there are 12");
    assert_int_equal(ft__pipeline_check(FT_1F1B, 1000, 1, 1000000, &err), FT_E_RANGE);
    assert_int_equal(ft__pipeline_check(FT_GPIPE, 2, 1, 2000000, &err), FT_E_RANGE);
    /* What would do is taken: whole groups, or nothing of the kind. */
    assert_int_equal(ft__pipeline_check(FT_INTERLEAVED, 64, 32, 64000, &err), FT_E_RANGE);
    assert_non_null(strstr(err.message, "too many pieces to run; 960 micro-batches would do"));
    assert_int_equal(ft__pipeline_check(FT_INTERLEAVED, 64, 32, 960, &err), FT_OK);
    assert_int_equal(ft__pipeline_check(FT_DUALPIPE, 1200, 1, 2400, &err), FT_E_RANGE);
    assert_non_null(strstr(err.message, "too many pieces to run; fewer stages would do"));
    assert_int_equal(ft__pipeline_check(FT_1F1B, 2, 1, (int64_t)1 << 40, &err), FT_OK);
    assert_int_equal(ft__pipeline_check(FT_1F1B, 3, 1, 1, &err), FT_OK);
    assert_int_equal(ft__pipeline_check(FT_INTERLEAVED, 8, 1, 3, &err), FT_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bubbles_are_stages_over_micro_batches),
        cmocka_unit_test(folded_schedules_trade_memory_for_bubbles),
        cmocka_unit_test(schedules_hold_as_many_as_they_should),
        cmocka_unit_test(logits_are_held_once),
        cmocka_unit_test(nothing_runs_before_what_it_needs),
        cmocka_unit_test(sends_are_waited_for_at_both_ends),
        cmocka_unit_test(a_wire_carries_one_after_the_other),
        cmocka_unit_test(the_slowest_stage_sets_the_pace),
        cmocka_unit_test(very_many_micro_batches_cost_what_the_last_did),
        cmocka_unit_test(what_a_schedule_cannot_take_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

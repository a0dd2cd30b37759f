/* Exchanges of experts inside a pipeline's windows: what hides, and what interleaved pairs share. */
#include <string.h>

#include "pipelines.h"

/* -- exchanges behind another micro-batch ------------------------------------------------------- */

/* Equal places whose passes take 10 and 20 ms, of which exchanges with experts 4 and 6. */
static const ft_pipe_parts joined_forward = {.alone = 1, .attention = 2, .experts = 3, .first = 1, .second = 3},
                           joined_backward = {.alone = 2, .attention = 5, .experts = 7, .first = 4, .second = 2};

static ft_piped run_joined(ft_arena *arena, ft_schedule schedule, int64_t stages, int64_t chunks, int64_t micros,
                           double beside)
{
    static double forward[MOST], backward[MOST];
    static ft_pipe_parts there[MOST], back[MOST];
    ft_piped out;
    ft_error err;
    ft__arena_reset(arena);
    for (int i = 0; i < MOST; i++) {
        forward[i] = 10;
        backward[i] = 20;
        there[i] = joined_forward;
        back[i] = joined_backward;
    }
    ft_pipe_join join = {.forward = there, .backward = back, .slowdown = beside};
    ft_pipe p = {.schedule = schedule,
                 .stages = stages,
                 .chunks = chunks,
                 .micros = micros,
                 .forward = forward,
                 .backward = backward,
                 .weight_share = 0.5,
                 .join = &join};
    if (ft__pipeline_run(&p, arena, &out, &err) != FT_OK) fail_msg("%s", err.message);
    return out;
}

/* One stage: the first forward and the last backward are alone, between them every pair takes its windows:
 * 1 + 2 alone, 4 (combine_bwd over attn_fwd's 2), 7 (mlp_bwd), 3 (mlp_fwd), 5 (attn_bwd). */
static void exchanges_hide_window_by_window(void **state)
{
    (void)state;
    ft_arena *arena = ft__arena_new(0);
    for (int64_t m = 1; m <= 40; m++) {
        ft_piped one = run_joined(arena, FT_1F1B, 1, 1, m, 0);
        double pairs = (double)(m - 1);
        assert_true(near(one.total_ms, 30 + pairs * 22));
        assert_true(near(one.busy_ms, one.total_ms) && near(one.hidden_ms[0], pairs * 8));
        assert_true(one.in_flight[0] == (m > 1 ? 2 : 1));
        /* Kernels at half their speed beside exchanges: 3 + 4 + 7.5 + 4 + 6.5. */
        assert_true(near(run_joined(arena, FT_1F1B, 1, 1, m, 1).total_ms, 30 + pairs * 25));
    }
    ft_piped many = run_joined(arena, FT_1F1B, 1, 1, 5000, 0); /* more than are listed */
    assert_true(near(many.total_ms, 30 + 4999 * 22.0));
    assert_true(fabs(many.hidden_ms[0] / (4999 * 8.0) - 1) < 1e-3);
    ft__arena_free(arena);
}

/* Interleaved: one more goes ahead, every pair of the full pipeline is joined, and none waits for ever. */
static void interleaved_pairs_are_joined(void **state)
{
    (void)state;
    ft_arena *arena = ft__arena_new(0);
    for (int64_t p = 2; p <= 16; p *= 2)
        for (int64_t v = 2; v <= 4; v++)
            for (int64_t m = p; m <= 8 * p; m += p) {
                ft_piped apart = run(arena, FT_INTERLEAVED, p, v, m, 10, 20, 0);
                double without = apart.total_ms, held = apart.in_flight[0];
                ft_piped joined = run_joined(arena, FT_INTERLEAVED, p, v, m, 0);
                int64_t warm = (p - 1) * 2 + (v - 1) * p + 1, pairs = m * v > warm ? m * v - warm : 0;
                assert_true(near(joined.hidden_ms[0], (double)pairs * 8));
                assert_true(joined.in_flight[0] >= held && joined.in_flight[0] <= held + 1);
                if (m >= 4 * p && joined.total_ms >= without)
                    fail_msg("pp %d vpp %d, %d micro-batches: %.0f ms joined, %.0f apart", (int)p, (int)v, (int)m,
                             joined.total_ms, without);
                for (int64_t s = 0; s < p; s++)
                    for (int32_t i = 0; i + 1 < joined.op_count[s]; i++) {
                        const ft_pipe_op *op = &joined.ops[s][i];
                        if (op->joined) assert_true(op[0].start == op[1].start && op[0].end == op[1].end);
                        if (op->joined) assert_true(near(op->end - op->start, 22));
                    }
            }
    /* DualPipe joins of itself what its two ways bring together. */
    assert_true(run_joined(arena, FT_DUALPIPE, 8, 2, 64, 0).total_ms <
                run(arena, FT_DUALPIPE, 8, 2, 64, 10, 20, 0).total_ms);
    ft__arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exchanges_hide_window_by_window),
        cmocka_unit_test(interleaved_pairs_are_joined),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

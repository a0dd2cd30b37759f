/* Pipelines of equal stages. */
#ifndef FT_TEST_PIPELINES_H
#define FT_TEST_PIPELINES_H
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ranks/pipeline.h"

enum { MOST = 1024 };

static ft_piped run(ft_arena *arena, ft_schedule schedule, int64_t stages, int64_t chunks, int64_t micros, double f,
                    double b, double send)
{
    static double forward[MOST], backward[MOST];
    ft_piped out;
    ft_error err;
    ft__arena_reset(arena);
    for (int i = 0; i < MOST; i++) {
        forward[i] = f;
        backward[i] = b;
    }
    ft_pipe p = {.schedule = schedule,
                 .stages = stages,
                 .chunks = chunks,
                 .micros = micros,
                 .forward = forward,
                 .backward = backward,
                 .weight_share = 0.5,
                 .send_ms = send};
    if (ft__pipeline_run(&p, arena, &out, &err) != FT_OK) fail_msg("%s", err.message);
    return out;
}

static bool near(double a, double b) { return fabs(a - b) < 1e-9 * fmax(1, fabs(b)); }
#endif

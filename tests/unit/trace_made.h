/* Traces written by hand, and what a report says of them. */
#ifndef FT_TEST_TRACE_MADE_H
#define FT_TEST_TRACE_MADE_H
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "failing_alloc.h"
#include "kernel/predictor.h"
#include "trace/report.h"

static ft_predictor *predictor;

static int open_predictor(void **state)
{
    (void)state;
    return ft__predictor_open(NULL, &predictor, NULL) == FT_OK ? 0 : -1;
}

static int close_predictor(void **state)
{
    (void)state;
    ft__predictor_close(predictor);
    return 0;
}

/* -- writing traces ---------------------------------------------------------------------------- */

static ft_text text;
static int next_id;

static void begin(const char *gpu)
{
    ft__text_clear(&text);
    next_id = 1;
    ft__text_addf(&text,
                  "{\"deviceProperties\":[{\"id\":0,\"name\":\"%s\",\"numSms\":132,\"totalGlobalMem\":150109880320}],"
                  "\"traceEvents\":[{}",
                  gpu);
}

static void event(const char *cat, const char *name, int tid, double ts, double dur, const char *args)
{
    ft__text_addf(
        &text,
        ",{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"%s\",\"pid\":1,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,\"args\":{%s}}",
        cat, name, tid, ts, dur, args);
}

#define MM                                                                                   \
    "\"Input Dims\":[[2048,2048],[2048,2048]],\"Input type\":[\"float\",\"float\"],\"Input " \
    "Strides\":[[2048,1],[2048,1]]"

/* An operator of 30 us at `host`, its launch, and a kernel from `start`; times in us. */
static void op_with_kernel(const char *op, const char *inputs, double host, const char *kernel, int stream,
                           double start, double length)
{
    char args[400];
    int id = next_id++;
    snprintf(args, sizeof args, "\"External id\":%d%s%s", id, *inputs ? "," : "", inputs);
    event("cpu_op", op, 1, host, 30, args);
    snprintf(args, sizeof args, "\"External id\":%d,\"correlation\":%d", id, id);
    event("cuda_runtime", "cudaLaunchKernel", 1, host + 10, 5, args);
    snprintf(args, sizeof args, "\"External id\":%d,\"correlation\":%d,\"stream\":%d,\"device\":0", id, id, stream);
    event("kernel", kernel, stream, start, length, args);
}

static ft_status look(ft_trace_report *s, const char *on, const char *gpu, ft_error *err)
{
    ft_slices *from;
    ft_text whole = {0};
    ft__text_add(&whole, text.at);
    ft__text_add(&whole, "]}");
    ft_status status = ft__slices_of(whole.at, whole.length, &from, err);
    if (status == FT_OK) {
        status = ft__trace_report_of(from, predictor, on, gpu ? &gpu : NULL, gpu != NULL, 0.9, NULL, s, err);
        ft__slices_close(from);
    } else {
        memset(s, 0, sizeof *s);
    }
    ft__text_free(&whole);
    return status;
}

static void seen(ft_trace_report *s, const char *on, const char *gpu)
{
    ft_error err = {0};
    if (look(s, on, gpu, &err) != FT_OK) fail_msg("%s", err.message);
}

static void near(double a, double b, double share, int line)
{
    if (!(fabs(a - b) <= share * fabs(b))) fail_msg("line %d: %g instead of %g", line, a, b);
}
#define NEAR(a, b, share) near(a, b, share, __LINE__)

static int clean(void **state)
{
    ft__text_free(&text);
    return close_predictor(state);
}
#endif

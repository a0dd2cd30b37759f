/* Two requests and what differs between their answers. */
#ifndef FT_TEST_SWITCHING_H
#define FT_TEST_SWITCHING_H
#include <string.h>

#include "golden.h"

typedef struct outcome {
    double ms, busy, peak, weights, gradients, optimizer, activations, cache;
} outcome;

static outcome outcome_of(json_t *a)
{
    outcome o = {golden_figure(a, "step_ms"),
                 golden_figure(a, "busy_ms"),
                 golden_figure(a, "memory.peak_bytes"),
                 golden_figure(a, "memory.weights_bytes"),
                 golden_figure(a, "memory.gradients_bytes"),
                 golden_figure(a, "memory.optimizer_bytes"),
                 golden_figure(a, "memory.activations_bytes"),
                 golden_figure(a, "memory.kv_cache_bytes")};
    json_decref(a);
    return o;
}

static void less(const char *what, double a, double b) { golden_holds(a < b, "%s: %g is not below %g", what, a, b); }
#endif

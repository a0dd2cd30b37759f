/* What holds a kernel, a layer, a phase or the whole step, by share of time, and the evidence for it.
 *
 * A kernel belongs to arithmetic, memory or exchange by its own forecast; its launch is overhead, and so is every
 * moment in which the GPU waits for the host. The name goes to the largest share. */
#ifndef FT_EXPLAIN_REGIME_H
#define FT_EXPLAIN_REGIME_H
#include "explain/change.h"

typedef struct ft_verdict {
    const char *name; /* of a layer; "" */
    double ms;
    double share[4]; /* of ms, by ft_bound */
    ft_bound bound;
    double launches;
    double flops, bytes;
    double intensity;    /* FLOP per byte */
    double balance;      /* above which arithmetic holds, in the format most of the arithmetic is done in */
    double tflops, gbps; /* achieved */
    double peak_tflops, peak_gbps;
    double waves; /* of its products, weighted by time; 0: it has none */
    double tail;  /* share of the products' time in which part of the GPU has no tile left */
} ft_verdict;

typedef struct ft_verdicts {
    ft_verdict whole, phase[FT_PHASE_COUNT]; /* ms 0: there is no such phase */
    ft_verdict *layers;                      /* by forward block, what undoes it added; then the update */
    size_t layer_count;
    double idle_ms, exposed_ms, bubble_ms; /* of the whole: host gaps, exchanges that nothing hides, other stages */
    double exposed_bytes;                  /* that the links could have carried meanwhile; 0 on one GPU */
    double doubled_ms;                     /* the step with twice the batch; 0: not known */
    int64_t doubled_batch;
} ft_verdicts;

/* Names what holds each kernel and the step, once for all who read them. A kernel outside the matrix units is held
 * by memory as long as it does less arithmetic per byte than the vector units could (a roofline's definition: that
 * it may not reach the bandwidth is another matter), a product where its bytes are at least half of its time
 * (kernel/bound.c). The step is bound by its largest share; by overhead also where
 * the GPU idles and the host works from its first to its last moment, because then nothing but the host's time makes
 * it shorter. */
void ft__regime_settle(const ft_graph *g, const ft_device *device, ft_step *step);

/* One kernel, all its launches. */
ft_verdict ft__verdict_kernel(const ft_graph *g, const ft_timed *k, const ft_device *device);
/* Everything but doubling, in the arena. */
ft_status ft__verdicts_of(const ft_change *c, const ft_graph *g, const ft_step *step, ft_arena *arena, ft_verdicts *out,
                          ft_error *err);
/* Doubling the batch: 1 where the host sets the pace, 2 where the GPU does. 0: not known. */
double ft__doubling(const ft_verdicts *v, const ft_step *step);
#endif

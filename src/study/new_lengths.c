/* new_lengths.c: lengths that a process meets for the first time.
 *
 * cuDNN's attention compiles a plan for every shape it has not seen, forward and again going back, while the GPU waits:
 * a padded batch of a new length is such a shape. Two of them were some 100 ms in BERT and in a Llama of a billion
 * parameters under Hugging Face's Trainer (data/measurements/h200/trainer.jsonl). A run of many epochs has them all
 * behind it after the first, a short one never has: it is said beside the mean step, not in it. */
#include "study/new_lengths.h"

#include <math.h>

#include "kernel/host.h"
#include "model/lengths.h"
#include "model/pytorch.h"
#include "timeline/step.h"

static bool plans(const ft_workload *w)
{
    const bool half = w->autocast || ft_dtype_bytes(w->dtype) == 2;
    const bool asks = w->attention == FT_CUDNN ||
                      (w->attention == FT_SDPA && (!w->pytorch || w->pytorch->sdpa_cudnn != FT_SDPA_CUDNN_NO));
    return w->task == FT_TRAIN && half && asks;
}

/* Of so many batches, those that are expected to be the first with a length that each has with this chance. */
static double seen(double chance, double batches) { return 1 - pow(1 - chance, batches); }

/* A list's own lengths: the chance that the longest of a batch is each. */
static double listed(const ft_length_mix *m, const ft_workload *w, double batches)
{
    double count = 0, before = 0, level = 0, padded = 0;
    for (int i = 0; i < m->count && padded < (double)w->seq; i++) {
        const double steps = ceil(m->at[i] / (double)m->multiple);
        const double to = fmin(steps * (double)m->multiple, (double)w->seq);
        if (to > padded && i > 0) {
            count += seen(level - before, batches);
            before = level;
        }
        padded = to;
        level = pow(m->below[i], (double)w->batch);
    }
    return count + seen(1 - before, batches);
}

/* Between two levels of a distribution all lengths that a batch can be filled up to are equally likely. */
static double spread(const ft_length_mix *m, const ft_workload *w, double batches)
{
    enum { PARTS = 64 };
    double count = 0;
    for (int i = 0; i < PARTS; i++) {
        const double from = ft__mix_padded(m, w->seq, w->batch, (double)i / PARTS),
                     to = ft__mix_padded(m, w->seq, w->batch, (i + 1.0) / PARTS),
                     each = (to - from) / (double)m->multiple;
        if (each >= 1) count += each * seen(1 / (PARTS * each), batches);
    }
    return count;
}

ft_new_lengths ft__new_lengths(const ft_model_request *r, double kept)
{
    enum { WAYS = 2 };
    const ft_workload *w = &r->work;
    const ft_issuer host = ft__step_host(w, r->device);
    ft_new_lengths out = {0};
    if (!plans(w) || r->lengths.batching == FT_BATCH_PACK) return out;
    out.ms = WAYS * ft__host_plan_us(&host, r->device) * 1e-3;
    if (!(out.ms > 0)) return out;
    out.batches = fmax(floor(r->lengths.samples * kept / ((double)w->batch * (double)r->parallel.dp)), 1);
    const double found = r->lengths.count > 0 ? listed(&r->lengths, w, out.batches)
                                              : spread(&r->lengths, w, out.batches);
    out.count = fmin(fmax(found, 1), out.batches);
    return out;
}

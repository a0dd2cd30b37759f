/* fits.c: trying changes until the step fits. */
#include "memory/fits.h"

#include <math.h>
#include <stdio.h>

#include "model/stack.h"

typedef struct trial {
    ft_memory_of memory_of;
    void *user;
    ft_error *err;
    ft_memory memory; /* of the last one that was asked for */
} trial;

/* A workload that cannot be built (adapters on a model without linear layers) is no remedy, and no reason to give
 * up. */
static ft_status ask(trial *t, const ft_workload *work, bool *fits)
{
    const ft_status status = t->memory_of(work, t->user, &t->memory, t->err);
    *fits = status == FT_OK && t->memory.verdict == FT_FIT_YES;
    return status == FT_E_MEMORY ? status : FT_OK;
}

/* -- batches ----------------------------------------------------------------------------------- */

/* Micro-batches of `batch` that make up at least the step that was asked for. */
static void set_batch(ft_workload *work, const ft_workload *asked, int64_t batch)
{
    work->batch = batch;
    if (asked->task != FT_TRAIN || batch < 1) return;
    const double all = (double)asked->batch * (double)asked->accumulate;
    work->accumulate = (int64_t)ceil(all / (double)batch);
}

/* Largest batch in [1, below) that fits; bytes grow with the batch, so that halving finds it. */
static ft_status largest_below(trial *t, const ft_workload *work, int64_t below, int64_t *out)
{
    int64_t fits = 0, fails = below;
    while (fails - fits > 1) {
        const int64_t middle = fits == 0 ? (fails > 2 ? fails / 2 : 1) : fits + (fails - fits) / 2;
        ft_workload one = *work;
        set_batch(&one, work, middle);
        bool good = false;
        FT_TRY(ask(t, &one, &good));
        if (good)
            fits = middle;
        else
            fails = middle;
    }
    *out = fits;
    return FT_OK;
}

/* -- changes ----------------------------------------------------------------------------------- */

typedef enum change {
    FLASH,
    BATCH,
    SELECTIVE,
    FULL,
    CACHE_FP8,
    WEIGHTS_8,
    WEIGHTS_4,
    HALF,
    OPTIMIZER_8BIT,
    ADAPTERS,
    CHANGES
} change;

static bool wide(ft_dtype d) { return d == FT_FP32 || d == FT_TF32 || d == FT_FP64; }

/* Applies a change where it says something new. */
static bool apply(change c, ft_workload *w)
{
    const bool training = w->task == FT_TRAIN;
    switch (c) {
    case FLASH:
        if (w->attention != FT_EAGER) return false;
        w->attention = FT_FLASH;
        return true;
    case SELECTIVE: /* Megatron's drops score matrices alone; flash attention never has them */
        if (!training || w->recompute != FT_RECOMPUTE_NONE) return false;
        if (ft__stack(w)->selective == FT_SELECTIVE_CORE_ATTENTION && w->attention != FT_EAGER) return false;
        w->recompute = FT_RECOMPUTE_SELECTIVE;
        return true;
    case FULL:
        if (!training || w->recompute == FT_RECOMPUTE_FULL) return false;
        w->recompute = FT_RECOMPUTE_FULL;
        return true;
    case CACHE_FP8:
        if (training || w->task == FT_FORWARD_PASS || ft_dtype_bytes(w->kv_dtype) <= 1) return false;
        w->kv_dtype = FT_FP8;
        return true;
    case WEIGHTS_8:
    case WEIGHTS_4: {
        const double bits = c == WEIGHTS_8 ? 8 : 4, now = w->weight_bits > 0 ? w->weight_bits : 16;
        if (training || now <= bits) return false;
        w->weight_bits = bits;
        ft__store_uniformly(w, c == WEIGHTS_8 ? FT_STORED_INT8 : FT_STORED_INT4);
        return true;
    }
    case HALF:
        if (!wide(w->dtype)) return false;
        w->dtype = FT_BF16;
        w->autocast = false;
        if (wide(w->kv_dtype)) w->kv_dtype = FT_BF16;
        return true;
    case OPTIMIZER_8BIT:
        if (!training ||
            (w->optimizer != FT_ADAMW && w->optimizer != FT_ADAMW_FOREACH && w->optimizer != FT_ADAMW_LOOP))
            return false;
        w->optimizer = FT_ADAMW_8BIT;
        return true;
    case ADAPTERS:
        if (!training || w->lora_rank > 0) return false;
        w->lora_rank = 16;
        return true;
    case BATCH:
    case CHANGES: return false;
    }
    return false;
}

static int say(char *text, int at, int room, change c, const ft_workload *w)
{
    static const char *const words[CHANGES] = {
        [FLASH] = "attention: flash",  [SELECTIVE] = "recompute: selective",       [FULL] = "recompute: full",
        [CACHE_FP8] = "kv_dtype: fp8", [WEIGHTS_8] = "weights of 8 bits",          [WEIGHTS_4] = "weights of 4 bits",
        [HALF] = "dtype: bf16",        [OPTIMIZER_8BIT] = "optimizer: adamw_8bit", [ADAPTERS] = "lora_rank: 16"};
    if (at >= room) return at;
    const char *comma = at ? ", " : "";
    if (c != BATCH) return at + snprintf(text + at, (size_t)(room - at), "%s%s", comma, words[c]);
    at += snprintf(text + at, (size_t)(room - at), "%sbatch: %lld", comma, (long long)w->batch);
    if (w->task == FT_TRAIN && w->accumulate > 1 && at < room)
        at += snprintf(text + at, (size_t)(room - at), " accumulated %lld times", (long long)w->accumulate);
    return at;
}

/* The workload with these changes. A batch is looked for with the others in place. False: some change says nothing. */
static ft_status with(trial *t, const ft_workload *asked, const bool chosen[CHANGES], ft_workload *out, bool *fits)
{
    bool others = false;
    *out = *asked;
    *fits = false;
    for (int c = 0; c < CHANGES; c++) {
        if (!chosen[c] || c == BATCH) continue;
        if (!apply((change)c, out)) return FT_OK;
        others = true;
    }
    if (chosen[BATCH]) {
        int64_t batch = asked->batch - 1;
        bool enough = false; /* the other changes, to all but one of the sequences: then nothing need be halved */
        ft_workload most = *out;
        set_batch(&most, asked, batch);
        if (others && batch >= 1) FT_TRY(ask(t, &most, &enough));
        if (!enough) FT_TRY(largest_below(t, out, asked->batch, &batch));
        if (batch < 1) return FT_OK;
        set_batch(out, asked, batch);
    }
    return ask(t, out, fits);
}

static ft_status keep(trial *t, const bool chosen[CHANGES], const ft_workload *work, ft_remedy *out)
{
    out->work = *work;
    out->memory = t->memory;
    int at = 0;
    out->text[0] = '\0';
    for (int c = 0; c < CHANGES; c++)
        if (chosen[c]) at = say(out->text, at, (int)sizeof out->text, (change)c, work);
    return FT_OK;
}

/* All changes up to one that suffices, less those that turn out not to be needed. */
static ft_status several(trial *t, const ft_workload *asked, ft_remedy *out, bool *found)
{
    bool chosen[CHANGES] = {false};
    ft_workload work = *asked;
    *found = false;
    for (int c = 0; c < CHANGES && !*found; c++) {
        ft_workload probe = *asked;
        if (c == BATCH && asked->batch <= 1) continue;
        if (c == FULL) chosen[SELECTIVE] = false; /* the stronger of the two */
        if (c == WEIGHTS_4) chosen[WEIGHTS_8] = false;
        for (int k = 0; k < c; k++)
            if (chosen[k]) apply((change)k, &probe);
        if (c != BATCH && !apply((change)c, &probe)) continue;
        chosen[c] = true;
        FT_TRY(with(t, asked, chosen, &work, found));
    }
    if (!*found) return FT_OK;
    for (int c = CHANGES - 1; c >= 0; c--) {
        if (!chosen[c]) continue;
        chosen[c] = false;
        bool still = false;
        ft_workload less;
        FT_TRY(with(t, asked, chosen, &less, &still));
        if (!still) chosen[c] = true;
    }
    bool fits = false;
    FT_TRY(with(t, asked, chosen, &work, &fits));
    return keep(t, chosen, &work, out);
}

ft_status ft__memory_remedy(const ft_workload *work, ft_memory_of memory_of, void *user, ft_remedy *out, ft_error *err)
{
    trial t = {.memory_of = memory_of, .user = user, .err = err};
    *out = (ft_remedy){.work = *work, .gpus = 1, .largest_batch = work->batch};
    bool fits = false;
    FT_TRY(memory_of(work, user, &t.memory, err));
    fits = t.memory.verdict == FT_FIT_YES;
    const ft_memory asked = out->memory = t.memory;
    if (fits) return FT_OK;
    FT_TRY(largest_below(&t, work, work->batch, &out->largest_batch));
    for (int c = 0; c < ADAPTERS; c++) { /* adapters are another training: only where nothing else is enough */
        bool chosen[CHANGES] = {false};
        chosen[c] = true;
        ft_workload one;
        FT_TRY(with(&t, work, chosen, &one, &fits));
        if (fits) return keep(&t, chosen, &one, out);
    }
    FT_TRY(several(&t, work, out, &fits));
    if (fits) return FT_OK;
    /* Sharded evenly, as ZeRO and FSDP do; each GPU keeps a context of its own. */
    const double room = asked.capacity_bytes - asked.context_bytes;
    out->gpus = room > 0 ? (int64_t)fmin(ceil(asked.reserved_bytes / room), 1e9) : 0;
    snprintf(out->text, sizeof out->text, "at least %lld GPUs of this memory", (long long)out->gpus);
    return FT_OK;
}

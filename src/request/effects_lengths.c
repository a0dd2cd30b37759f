/* effects_lengths.c: where documents in sequences, and sequences of many lengths, change nothing. */
#include "model/packing.h"
#include "request/effects_rules.h"

/* Whether the stack would pack examples if nothing were said. */
static bool stack_packs(const ft_workload *of)
{
    ft_workload w = *of;
    w.packed = 0;
    w.one_document = false;
    return ft__documents(&w) > 0;
}

const char *ft__packing_rule(const ft_effect_case *c)
{
    if (!c->trains) return ft__training(c);
    if (c->a->design != FT_DECODER_ONLY || c->a->kv_lora > 0) return "forecast for decoders without latent attention";
    if (!ft__attends(c->a)) return "the model has no attention";
    if (!ft__goes_by_document(c->w)) return "attention goes over whole sequences, masked or not";
    if (ft__timed_rule(c)) return ft__timed_rule(c);
    return c->w->packed < c->w->seq || stack_packs(c->w) ? NULL : "documents are as long as sequences";
}

/* What a model without sequences is told, then whether anything varies. */
const char *ft__lengths_rule(const ft_effect_case *c)
{
    if (!c->trains) return ft__training(c);
    if (ft__counts_samples(c->a) || c->a->fixed_seq > 0) return "the model's inputs have one size";
    return c->r->lengths.batching == FT_BATCH_PACK ? ft__packing_rule(c) : NULL;
}

const char *ft__longer_rule(const ft_effect_case *c)
{
    if (ft__lengths_rule(c)) return ft__lengths_rule(c);
    return ft__given(c->said, FT_KEY_ID_SAMPLE_LENGTHS) ? NULL : "\"lengths\" is left out: all are \"seq\" long";
}

const char *ft__filling_rule(const ft_effect_case *c)
{
    if (ft__longer_rule(c)) return ft__longer_rule(c);
    return c->r->lengths.batching == FT_BATCH_PACK ? "packed sequences are not padded" : NULL;
}

const char *ft__batching_rule(const ft_effect_case *c)
{
    if (ft__longer_rule(c)) return ft__longer_rule(c);
    if (c->r->lengths.batching != FT_BATCH_BUCKET) return NULL;
    return c->w->batch > 1 ? NULL : "a batch of one sequence has no other to match";
}

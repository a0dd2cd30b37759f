/* Sequences that are packed from documents. */
#ifndef FT_MODEL_PACKING_H
#define FT_MODEL_PACKING_H
#include "model/stack.h"

/* Whether attention goes document by document: kernels of variable length do, hand-fused stacks call such ones for
 * sdpa, too. PyTorch's own sdpa, and eager scores, go over whole sequences, masked or not. */
static inline bool ft__goes_by_document(const ft_workload *w)
{
    return ft__flashes(w->attention) || (w->attention == FT_SDPA && w->execution == FT_RUN_FUSED);
}

/* Tokens of the documents that attention goes by; 0: sequences are whole. Adapters are trained on examples, and recipes
 * whose sequences hold many of them say so by their stack. */
static inline int64_t ft__documents(const ft_workload *w)
{
    if (!ft__goes_by_document(w)) return 0;
    if (w->packed > 0 || w->one_document || w->task != FT_TRAIN || w->lora_rank < 1) return w->packed;
    const ft_stack *s = ft__stack(w);
    return (double)w->seq <= s->lora_documents_to ? (int64_t)s->lora_documents : 0;
}
#endif

/* Sequences that are packed from documents. */
#ifndef FT_MODEL_PACKING_H
#define FT_MODEL_PACKING_H
#include "model/workload.h"

/* Whether attention goes document by document: kernels of variable length do, hand-fused stacks call such ones for
 * sdpa, too. PyTorch's own sdpa, and eager scores, go over whole sequences, masked or not. */
static inline bool ft__goes_by_document(const ft_workload *w)
{
    return ft__flashes(w->attention) || (w->attention == FT_SDPA && w->execution == FT_RUN_FUSED);
}
#endif

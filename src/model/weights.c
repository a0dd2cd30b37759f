/* weights.c: weights stored in fewer bits than computed, and who widens them. */
#include "model/workload.h"

/* What loads a format outside of an engine. */
static ft_weight_kernel loader_of(ft_storage stored)
{
    if (stored == FT_STORED_INT8 || stored == FT_STORED_NF4) return FT_WEIGHTS_BITSANDBYTES;
    if (ft__gguf_stores(stored)) return FT_WEIGHTS_GGUF;
    return stored == FT_STORED_INT4 ? FT_WEIGHTS_GPTQ : FT_WEIGHTS_ANY;
}

void ft__store_uniformly(ft_workload *w, ft_storage stored)
{
    bool computes = ft_dtype_bytes(w->dtype) == 2 && !w->autocast && w->task != FT_TRAIN;
    w->by_module = computes && stored != FT_STORED_AS_COMPUTED;
    for (int c = 0; c < FT_OF_OTHER; c++)
        w->formats.of[c] = (ft_weight_format){.given = w->by_module, .stored = stored, .math = w->dtype};
    w->formats.loaded = loader_of(stored);
}

ft_weight_kernel ft__widened_by(const ft_workload *w)
{
    ft_weight_kernel loaded = w->formats.loaded;
    if (w->formats.said != FT_WEIGHTS_ANY) return w->formats.said;
    if (loaded == FT_WEIGHTS_GGUF) return loaded; /* llama.cpp's, which engines carry along for such files */
    if (ft__by_engine(w)) return FT_WEIGHTS_ANY;  /* the usual one for the format: Marlin's, bitsandbytes' for nf4 */
    return ft__compiles(w) ? FT_WEIGHTS_TORCHAO : loaded;
}

/* checkpoint.c: a quantised checkpoint as an engine loads it where a request names no format: each part in its
 * own, with what the GPU has no arithmetic for widened (request/formats.c decides that for every task). */
#include "serving/checkpoint.h"

/* What most of the weights are in. */
static const ft_weight_format *main_part(const ft_arch *a, const ft_formats *formats)
{
    const ft_weight_format *f = &formats->of[a->experts > 0 ? FT_OF_EXPERTS : FT_OF_MLP];
    return f->given ? f : &formats->of[FT_OF_ATTENTION];
}

ft_dtype ft__checkpoint_dtype(const ft_arch *a)
{
    const ft_weight_format *f = main_part(a, &a->formats);
    if (!f->given) return FT_BF16;
    if (f->stored == FT_STORED_MXFP4 && ft_dtype_bytes(f->math) >= 2) return FT_FP4;
    return f->math;
}

/* What a part's products compute in; how its weights lie where that is wider. */
static ft_dtype part(const ft_served *m, ft_weight_class c, ft_storage *storage)
{
    const ft_weight_format *f = &m->formats.of[c];
    if (!f->given) return ft__served_wide(m->device);
    if (f->stored == FT_STORED_MXFP4) { /* activations meet it in mxfp8 where the matrix units take both */
        *storage = f->stored;
        return m->device->peak_tflops[FT_FP4] > 0 ? FT_FP8 : ft__served_wide(m->device);
    }
    if (ft_dtype_bytes(f->math) >= 2) *storage = f->stored;
    return f->math;
}

void ft__checkpoint_settle(ft_served *m)
{
    const ft_weight_format *experts = &m->formats.of[FT_OF_EXPERTS];
    m->storage = m->mlp_storage = m->expert_storage = FT_STORED_AS_COMPUTED;
    m->qkv_dtype = part(m, FT_OF_ATTENTION, &m->storage);
    m->out_dtype = part(m, FT_OF_OUTPUT, &m->storage);
    m->mlp_dtype = part(m, m->arch->experts > 0 ? FT_OF_SHARED : FT_OF_MLP, &m->mlp_storage);
    m->expert_dtype = part(m, FT_OF_EXPERTS, &m->expert_storage);
    m->blocks = false;
    for (int c = 0; c < FT_OF_OTHER; c++) {
        const ft_weight_format *f = &m->formats.of[c];
        m->blocks = m->blocks || (f->given && f->stored == FT_STORED_FP8_BLOCK && f->math == FT_FP8);
    }
    if (experts->given && experts->stored == FT_STORED_FP8_BLOCK) m->expert_storage = FT_STORED_FP8_BLOCK;
}

/* merged.c: two passes before the head, of which the second's attention reads keys of both.
 *
 * An encoder and a decoder of the same layers, whose attention reads its own keys and the encoder's at once, by the
 * same products (T5Gemma 2): `seq` is the length of the source and of the target; images stand in the source alone.
 * Or one stack that reads a prompt, then denoises a canvas behind it that sees both ways (DiffusionGemma): one step of
 * block diffusion. */
#include "graph/emit.h"
#include "model/mixers.h"
#include "model/picture_size.h"
#include "model/relative.h"

static ft_ref encode_with(ft_maker *m, ft_ref seen, ft_ref *table)
{
    ft_build *b = &m->b;
    const ft_arch *whole = m->arch;
    ft_arch own = *whole;
    own.bidirectional = own.merged; /* a prompt is read in its order */
    own.merged = false;
    m->arch = &own;
    ft__block_open(b, FT_BLOCK(ENCODER_EMBED), 1, FT_NONE);
    ft_ref tokens = ft__input(b, m->batch, m->q_len, 8);
    ft_ref x = ft__embedding(b, FT_AT(EMBED_TOKENS), tokens, own.vocab, own.hidden, table);
    x = ft__pointwise(b, FT_AT(EMBED_SCALE), "mulu", x);
    if (seen != FT_NONE) {
        ft__no_grad_kernels(b, FT_AT(EMBED_TOKENS), "compare", FT_NONE, m->batch * m->q_len, own.hidden, 1, 2);
        x = ft__scatter(b, FT_AT(EMBED_TOKENS), x, seen, 0, false, false);
    }
    if (own.position == FT_ROTARY) ft__part_rotary_tables(m, own.rotary_dim > 0 ? own.rotary_dim : own.head_dim);
    x = ft__block_close(b, ft__dropout(b, FT_AT(EMBED_DROPOUT), x, own.embed_dropout));
    b->untracked = own.canvas > 0; /* weights are made where the canvas passes them */
    x = ft__part_layers(m, x);
    x = ft__block_open(b, FT_BLOCK(ENCODER_NORM), 1, x);
    x = ft__block_close(b, ft__part_norm(m, FT_AT(ENCODER_NORM), x, own.norm, own.norm_bias));
    b->untracked = false;
    m->arch = whole;
    return x;
}

static ft_ref encode(ft_maker *m)
{
    ft_ref table = FT_NONE;
    return encode_with(m, FT_NONE, &table);
}

ft_ref ft__part_encode_before(ft_maker *m, ft_ref seen, ft_ref *table)
{
    const ft_workload *w = m->work;
    const ft_arch *a = m->arch;
    int64_t target = m->q_len, kept = m->kv_len;
    int64_t pictures = w->images > 0 ? w->images * ft__picture_tokens(a, w->image_height, w->image_width) : 0;
    if (w->task == FT_DECODE) {
        ft__encoder_at_rest(m, encode, (double)a->vocab * (double)a->hidden);
    } else {
        m->q_len = m->kv_len = w->seq;
        m->source = encode_with(m, seen, table);
        if (w->task == FT_PREFILL) pictures = w->seq - 1; /* the word that starts the answer */
        m->q_len = target > pictures ? target - pictures : 1;
        m->kv_len = kept > pictures ? kept - pictures : 1;
    }
    m->source_len = w->seq;
    return FT_NONE;
}

ft_ref ft__part_prompt_before(ft_maker *m, ft_ref seen, ft_ref *table)
{
    const ft_workload *w = m->work;
    if (w->task != FT_FORWARD_PASS) {
        ft__build_fail(
            &m->b, FT_E_UNSUPPORTED,
            "%s denoises a canvas in steps: \"forward\" is a prompt and one step, and nothing else is modelled",
            m->arch->model_type);
        return FT_NONE;
    }
    encode_with(m, seen, table);
    m->source_len = w->seq;
    m->q_len = m->kv_len = m->arch->canvas;
    return FT_NONE;
}

ft_ref ft__part_conditioned(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    ft_at at = FT_AT(EMBED_PROJECT_IN);
    ft_ref last = ft__fill(b, at, m->batch * m->q_len, a->hidden, b->stored, ft_dtype_bytes(b->stored));
    last = ft__part_norm(m, at, last, a->norm, a->norm_bias);
    last = ft__part_mlp(m, last, a->ffn, a->activation, true, a->fused_gate_up, FT_NO_BIAS);
    return ft__part_norm_bare(m, at, ft__add(b, at, x, last));
}

/* protein.c: what reads a protein beside words (Evolla: SaProt, an encoder of ESM's kind over amino acids with what is
 * near each in space, then queries that sum it up; arXiv 2023.10.01.560349 and 2025.01.05.630192 on bioRxiv). Its
 * result is the source that layers of the words look at (aligner.c). transformers keeps nothing of it: every step of
 * decoding reads the protein again. */
#include "graph/emit.h"
#include "model/mixers.h"
#include "model/relative.h"

/* The words' own ways in those of the encoder. */
static ft_arch encoder_of(const ft_arch *a)
{
    const ft_stack_size *s = &a->protein.reader;
    ft_arch own = {.model_type = a->model_type,
                   .design = FT_DECODER_ONLY,
                   .layers = s->layers,
                   .hidden = s->hidden,
                   .ffn = s->ffn,
                   .heads = s->heads,
                   .kv_heads = s->heads,
                   .head_dim = s->hidden / s->heads,
                   .rotary_dim = s->hidden / s->heads,
                   .vocab = a->protein.vocab,
                   .activation = "gelu",
                   .qkv_bias = true,
                   .key_bias = true,
                   .out_bias = true,
                   .mlp_bias = true,
                   .norm = FT_LAYERNORM,
                   .norm_bias = true,
                   .position = FT_ROTARY,
                   .rotary_fp32 = true,
                   .query_scale = true,
                   .softmax_fp32 = true,
                   .bidirectional = true,
                   .attention_dropout = a->protein.dropout,
                   .residual_dropout = a->protein.dropout,
                   .mlp_dropout = a->protein.dropout};
    return own;
}

static ft_ref normed(ft_maker *m, ft_at at, ft_ref x) { return ft__part_norm(m, at, x, FT_LAYERNORM, true); }

/* Masked residues are zeroed, and the others grow by as much: SaProt was trained so. */
static ft_ref residues(ft_maker *m)
{
    enum { COUNTED = 6 };
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    const int64_t rows = m->batch * m->q_len;
    ft_ref table = FT_NONE;
    ft_ref x = ft__embedding(b, FT_AT(EMBED_TOKENS), ft__input(b, m->batch, m->q_len, 8), a->vocab, a->hidden, &table);
    ft_ref mask = ft__no_grad_kernels(b, FT_AT(MASK), "compare", FT_NONE, rows, 1, 8, COUNTED);
    x = ft__pointwise2(b, FT_AT(EMBED_SCALE), "where", x, mask);
    for (int i = 0; i < 3; i++) x = ft__pointwise(b, FT_AT(EMBED_SCALE), "mulu", x); /* two ratios, and the mask */
    return x;
}

/* `latents` queries look at the residues and at themselves. */
static ft_ref summed_up(ft_maker *m, ft_ref latents, ft_ref seen, const ft_protein *p)
{
    ft_build *b = &m->b;
    ft_at at = FT_AT(PROJECTOR_QUERIES);
    const int64_t wide = ft__tensor_of(b, seen)->cols, inner = p->latent_heads * p->latent_dim,
                  keys = m->q_len + p->latents;
    const int64_t pairs = m->batch * p->latent_heads, halves[2] = {inner, inner};
    ft_ref own = normed(m, FT_AT(PROJECTOR_NORM), latents), part[2];
    ft_ref both[2] = {normed(m, FT_AT(PROJECTOR_NORM), seen), own};
    ft_ref q = ft__linear(b, at, own, inner, FT_NO_BIAS, FT_WHOLE);
    ft_ref kv = ft__linear(b, at, ft__cat(b, at, 2, both, m->batch * keys, wide), 2 * inner, FT_NO_BIAS, FT_WHOLE);
    ft__split(b, kv, 2, halves, part);
    q = ft__contiguous(b, at, ft__view(b, ft__pointwise(b, at, "mulu", q), pairs * p->latents, p->latent_dim, true));
    for (int i = 0; i < 2; i++)
        part[i] = ft__contiguous(b, at, ft__view(b, part[i], pairs * keys, p->latent_dim, true));
    const ft_scored of = {.groups = pairs, .queries = p->latents, .keys = keys, .dim = p->latent_dim};
    ft_ref y = ft__part_scored(m, at, q, part[0], part[1], &of);
    y = ft__contiguous(b, at, ft__view(b, y, m->batch * p->latents, inner, true));
    latents = ft__add(b, at, ft__linear(b, at, y, wide, FT_NO_BIAS, FT_WHOLE), latents);
    y = ft__part_mlp(m, normed(m, FT_AT(PROJECTOR_NORM), latents), p->latent_ffn * wide, "gelu", false, false,
                     FT_NO_BIAS);
    return ft__add(b, at, y, latents);
}

void ft__part_protein(ft_maker *m)
{
    enum { MOST_LAYERS = 64 };
    ft_build *b = &m->b;
    const ft_arch *whole = m->arch;
    const ft_workload *asked = m->work;
    const ft_protein *p = &whole->protein;
    ft_arch own = encoder_of(whole);
    ft_workload once = *asked;
    if (asked->task != FT_TRAIN) once.task = FT_FORWARD_PASS; /* nothing of it is kept */
    ft_maker reader = *m;
    reader.arch = &own;
    reader.work = &once;
    reader.q_len = reader.kv_len = asked->source > 0 ? asked->source : p->usual;
    ft__block_open(&reader.b, FT_BLOCK(ENCODER_EMBED), 1, FT_NONE);
    ft_ref x = residues(&reader);
    ft__part_rotary_tables(&reader, own.head_dim);
    x = ft__block_open(&reader.b, FT_BLOCK(ENCODER_LAYERS), own.layers, ft__block_close(&reader.b, x));
    x = ft__block_close(&reader.b, ft__part_last_layer(&reader, x));
    x = ft__block_open(&reader.b, FT_BLOCK(ENCODER_NORM), 1, x);
    x = normed(&reader, FT_AT(ENCODER_NORM), x);
    ft_ref latents = ft__copy(&reader.b, FT_AT(PROJECTOR_QUERIES),
                              ft__parameter(&reader.b, "latents", p->latents, own.hidden), m->batch * p->latents,
                              own.hidden);
    for (int64_t i = 0; i < p->latent_layers && i < MOST_LAYERS; i++) latents = summed_up(&reader, latents, x, p);
    latents = ft__linear(&reader.b, FT_AT(PROJECTOR_FC2), latents, whole->hidden, FT_BIAS, FT_WHOLE);
    latents = ft__block_close(&reader.b, normed(&reader, FT_AT(PROJECTOR_NORM), latents));
    *b = reader.b;
    m->source = latents;
    m->source_len = p->latents;
}

/* bytes.c: a model of bytes (BLT, Pagnoni et al. 2024). A small model that is not trained reads all bytes, and where
 * the next one is hard to tell a group begins. A few narrow layers read the bytes, with embeddings of the last three to
 * eight of them by their hashes; states of a group's bytes become wide ones, over which the model's own layers run; and
 * narrow layers that look at those write the bytes. How many groups there are depends on the text: here they are as
 * long as the config's patch_size says. */
#include "graph/emit.h"
#include "model/latent.h"
#include "model/mixers.h"
#include "model/relative.h"

/* The model's own ways in the sizes of another stack. */
static ft_arch sized(const ft_arch *a, const ft_stack_size *s)
{
    ft_arch own = *a;
    own.layers = s->layers;
    own.hidden = s->hidden;
    own.ffn = s->ffn;
    own.heads = s->heads;
    own.kv_heads = s->kv_heads;
    own.head_dim = own.rotary_dim = s->hidden / s->heads;
    own.bytes = (ft_bytes){0};
    own.kind_count = 0; /* all of them alike */
    return own;
}

static ft_ref normed(ft_maker *m, ft_at at, ft_ref x)
{
    return ft__part_norm(m, at, x, m->arch->norm, m->arch->norm_bias);
}

/* x of q_len rows a sequence looks at `over`, of kv_len rows: those of its group alone, by a mask of numbers. */
static ft_ref looking(ft_maker *m, ft_ref x, ft_ref over, int64_t q_len, int64_t kv_len)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t wide = a->heads * a->head_dim, narrow = a->kv_heads * a->head_dim;
    ft__module(b, 2);
    ft_ref q = ft__linear(b, FT_AT(CROSS_Q_PROJ), normed(m, FT_AT(CROSS_NORM), x), wide, FT_NO_BIAS, FT_CUT_COLUMNS);
    over = normed(m, FT_AT(CROSS_NORM), over);
    ft_ref k = ft__linear(b, FT_AT(CROSS_K_PROJ), over, narrow, FT_NO_BIAS, FT_CUT_COLUMNS);
    ft_ref v = ft__linear(b, FT_AT(CROSS_V_PROJ), over, narrow, FT_NO_BIAS, FT_CUT_COLUMNS);
    ft_scores s = {.shape = {.batch = m->batch,
                             .heads = a->heads,
                             .kv_heads = a->kv_heads,
                             .q_len = q_len,
                             .kv_len = kv_len,
                             .head_dim = a->head_dim,
                             .masked = true},
                   .scale = true,
                   .float_mask = true,
                   .softmax_fp32 = a->softmax_fp32};
    q = ft__view(b, q, m->batch * q_len * a->heads, a->head_dim, true);
    k = ft__view(b, k, m->batch * kv_len * a->kv_heads, a->head_dim, true);
    v = ft__view(b, v, m->batch * kv_len * a->kv_heads, a->head_dim, true);
    ft_ref y = ft__part_attend(m, FT_AT(CROSS_ATTEND), q, k, v, &s);
    y = ft__linear(b, FT_AT(CROSS_O_PROJ), y, a->hidden, FT_NO_BIAS, FT_CUT_ROWS);
    y = ft__add(b, FT_AT(CROSS_RESIDUAL), y, x); /* within the module, and once more behind it */
    return ft__add(b, FT_AT(CROSS_RESIDUAL), x, y);
}

/* Every byte's entropy by a model of its own, and of them where groups begin. */
static void grouped(ft_maker *m)
{
    enum { ENTROPY = 6, STARTS = 16 };
    ft_build *b = &m->b;
    const ft_arch *whole = m->arch;
    ft_arch own = sized(whole, &whole->bytes.grouper);
    ft_ref table = FT_NONE;
    bool frozen = b->frozen;
    int64_t bytes = m->batch * m->q_len;
    if (own.layers < 1) return;
    m->arch = &own;
    b->frozen = true;
    ft__block_open(b, FT_BLOCK(CONDITION), 1, FT_NONE);
    ft_ref x = ft__embedding(b, FT_AT(EMBED_TOKENS), ft__input(b, m->batch, m->q_len, 8), own.vocab, own.hidden,
                             &table);
    ft__part_rotary_tables(m, own.head_dim);
    x = ft__block_open(b, FT_BLOCK(LAYERS_FREE), own.layers, ft__block_close(b, x));
    x = ft__block_close(b, ft__part_last_layer(m, x));
    x = ft__block_open(b, FT_BLOCK(ENCODER_NORM), 1, x);
    x = ft__linear(b, FT_AT(HEAD_DENSE), normed(m, FT_AT(ENCODER_NORM), x), own.vocab, FT_NO_BIAS, FT_WHOLE);
    ft__no_grad_kernels(b, FT_AT(HEAD_DENSE), "copy", x, bytes, own.vocab, ft_dtype_bytes(b->stored), ENTROPY);
    ft__no_grad_kernels(b, FT_AT(MASK), "copy", FT_NONE, m->batch, m->q_len, 8, STARTS);
    ft__sync(b, FT_AT(MASK));
    ft__block_close(b, x);
    b->frozen = frozen;
    m->arch = whole;
}

/* Bytes, and for each hash of the last few of them a row of one large table. */
static ft_ref embedded(ft_maker *m, ft_ref *bytes)
{
    enum { A_HASH = 8 };
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    const ft_bytes *of = &a->bytes;
    int64_t width = of->reader.hidden;
    ft_ref table = FT_NONE, tokens = ft__input(b, m->batch, m->q_len, 8);
    ft_ref x = ft__embedding(b, FT_AT(EMBED_TOKENS), tokens, a->vocab, width, bytes);
    for (int64_t i = 0; i < of->hashes && b->status == FT_OK; i++) {
        ft_ref hash = ft__no_grad_kernels(b, FT_AT(PER_LAYER), "copy", FT_NONE, m->batch, m->q_len, 8, A_HASH);
        ft_ref row = ft__embedding(b, FT_AT(PER_LAYER), hash, of->hashes * of->hash_rows, width, &table);
        x = ft__add(b, FT_AT(PER_LAYER), x, row);
    }
    return x;
}

void ft__make_bytes(ft_maker *m)
{
    enum { MASKS = 8 };
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    const ft_bytes *of = &a->bytes;
    ft_arch reader = sized(a, &of->reader), writer = sized(a, &of->writer);
    int64_t bytes = m->q_len, groups = (bytes + of->group - 1) / of->group, states = groups * of->parts;
    if (m->work->task == FT_PREFILL || m->work->task == FT_DECODE) {
        ft__build_fail(
            b, FT_E_UNSUPPORTED,
            "%s groups bytes as it reads them, and what a step of decoding runs depends on the text: ask for "
            "\"forward\" or \"train\"",
            a->model_type);
        return;
    }
    grouped(m);
    ft_ref table = FT_NONE;
    ft__block_open(b, FT_BLOCK(ENCODER_EMBED), 1, FT_NONE);
    ft_ref x = embedded(m, &table);
    ft__no_grad_kernels(b, FT_AT(MASK), "copy", FT_NONE, m->batch * bytes, 2 * states, ft_dtype_bytes(b->stored),
                        MASKS);
    m->mask = FT_NONE;
    m->arch = &reader;
    ft__part_rotary_tables(m, reader.head_dim);
    x = ft__block_open(b, FT_BLOCK(ENCODER_LAYERS), reader.layers, ft__block_close(b, x));
    ft_ref read = ft__block_close(b, ft__part_last_layer(m, x));
    x = ft__block_open(b, FT_BLOCK(ENCODER_NORM), 1, read);
    ft_ref group = ft__permute(b, FT_AT(CROSS_MERGE), x, m->batch * groups); /* the largest of each group, by channel */
    group = ft__linear(b, FT_AT(CROSS_MERGE), group, of->parts * reader.hidden, FT_NO_BIAS, FT_WHOLE);
    group = looking(m, ft__view(b, group, m->batch * states, reader.hidden, false), x, states, bytes);
    group = ft__view(b, group, m->batch * groups, of->parts * reader.hidden, false);
    if (of->parts * reader.hidden != a->hidden)
        group = ft__linear(b, FT_AT(EMBED_PROJECT_IN), group, a->hidden, FT_NO_BIAS, FT_WHOLE);
    m->arch = a;
    m->q_len = m->kv_len = groups;
    ft__part_rotary_tables(m, a->head_dim);
    group = ft__part_layers(m, ft__block_close(b, group));
    m->q_len = m->kv_len = bytes;
    m->arch = &writer;
    ft__block_open(b, FT_BLOCK(DECODER_EMBED), 1, FT_NONE);
    group = ft__linear(b, FT_AT(EMBED_PROJECT_IN), group, of->parts * writer.hidden, FT_NO_BIAS, FT_WHOLE);
    group = ft__view(b, group, m->batch * states, writer.hidden, false);
    ft__part_rotary_tables(m, writer.head_dim);
    x = ft__block_close(b, ft__view(b, read, m->batch * bytes, writer.hidden, false));
    int64_t looks = of->writer.looks_each ? writer.layers : 1;
    x = ft__block_open(b, FT_BLOCK(DECODER_LAYERS), looks, x);
    x = ft__block_close(b, ft__part_last_layer(m, looking(m, x, group, bytes, states)));
    if (writer.layers > looks) {
        x = ft__block_open(b, FT_BLOCK(DECODER_LAYERS_DENSE), writer.layers - looks, x);
        x = ft__block_close(b, ft__part_last_layer(m, x));
    }
    x = ft__block_open(b, FT_BLOCK(HEAD), 1, x);
    ft__block_close(b, ft__part_logits(m, x, table, writer.hidden));
    m->arch = a;
}

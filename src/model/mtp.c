/* mtp.c: multi-token prediction (DeepSeek-V3, arXiv 2412.19437, section 2.2): behind the last layer, module k reads
 * what the module before it made and the embedding of the token k places on, each behind a norm, joins them by one
 * product, runs a layer like the model's, and asks the model's own head for the token after that. Embedding and head
 * are shared.
 *
 * Left out: an engine's acceptance of what was drafted; in a decode step a module runs once over the step's tokens. */
#include "graph/emit.h"
#include "model/mixers.h"

/* Both halves through one product; of several residual streams each by itself, as DeepSeek-V4 does. */
static ft_ref joined(ft_maker *m, ft_ref x, ft_ref next)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t tokens = m->batch * m->q_len, streams = a->streams > 1 ? a->streams : 1;
    next = ft__part_norm(m, FT_AT(MTP_NORM), next, a->norm, a->norm_bias);
    if (streams > 1) x = ft__view(b, x, tokens * streams, a->hidden, false);
    x = ft__part_norm(m, FT_AT(MTP_NORM), x, a->norm, a->norm_bias);
    if (streams == 1) {
        ft_ref both[2] = {next, x};
        ft_ref side = ft__cat(b, FT_AT(MTP_CAT), 2, both, tokens, 2 * a->hidden);
        return ft__linear(b, FT_AT(MTP_PROJ), side, a->hidden, FT_NO_BIAS, FT_WHOLE);
    }
    next = ft__linear(b, FT_AT(MTP_PROJ), next, a->hidden, FT_NO_BIAS, FT_WHOLE);
    x = ft__linear(b, FT_AT(MTP_PROJ), x, a->hidden, FT_NO_BIAS, FT_WHOLE);
    ft_ref spread = ft__copy(b, FT_AT(MTP_CAT), next, tokens, streams * a->hidden);
    return ft__add(b, FT_AT(MTP_CAT), ft__view(b, x, tokens, streams * a->hidden, false), spread);
}

ft_ref ft__part_mtp(ft_maker *m, ft_ref x, ft_ref table, ft_ref head)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    ft_ref sum = FT_NONE;
    for (int64_t i = 0; i < m->work->mtp && b->status == FT_OK; i++) {
        ft_ref tokens = ft__input(b, m->batch, m->q_len, 8);
        int64_t width = a->embed_width ? a->embed_width : a->hidden;
        ft_ref next = ft__embedding(b, FT_AT(MTP_EMBED), tokens, a->vocab, width, &table);
        ft__module(b, 1);
        x = ft__part_last_layer(m, joined(m, x, next));
        ft_ref y = a->streams > 1 ? ft__part_hyper_head(m, x) : x;
        y = ft__part_head(m, ft__part_norm(m, FT_AT(MTP_NORM), y, a->norm, a->norm_bias), head);
        if (m->work->task != FT_TRAIN) continue;
        y = ft__pointwise(b, FT_AT(LOSS), "mulu", y); /* its share of the whole loss */
        sum = sum == FT_NONE ? y : ft__add(b, FT_AT(LOSS), sum, y);
    }
    return sum;
}

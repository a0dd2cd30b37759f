/* drafts.c: a drafter beside a target model (Gemma 4's assistants): what the target made of the last tokens stands in
 * the place of words, and goes out again as the target's next states. Of the words it may score only the groups that
 * look best by their centroids. */
#include "graph/emit.h"
#include "model/mixers.h"
#include "model/relative.h"

ft_ref ft__part_draft_open(ft_maker *m, ft_ref *table)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    *table = ft__weight(b, "embed_tokens.weight", a->vocab, a->hidden); /* which the head alone reads */
    ft_ref states = ft__input(b, m->batch * m->q_len, 2 * a->draft_width, ft_dtype_bytes(b->stored));
    return ft__linear(b, FT_AT(EMBED_PROJECT_IN), states, a->hidden, FT_NO_BIAS, FT_WHOLE);
}

void ft__part_draft_close(ft_maker *m, ft_ref x)
{
    ft__linear(&m->b, FT_AT(HEAD_PROJECT_OUT), x, m->arch->draft_width, FT_NO_BIAS, FT_WHOLE);
}

/* Rows of the chosen groups' words are gathered for every token, multiplied, and put where they belong. */
ft_ref ft__part_draft_words(ft_maker *m, ft_ref x, ft_ref table)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    ft_at at = FT_AT(LM_HEAD);
    int64_t tokens = ft__tensor_of(b, x)->rows, words = a->centroid_topk * (a->vocab / a->centroids);
    ft_ref groups = ft__linear(b, at, x, a->centroids, FT_NO_BIAS, FT_WHOLE);
    ft__topk(b, at, groups, tokens, a->centroids, a->centroid_topk, NULL);
    ft_ref rows = ft__embedding(b, at, ft__input(b, tokens, words, 8), a->vocab, a->hidden, &table);
    ft_ref logits = ft__matmul(b, at, x, rows, tokens, 1, words, a->hidden, "nt");
    ft_ref all = ft__fill(b, at, tokens, a->vocab, b->stored, ft_dtype_bytes(b->stored));
    return ft__scatter(b, at, all, ft__view(b, logits, tokens, words, false), 0, false, true);
}

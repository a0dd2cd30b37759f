/* actor.c: π0 (Black et al. 2024, arXiv 2410.24164): a language model that sees reads a prompt, both ways, and a second
 * stack of as many narrower layers makes a robot's next actions of noise, in a few steps that all read the prompt's
 * keys and values, layer by layer (flow matching).
 *
 * A forward pass and a step of training are the prompt and one step. Its layers stand side by side here, each of the
 * second stack behind the first's, whose keys it reads; transformers runs one stack after the other, which is the same
 * work. "prefill" is the prompt, "decode" a step: all actions at once, of a cache that does not grow. */
#include "graph/emit.h"
#include "model/mixers.h"
#include "model/relative.h"

typedef struct sides {
    ft_arch prompt, actor;
    int64_t words, actions; /* of a sequence; the robot's state is one token before the actions */
    ft_ref cos[2], sin[2];
} sides;

static sides both_sides(const ft_maker *m)
{
    const ft_arch *a = m->arch;
    const ft_actor *of = &a->actor;
    sides s = {.prompt = *a, .actor = *a, .words = m->work->seq, .actions = of->actions + 1};
    s.prompt.bidirectional = true;
    s.actor.layers = of->size.layers;
    s.actor.hidden = of->size.hidden;
    s.actor.ffn = of->size.ffn;
    s.actor.heads = of->size.heads;
    s.actor.kv_heads = of->size.kv_heads;
    s.actor.head_dim = s.actor.rotary_dim = of->head_dim;
    s.actor.kind_count = 0;
    return s;
}

/* From here on the maker is at work on one of the stacks. */
static void turn_to(ft_maker *m, sides *s, bool actor)
{
    m->arch = actor ? &s->actor : &s->prompt;
    m->q_len = m->kv_len = actor ? s->actions : s->words;
    m->source_len = actor ? s->words : 0;
    m->cos = s->cos[actor];
    m->sin = s->sin[actor];
    if (!actor) m->beside_keys = m->beside_values = FT_NONE;
}

static void tables(ft_maker *m, sides *s, bool actor)
{
    turn_to(m, s, actor);
    ft__part_rotary_tables(m, m->arch->head_dim);
    s->cos[actor] = m->cos;
    s->sin[actor] = m->sin;
}

static ft_ref normed(ft_maker *m, ft_ref x)
{
    return ft__part_norm(m, FT_AT(NORM), x, m->arch->norm, m->arch->norm_bias);
}

/* Words, and what images became in their places. */
static ft_ref embedded(ft_maker *m, sides *s, ft_ref seen)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    const int64_t rows = m->batch * s->words;
    ft_ref table = FT_NONE;
    ft_ref x = ft__embedding(b, FT_AT(EMBED_TOKENS), ft__input(b, m->batch, s->words, 8), a->vocab, a->hidden, &table);
    x = ft__pointwise(b, FT_AT(EMBED_SCALE), "mulu", x);
    if (seen == FT_NONE) return x;
    ft__no_grad_kernels(b, FT_AT(EMBED_TOKENS), "compare", FT_NONE, rows, a->hidden, 1, 2);
    return ft__scatter(b, FT_AT(EMBED_TOKENS), x, seen, 0, false, false);
}

/* The robot's state, and noise with the sines of the step's time beside it. */
static ft_ref noise(ft_maker *m, const sides *s)
{
    enum { SINES = 5 };
    ft_build *b = &m->b;
    const ft_actor *of = &m->arch->actor;
    const int64_t wide = of->size.hidden, rows = m->batch * of->actions;
    const double element = ft_dtype_bytes(b->stored);
    ft_at at = FT_AT(EMBED_PROJECT_IN);
    if (m->work->task ==
        FT_TRAIN) /* noise is drawn, mixed with the actions, and the way between them is what is learned */
        ft__no_grad_kernels(b, at, "copy", FT_NONE, rows, of->action_width, element, SINES);
    ft_ref state = ft__linear(b, at, ft__input(b, m->batch, of->state_width, element), wide, FT_BIAS, FT_WHOLE);
    ft_ref x = ft__linear(b, at, ft__input(b, rows, of->action_width, element), wide, FT_BIAS, FT_WHOLE);
    ft_ref time = ft__no_grad_kernels(b, at, "copy", FT_NONE, m->batch, wide, element, SINES);
    ft_ref both[2] = {x, ft__expand(b, time, rows, wide)};
    x = ft__linear(b, at, ft__cat(b, at, 2, both, rows, 2 * wide), wide, FT_BIAS, FT_WHOLE);
    x = ft__linear(b, at, ft__pointwise(b, at, "silu", x), wide, FT_BIAS, FT_WHOLE);
    ft_ref all[2] = {state, x};
    return ft__cat(b, at, 2, all, m->batch * s->actions, wide);
}

/* A layer of the second stack reads the keys and values of `m`'s last attention, or those of a cache. */
static ft_ref acts(ft_maker *m, sides *s, ft_ref y)
{
    ft_build *b = &m->b;
    const ft_workload *asked = m->work;
    ft_workload own = *asked;
    m->beside_keys = m->keys;
    m->beside_values = m->values;
    if (asked->task == FT_DECODE) {
        const int64_t rows = m->batch * s->words * s->prompt.kv_heads, dim = s->prompt.head_dim;
        const double bytes = ft_dtype_bytes(asked->kv_dtype);
        m->beside_keys = ft__view(b, ft__cache(b, rows, dim, bytes), rows, dim, false);
        m->beside_values = ft__view(b, ft__cache(b, rows, dim, bytes), rows, dim, false);
        own.task = FT_FORWARD_PASS; /* what it adds to the cache is taken out again */
    }
    m->work = &own;
    turn_to(m, s, true);
    y = ft__part_last_layer(m, y);
    m->work = asked;
    turn_to(m, s, false);
    return y;
}

/* Layer by layer of both; of the last one nobody reads what the prompt became. */
static ft_ref layers_of_both(ft_maker *m, sides *s, ft_ref both)
{
    ft_build *b = &m->b;
    const int64_t rows[2] = {m->batch * s->words, m->batch * s->actions}, cols[2] = {s->prompt.hidden, s->actor.hidden};
    for (int part = s->prompt.layers > 1 ? 0 : 1; part < 2 && b->status == FT_OK; part++) {
        ft_ref x[2];
        both = ft__block_open(b, part ? FT_BLOCK(LAYERS_LAST) : FT_BLOCK(LAYERS), part ? 1 : s->prompt.layers - 1,
                              both);
        ft__apart(b, both, rows, cols, x);
        turn_to(m, s, false);
        x[0] = ft__part_last_layer(m, x[0]);
        x[1] = acts(m, s, x[1]);
        if (part) normed(m, x[0]);
        both = ft__block_close(b, part ? x[1] : ft__both(b, x[0], x[1]));
    }
    return both;
}

/* The velocity of every action, and what it is off. */
static ft_ref velocity(ft_maker *m, sides *s, ft_ref y)
{
    ft_build *b = &m->b;
    const ft_actor *of = &m->arch->actor;
    const double element = ft_dtype_bytes(b->stored);
    turn_to(m, s, true);
    y = ft__slice(b, normed(m, y), m->batch * of->actions, of->size.hidden);
    y = ft__linear(b, FT_AT(HEAD_DENSE), ft__contiguous(b, FT_AT(HEAD), y), of->action_width, FT_BIAS, FT_WHOLE);
    turn_to(m, s, false);
    if (m->work->task != FT_TRAIN) return y;
    return ft__pair_loss(b, FT_AT(LOSS), "mse", y, ft__input(b, m->batch * of->actions, of->action_width, element));
}

/* The prompt alone: its cache is what the steps read. */
static ft_ref prompt_alone(ft_maker *m)
{
    ft_build *b = &m->b;
    sides s = both_sides(m);
    const ft_arch *whole = m->arch;
    ft_ref seen = ft__part_tower(m);
    ft__block_open(b, FT_BLOCK(EMBED), 1, FT_NONE);
    ft_ref x = embedded(m, &s, seen);
    tables(m, &s, false);
    x = ft__block_open(b, FT_BLOCK(LAYERS), s.prompt.layers, ft__block_close(b, x));
    x = ft__block_close(b, ft__part_last_layer(m, x));
    x = ft__block_open(b, FT_BLOCK(HEAD), 1, x);
    x = ft__block_close(b, normed(m, x));
    m->arch = whole;
    return x;
}

/* One step over the actions. */
static ft_ref step_alone(ft_maker *m)
{
    ft_build *b = &m->b;
    sides s = both_sides(m);
    const ft_arch *whole = m->arch;
    m->keys = m->values = FT_NONE;
    ft__block_open(b, FT_BLOCK(DECODER_EMBED), 1, FT_NONE);
    ft_ref y = noise(m, &s);
    tables(m, &s, true);
    y = ft__block_open(b, FT_BLOCK(DECODER_LAYERS), s.actor.layers, ft__block_close(b, y));
    y = ft__block_close(b, acts(m, &s, y));
    y = ft__block_open(b, FT_BLOCK(HEAD), 1, y);
    y = ft__block_close(b, velocity(m, &s, y));
    m->arch = whole;
    return y;
}

void ft__make_actor(ft_maker *m)
{
    ft_build *b = &m->b;
    const ft_arch *whole = m->arch;
    sides s = both_sides(m);
    m->mask = FT_NONE;
    if (m->work->task == FT_PREFILL) {
        ft__encoder_at_rest(m, step_alone, 0);
        ft__part_unused_weights(m);
        prompt_alone(m);
        return;
    }
    if (m->work->task == FT_DECODE) {
        ft__encoder_at_rest(m, prompt_alone, 0);
        ft__part_unused_weights(m);
        step_alone(m);
        return;
    }
    ft_ref seen = ft__part_tower(m);
    ft__block_open(b, FT_BLOCK(EMBED), 1, FT_NONE);
    ft_ref x = embedded(m, &s, seen), y = noise(m, &s);
    ft__part_unused_weights(m);
    for (int i = 0; i < 2; i++) tables(m, &s, i);
    y = layers_of_both(m, &s, ft__block_close(b, ft__both(b, x, y)));
    y = ft__block_open(b, FT_BLOCK(HEAD), 1, y);
    ft__block_close(b, velocity(m, &s, y));
    m->arch = whole;
}

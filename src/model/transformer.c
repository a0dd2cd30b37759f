/* transformer.c: decoder-only language models, from gpt2 to gpt_oss, as transformers launches them. */
#include "graph/emit.h"
#include "model/layer.h"
#include "model/mixers.h"
#include "model/parts.h"
#include "model/plan.h"
#include "model/relative.h"

static ft_layer_kind kind_at(const ft_arch *a, int64_t i)
{
    ft_layer_shape l = ft__layer_at(a, i);
    return (ft_layer_kind){.mixer = l.mixer,
                           .feed = l.feed,
                           .windowed = l.window > 0,
                           .rotated = l.rotated,
                           .looks = a->cross_every > 0 &&
                                    i % a->cross_every == (a->cross_behind ? a->cross_every - 1 : 0)};
}

/* Layer number `i`, counted behind the leading dense ones. */
static ft_layer_kind kind_of(const ft_arch *a, int64_t i)
{
    return kind_at(a, i + (a->experts > 0 ? a->first_dense : 0));
}

static bool equal(ft_layer_kind x, ft_layer_kind y)
{
    return x.feed == y.feed && x.windowed == y.windowed && x.rotated == y.rotated && x.looks == y.looks;
}

/* A pattern as runs of equal layers, for checkpoints, FSDP's units and pipelines, whose measure is the layer. */
static ft_ref runs(ft_maker *m, ft_ref x, const ft_block_info *at, int64_t from, int64_t count)
{
    ft_build *b = &m->b;
    for (int64_t to; from < count && b->status == FT_OK; from = to) {
        ft_layer_kind kind = kind_of(m->arch, from);
        for (to = from + 1; to < count && equal(kind_of(m->arch, to), kind);) to++;
        x = ft__block_open(b, at, to - from, x);
        x = ft__block_close(b, ft__part_layer(m, x, kind));
    }
    return x;
}

/* -- layers that a plan says one by one ----------------------------------------------------------- */

/* Parts read the architecture: for one layer it is that layer's. */
static ft_ref shaped(ft_maker *m, ft_ref x, const ft_layer_shape *l)
{
    const ft_arch *whole = m->arch;
    ft_arch own;
    ft__layer_arch(whole, l, &own);
    ft_layer_kind kind = {.mixer = l->mixer,
                          .feed = l->feed,
                          .windowed = l->window > 0,
                          .rotated = l->rotated,
                          .keys_are_values = l->keys_are_values,
                          .shares_keys = l->shares_keys,
                          .sparse_gate = l->sparse_gate,
                          .grams = l->grams,
                          .start_bare = l->start_bare,
                          .compress = l->compress};
    m->arch = &own;
    x = ft__part_layer(m, x, kind);
    m->arch = whole;
    return x;
}

static ft_ref planned(ft_maker *m, ft_ref x, int64_t i) { return shaped(m, x, &m->arch->kinds[m->arch->order[i]]); }

ft_ref ft__part_last_layer(ft_maker *m, ft_ref x)
{
    const ft_arch *a = m->arch;
    if (a->mtp_said) return shaped(m, x, &a->mtp);
    if (a->kind_count > 0) return planned(m, x, a->layers - 1);
    int64_t dense = a->experts > 0 ? a->first_dense : 0;
    return ft__part_layer(m, x, kind_of(a, a->layers > dense ? a->layers - dense - 1 : 0));
}

static ft_ref planned_runs(ft_maker *m, ft_ref x, const ft_block_info *at, int64_t from, int64_t to)
{
    const uint8_t *order = m->arch->order;
    for (int64_t end; from < to && m->b.status == FT_OK; from = end) {
        for (end = from + 1; end < to && order[end] == order[from];) end++;
        x = ft__block_open(&m->b, at, end - from, x);
        x = ft__block_close(&m->b, planned(m, x, from));
    }
    return x;
}

static ft_ref planned_layers(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    int64_t count = m->arch->layers;
    ft_rhythm how = ft__plan_rhythm(m->arch);
    bool again = m->arch->reversible || ft__recomputes_layers(m->work);
    bool apart = m->work->layers_apart || (b->training && again);
    if (apart || how.times < 1) return planned_runs(m, x, FT_BLOCK(LAYERS), 0, count);
    x = planned_runs(m, x, FT_BLOCK(LAYERS_DENSE), 0, how.before);
    x = ft__block_open(b, FT_BLOCK(LAYERS), how.times, x);
    for (int64_t i = 0; i < how.period && b->status == FT_OK; i++) x = planned(m, x, how.before + i);
    x = ft__block_close(b, x);
    return planned_runs(m, x, FT_BLOCK(LAYERS_LAST), how.before + how.times * how.period, count);
}

/* Layers that repeat as a pattern become one block of that pattern. */
ft_ref ft__part_layers(ft_maker *m, ft_ref x)
{
    enum { MOST_RUNS = 256 };
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    if (a->kind_count > 0) return planned_layers(m, x);
    int64_t dense = a->experts > 0 ? (a->first_dense < a->layers ? a->first_dense : a->layers) : 0;
    if (dense > 0) {
        x = ft__block_open(b, FT_BLOCK(LAYERS_DENSE), dense, x);
        x = ft__block_close(b, ft__part_layer(m, x, kind_at(a, 0)));
    }
    int64_t rest = a->layers - dense, period = ft__plan_period(a, rest);
    if (b->training && a->free_layers > 0 && a->free_layers < rest && period == 1) {
        b->copies = rest / (a->layer_runs > 1 ? a->layer_runs : 1);
        b->untracked = true;
        x = ft__block_open(b, FT_BLOCK(LAYERS_FREE), a->free_layers, x);
        x = ft__block_close(b, ft__part_layer(m, x, kind_of(a, 0)));
        b->untracked = false;
        rest -= a->free_layers;
    }
    bool apart = m->work->layers_apart || (b->training && ft__recomputes_layers(m->work));
    /* Not OLMo 3's, whose products read the layer's input itself: its lifetime over runs is not understood yet. */
    if (apart && period > 1 && rest <= MOST_RUNS && a->place != FT_AFTER) return runs(m, x, FT_BLOCK(LAYERS), 0, rest);
    int64_t whole = rest / period;
    int64_t again = m->work->recompute_layers / period;
    bool some = b->training && again > 0 && again < whole && m->work->recompute == FT_RECOMPUTE_FULL;
    for (int part = 0; part < (some ? 2 : 1) && whole > 0; part++) { /* those that run again first, as Megatron's */
        x = ft__block_open(b, FT_BLOCK(LAYERS), !some ? whole : part ? whole - again : again, x);
        for (int64_t i = 0; i < period && b->status == FT_OK; i++) x = ft__part_layer(m, x, kind_of(a, i));
        if (part && b->status == FT_OK) b->g->blocks[b->block].kept = true;
        x = ft__block_close(b, x);
    }
    return runs(m, x, FT_BLOCK(LAYERS_LAST), whole * period, rest);
}

/* -- the whole --------------------------------------------------------------------------------- */

/* A sketch of one of transformers' kinds of masks: is the batch packed (a difference of neighbouring positions, a
 * running count, a question to the GPU)? In whole passes it asks for layers with a window and again for those without
 * (masking_utils.py, find_packed_sequence_indices); frameworks' own layers ask once, by fewer kernels. */
static void look_for_packing(ft_maker *m, ft_ref p)
{
    enum { OF_LIBRARY = 7, OF_OTHERS = 4 };
    bool library = ft__part_spelled_out(m);
    if (library && m->arch->bidirectional) return; /* which reads whole sequences does not ask */
    int kinds = library && ft__part_mask_kinds(m->arch) > 1 ? 2 : 1;
    for (int kind = 0; kind < kinds; kind++) {
        for (int i = 0; i < (library ? OF_LIBRARY : OF_OTHERS); i++) p = ft__pointwise(&m->b, FT_AT(MASK), "addu", p);
        ft__sync(&m->b, FT_AT(MASK));
    }
}

/* Positions, packing checks and masks: a dozen small kernels and a synchronisation or two before the first layer. */
static void prepare(ft_maker *m)
{
    ft_build *b = &m->b;
    bool training = b->training, library = ft__part_spelled_out(m);
    b->training = false;
    ft_ref positions = ft__input(b, m->batch, m->q_len, 8);
    ft_ref p = ft__pointwise(b, FT_AT(POSITIONS), "addu", positions);
    if (library) p = ft__pointwise(b, FT_AT(POSITIONS), "addu", p); /* counted, then moved behind what a cache holds */
    if (m->work->task == FT_TRAIN || m->work->task == FT_FORWARD_PASS) look_for_packing(m, p);
    if (library) ft__part_window_mask(m);
    m->mask = FT_NONE;
    if ((m->work->attention == FT_EAGER || m->arch->no_sdpa) && ft__attends(m->arch)) {
        if (library) ft__part_mask_indices(m);
        ft_ref full = ft__activation(b, m->batch * m->q_len, m->kv_len, b->stored);
        m->mask = ft__pointwise(b, FT_AT(MASK), "addu", full);
    }
    b->training = training;
}

/* Older blocks return their attention's probabilities beside their result: those of the layer before live on while a
 * layer runs. A tensor made before the layers and named after them stands for it. */
static ft_ref returned_before(ft_maker *m)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    if (b->training || !a->scores_returned || a->layers < 2) return FT_NONE;
    ft_node n = ft__node_of(FT_DO_OTHER, FT_AT(ATTN_VARIABLES));
    ft_dtype low = b->stored;
    ft_ref out = ft__node_out(b, &n, m->batch * a->heads * m->q_len, m->kv_len, low, ft_dtype_bytes(low));
    ft__emit(b, &n);
    return out;
}

static ft_ref words(ft_maker *m, ft_ref tokens, ft_ref seen, int64_t width, ft_ref *table)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    bool frozen = ft__part_thaw_table(m, a->vocab, width);
    ft_dtype stored = b->stored;
    if (b->autocast && m->stack->narrow_words) b->stored = ft__flowing(b->math);
    ft_ref x = ft__embedding(b, FT_AT(EMBED_TOKENS), tokens, a->vocab, width, table);
    b->stored = stored;
    b->frozen = frozen;
    ft__part_pack_table(m, *table, a->tied);
    if (a->scaled_branches || (a->embed_scale != 0 && a->embed_scale != 1))
        x = ft__pointwise(b, FT_AT(EMBED_SCALE), "mulu", x);
    /* Where the sequence has places for them: a mask as wide as the stream, and a masked scatter. */
    if (seen == FT_NONE) return x;
    ft__no_grad_kernels(b, FT_AT(EMBED_TOKENS), "compare", FT_NONE, m->batch * m->q_len, width, 1, 2);
    return ft__scatter(b, FT_AT(EMBED_TOKENS), x, seen, 0, false, false);
}

/* Towers and prompts that run before the words: what they made, and the table of words where they open it. */
static ft_ref seen_before(ft_maker *m, ft_ref *table)
{
    enum { MOST_PREFIX = 1 << 20 };
    const ft_arch *a = m->arch;
    ft_ref seen = a->tower_layers > 0 && !a->tower_source ? ft__part_tower(m) : FT_NONE;
    if (a->ear_layers > 0) ft__part_audio_weights(m);
    if (a->merged) seen = ft__part_encode_before(m, seen, table);
    if (a->canvas > 0) seen = ft__part_prompt_before(m, seen, table);
    if (a->prefix > MOST_PREFIX)
        ft__build_fail(&m->b, FT_E_RANGE, "a prompt of %lld learned tokens is too large for any machine",
                       (long long)a->prefix);
    return seen;
}

static ft_ref learned_positions(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    ft_ref places = ft__input(b, 1, m->q_len, 8), positions = FT_NONE;
    int64_t rows = a->position_rows > 0 ? a->position_rows : a->max_position;
    ft_ref p = ft__embedding(b, FT_AT(EMBED_POSITIONS), places, rows, a->hidden, &positions);
    if (a->embed_width && a->embed_width != a->hidden)
        x = ft__linear(b, FT_AT(EMBED_PROJECT_IN), x, a->hidden, FT_NO_BIAS, FT_WHOLE);
    return ft__add(b, FT_AT(EMBED_POSITIONS), x, p);
}

/* From tokens to the stream that the first layer reads. */
static ft_ref embed(ft_maker *m, ft_ref seen, int64_t width, ft_ref *table)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    ft_ref tokens = ft__input(b, m->batch, m->q_len, 8);
    ft_ref x = a->draft_width > 0 ? ft__part_draft_open(m, table) : words(m, tokens, seen, width, table);
    if (a->canvas > 0) x = ft__part_conditioned(m, x);
    prepare(m);
    if (a->position == FT_LEARNED_POSITION) x = learned_positions(m, x);
    if (a->reversible) x = ft__part_axial(m, x);
    if (a->embed_norm) x = ft__part_norm(m, FT_AT(EMBED_NORM), x, a->norm, a->norm_bias);
    x = ft__dropout(b, FT_AT(EMBED_DROPOUT), x, a->embed_dropout);
    if (a->position == FT_ROTARY)
        ft__part_rotary_tables(m, a->kv_lora > 0 ? a->rope_dim : a->rotary_dim > 0 ? a->rotary_dim : a->head_dim);
    if (a->per_layer_width > 0) ft__part_per_layer_inputs(m, tokens, x);
    if (a->altup > 1) x = ft__part_altup_open(m, x);
    ft__part_shared_open(m, x);
    ft__part_unused_weights(m);
    x = ft__part_stream_open(m, x);
    if (a->streams > 1) x = ft__copy(b, FT_AT(HYPER), x, m->batch * m->q_len, a->streams * a->hidden);
    if (a->reversible) x = ft__cat(b, FT_AT(EMBED_TOKENS), 2, (ft_ref[]){x, x}, m->batch * m->q_len, 2 * a->hidden);
    return x;
}

/* The head reads neither learned prompts nor what sequences were padded with. */
static ft_ref asked_tokens(ft_maker *m, ft_ref x, int64_t padding)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    if (a->prefix > 0 && m->work->task != FT_DECODE) {
        m->q_len -= a->prefix;
        x = ft__contiguous(b, FT_AT(HEAD), ft__slice(b, x, m->batch * m->q_len, a->hidden));
    }
    if (a->reversible) x = ft__copy(b, FT_AT(HEAD), x, m->batch * m->q_len, 2 * a->hidden);
    if (padding == 0) return x;
    m->q_len -= padding;
    return ft__contiguous(b, FT_AT(HEAD), ft__slice(b, x, m->batch * m->q_len, ft__tensor_of(b, x)->cols));
}

void ft__make_transformer(ft_maker *m)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    bool steps = m->work->task == FT_PREFILL || m->work->task == FT_DECODE;
    if (a->bidirectional && steps) {
        ft__build_fail(b, FT_E_UNSUPPORTED, "%s reads a sequence at once and keeps no cache: ask for \"forward\"",
                       a->model_type);
        return;
    }
    if (a->bytes.group > 0) ft__make_bytes(m);
    if (a->actor.size.layers > 0) ft__make_actor(m);
    if (a->bytes.group > 0 || a->actor.size.layers > 0) return;
    b->conv1d = a->conv1d;
    ft__part_source(m);
    const int64_t padding = a->reversible ? ft__buckets_padding(m) : 0;
    m->q_len += padding;
    m->kv_len += padding;
    ft_ref table = FT_NONE, seen = seen_before(m, &table);
    if (b->status != FT_OK) return;
    if (m->work->task != FT_DECODE) m->q_len += a->prefix;
    m->kv_len += a->prefix;
    ft__block_open(b, FT_BLOCK(EMBED), 1, FT_NONE);
    int64_t width = a->embed_width ? a->embed_width : a->hidden;
    ft_ref x = embed(m, seen, width, &table);
    ft__module(b, 2);
    ft_ref before = returned_before(m);
    x = ft__block_close(b, x);
    b->runs_each = a->layer_runs;
    x = ft__part_layers(m, x);
    b->runs_each = b->copies = 0;
    x = ft__block_open(b, FT_BLOCK(HEAD), 1, x);
    if (before != FT_NONE) ft__part_held(m, 1, &before);
    b->conv1d = false;
    x = asked_tokens(m, x, padding);
    x = ft__part_logits(m, x, table, width);
    ft__block_close(b, x);
}

/* cost.c: the tables of what an iteration costs, and an iteration from them.
 *
 *   g    = A(tokens of a rank) + M(tokens) + H(rows) + D(sequences of a rank, context) + prompts' attention
 *   g    = scale g + nodes gap;   beside prompts   g = max(prefill_scale g + small kernels, launches eager)
 *   step = g + step_ms + sequence_us decoders
 *
 * A replayed graph leaves a gap between kernels; prompts run without one, and their launches are a floor: whichever of
 * host and GPU is slower decides, as docs/models/host.md has it for frameworks. */
#include "serving/cost.h"

#include <math.h>

#include "serving/kernels.h"
#include "serving/step_constants.h"

static const double first_context = 128, first_prompt = 64;

/* -- tables ------------------------------------------------------------------------------------ */

static ft_status fill_tokens(ft_pricer *p, ft_costs *out, ft_error *err)
{
    const ft_served *m = p->m;
    double tokens = 1;
    for (int i = 0; i < FT_COST_TOKENS; i++, tokens *= 2) {
        ft_priced one;
        FT_TRY(ft__price_projections(p, tokens, &one, err));
        out->ms.projections[i] = one.ms, out->joules.projections[i] = one.joules;
        FT_TRY(ft__price_mlp(p, tokens, &one, err));
        out->ms.mlp[i] = one.ms, out->joules.mlp[i] = one.joules;
        FT_TRY(ft__price_head(p, tokens, &one, err));
        out->ms.head[i] = one.ms, out->joules.head[i] = one.joules;
    }
    double bytes = 2 * (double)m->arch->hidden;
    out->send_ms_per_token = m->pp > 1 ? bytes / (m->cluster.tier[m->cluster.tiers - 1].gbps * 1e6) : 0;
    return FT_OK;
}

static ft_status fill_attention(ft_pricer *p, ft_costs *out, ft_error *err)
{
    double sequences = 1, length = first_prompt;
    ft_priced one;
    for (int s = 0; s < FT_COST_SEQUENCES; s++, sequences *= 4) {
        double context = first_context;
        for (int c = 0; c < FT_COST_CONTEXTS; c++, context *= 4) {
            FT_TRY(ft__price_decode(p, sequences, context, &one, err));
            out->ms.decode[s][c] = one.ms, out->joules.decode[s][c] = one.joules;
        }
    }
    for (int i = 0; i < FT_COST_PROMPTS; i++, length *= 4) {
        FT_TRY(ft__price_prompt(p, length, &one, err));
        out->ms.prompt[i] = one.ms, out->joules.prompt[i] = one.joules;
    }
    return FT_OK;
}

ft_status ft__costs_of(const ft_context *ft, ft_scratch *scratch, const ft_served *m, ft_costs *out, ft_error *err)
{
    ft_pricer p = {.ft = ft, .scratch = scratch, .m = m};
    FT_TRY(ft__pricer_open(&p, err));
    *out = (ft_costs){.dp = m->dp, .pp = m->pp, .cp = m->cp, .engine = m->engine};
    FT_TRY(fill_tokens(&p, out, err));
    FT_TRY(fill_attention(&p, out, err));
    double attention = m->latent ? ft__k_step_nodes.latent : ft__k_step_nodes.attention;
    double of_layers = m->layers * attention + m->dense_layers * ft__k_step_nodes.dense +
                       m->expert_layers * ft__k_step_nodes.experts;
    out->nodes = of_layers + ft__k_step_nodes.rest + (m->adapters > 0 ? m->layers * ft__k_step_nodes.adapters : 0) +
                 (ft__narrows_attended(m) ? m->attention_layers : 0) + ft__head_norms(m) * m->attention_layers +
                 (m->tp > 1 && !m->latent && !ft__sums_norm(m) ? m->attention_layers : 0);
    out->launches = m->latent
                        ? m->layers * ft__k_step_launches.latent
                        : m->expert_layers * ft__k_step_launches.experts + m->dense_layers * ft__k_step_launches.dense;
    out->piece_launches = m->engine->piece_kernels > 0 ? m->layers * m->engine->piece_kernels
                                                       : out->launches * m->layers * attention / of_layers;
    out->graph_sequences = ft__serving_graphs(m->engine, m->device);
    out->prompt_ms = m->layers * m->engine->prompt_kernels * (FT_K_STEP_PASS_US + m->engine->gap_us) / 1e3;
    out->spread = p.ms > 0 ? log(p.high_ms / p.low_ms) / 2 : 0;
    out->source = p.source;
    return FT_OK;
}

static void share(double *at, size_t count, double of)
{
    for (size_t i = 0; i < count; i++) at[i] /= of;
}

static void share_tables(ft_cost_tables *t, double layers)
{
    share(t->projections, FT_COST_TOKENS, layers);
    share(t->mlp, FT_COST_TOKENS, layers);
    share(t->decode[0], (size_t)FT_COST_SEQUENCES * FT_COST_CONTEXTS, layers);
    share(t->prompt, FT_COST_PROMPTS, layers);
}

void ft__costs_of_layer(const ft_costs *model, double layers, ft_costs *out)
{
    *out = *model;
    share_tables(&out->ms, layers);
    share_tables(&out->joules, layers);
    out->nodes /= layers;
    out->launches /= layers;
    out->piece_launches /= layers;
    out->prompt_ms /= layers;
    out->draft = NULL;
    out->drafts = 0;
}

/* -- reading them ------------------------------------------------------------------------------ */

/* Between powers of two times grow by a straight line; beyond the last point they stay in proportion. */
static double by_tokens(const double *table, double tokens)
{
    if (tokens <= 0) return 0;
    if (tokens <= 1) return table[0];
    int i = ilogb(tokens);
    if (i >= FT_COST_TOKENS - 1) return table[FT_COST_TOKENS - 1] * tokens / (double)(1 << (FT_COST_TOKENS - 1));
    double low = (double)(1 << i);
    return table[i] + (table[i + 1] - table[i]) * (tokens - low) / low;
}

/* The interval of four that holds `at`, and how far into it; beyond the last one it goes on. */
static int interval(double at, double first, int points, double *into)
{
    int i = 0;
    double low = first;
    while (i < points - 2 && at >= 4 * low) {
        low *= 4;
        i++;
    }
    *into = fmax(0, (at - low) / (3 * low));
    return i;
}

static double by_sequences(const ft_cost_tables *c, double sequences, double context)
{
    double s, k;
    int i = interval(sequences, 1, FT_COST_SEQUENCES, &s), j = interval(context, first_context, FT_COST_CONTEXTS, &k);
    double low = c->decode[i][j] + k * (c->decode[i][j + 1] - c->decode[i][j]);
    double high = c->decode[i + 1][j] + k * (c->decode[i + 1][j + 1] - c->decode[i + 1][j]);
    return low + s * (high - low);
}

/* Prompts grow with a power of their length. */
static double by_length(const double *prompt, double length)
{
    double ignored;
    if (length <= 0) return 0;
    if (length < first_prompt) return prompt[0] * length / first_prompt;
    int i = interval(length, first_prompt, FT_COST_PROMPTS, &ignored);
    if (prompt[i] <= 0) return 0;
    double low = first_prompt * pow(4, i), power = log2(prompt[i + 1] / prompt[i]) / 2;
    return prompt[i] * pow(length / low, power);
}

double ft__prompt_ms(const ft_costs *c, double length) { return by_length(c->ms.prompt, length); }

/* Everything that one rank computes, but for attention of prompts. A pipeline of p stages works on p batches at once:
 * each is a p-th, and takes all layers. Drafts of a sequence are checked together: its cache is read once. */
static double computed(const ft_costs *c, const ft_cost_tables *t, const ft_iteration *i)
{
    double pp = (double)c->pp, dp = (double)c->dp, decoders = ceil(i->decoders / pp);
    double prompts = fmin(fmax(i->prompts, 1), dp), prompt_tokens = i->prompt_tokens / pp / fmax(1, (double)c->cp);
    double of_rank = ceil(decoders / dp) * i->tokens_each + prompt_tokens / prompts;
    double tokens = decoders * i->tokens_each + prompt_tokens;
    double sum = by_tokens(t->projections, of_rank) + by_tokens(t->mlp, tokens) + by_tokens(t->head, i->rows / pp);
    if (decoders > 0) sum += by_sequences(t, ceil(decoders / dp), i->context / i->decoders);
    return sum;
}

/* What the host launches one by one. A graph is of one batch of sequences that decode: without padding, a rank replays
 * only those whose size is a power of two or small, and none that is larger than the largest captured. */
static double launches(const ft_costs *c, const ft_iteration *i)
{
    const ft_serving_engine *e = c->engine;
    int64_t decoders = (int64_t)ceil(i->decoders / (double)(c->pp * c->dp));
    double tokens = i->decoders * i->tokens_each + i->prompt_tokens;
    if (i->prompts > 0)
        return e->prompt_graphs && (e->piece_tokens <= 0 || tokens <= e->piece_tokens) ? c->piece_launches
                                                                                       : c->launches;
    bool larger = c->graph_sequences > 0 && (double)decoders > c->graph_sequences;
    bool between = !e->padded_graphs && (double)decoders > e->graphs_each && (decoders & (decoders - 1));
    return larger || e->launched_tokens || between ? c->launches : 0;
}

/* What the GPU does, or its host where that is slower. */
static double work_ms(const ft_costs *c, const ft_iteration *i)
{
    const ft_serving_engine *e = c->engine;
    double pp = (double)c->pp, prompts = fmin(fmax(i->prompts, 1), (double)c->dp);
    double tokens = ceil(i->decoders / pp) * i->tokens_each + i->prompt_tokens / pp;
    double g = computed(c, &c->ms, i) + i->prompt_ms / prompts / pp + pp * c->send_ms_per_token * tokens;
    g = e->step_scale * g + c->nodes * e->gap_us / 1e3;
    if (i->prompts > 0) g = e->prefill_scale * g + c->prompt_ms;
    return fmax(g, launches(c, i) * e->eager_us / 1e3);
}

/* Whoever makes drafts reads the prompts too, once, and then makes one after another of every sequence. */
static double draft_ms(const ft_costs *c, const ft_iteration *i)
{
    ft_iteration one = {.decoders = i->decoders, .context = i->context, .tokens_each = 1, .rows = i->decoders};
    double ms = i->decoders > 0 ? c->drafts * work_ms(c->draft, &one) : 0;
    if (i->prompts <= 0) return ms;
    ft_iteration read = {.prompts = i->prompts, .prompt_tokens = i->prompt_tokens, .tokens_each = 1};
    double each = i->prompt_tokens / i->prompts;
    read.prompt_ms = i->prompts * ft__prompt_ms(c->draft, each);
    return ms + work_ms(c->draft, &read);
}

double ft__iteration_ms(const ft_costs *c, const ft_iteration *i)
{
    const ft_serving_engine *e = c->engine;
    double ms = work_ms(c, i) + e->step_ms + e->sequence_us / 1e3 * i->decoders;
    return c->draft ? ms + draft_ms(c, i) : ms;
}

double ft__iteration_joules(const ft_costs *c, const ft_iteration *i)
{
    double prompts = fmin(fmax(i->prompts, 1), (double)c->dp), pp = (double)c->pp, joules = computed(c, &c->joules, i);
    if (i->prompts > 0)
        joules += i->prompts * by_length(c->joules.prompt, i->prompt_tokens / i->prompts) / prompts / pp;
    if (!c->draft) return joules / pp;
    ft_iteration one = {.decoders = i->decoders, .context = i->context, .tokens_each = 1, .rows = i->decoders};
    return joules / pp + (i->decoders > 0 ? c->drafts * computed(c->draft, &c->draft->joules, &one) : 0);
}

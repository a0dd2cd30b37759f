/* largest.c: the largest model of a family that trains or serves.
 *
 * A family is a line of shapes through published ones; between them layers follow the width. The width grows in steps
 * of one head (128), then layers one by one, until the next one does not fit.
 *   gpt:   Brown et al. 2020, "Language Models are Few-Shot Learners", table 2.1
 *   llama: Touvron et al. 2023, "LLaMA", table 2 and "Llama 2"; below 7 B TinyLlama (Zhang et al. 2024), above 70 B
 *          Llama 3.1 405B (Dubey et al. 2024)
 * Several GPUs train as FSDP does, states and parameters sharded over all of them (ZeRO-3, Rajbhandari et al. 2020);
 * they serve cut by tensor, a head or several to each. What fits is what the forecast of that step says of its memory,
 * as for any other request.
 */
#include "study/largest.h"

#include <math.h>

#include "study/ask.h"

enum {
    HEAD = 128,
    LEAST_HEADS = 2,
    MOST_HEADS = 512,
    TOKENS_PER_PARAMETER = 20, /* Hoffmann et al. 2022 */
    TOKENS_PER_STEP = 1 << 19  /* over all GPUs: what models of this size are trained with (Brown et al. 2020) */
};

typedef struct shape {
    int64_t hidden, layers;
} shape;
static const shape gpt_shapes[] = {{256, 6},   {768, 12},  {1024, 24},  {2048, 24},  {2560, 32},
                                   {4096, 32}, {5120, 40}, {12288, 96}, {65536, 512}};
static const shape llama_shapes[] = {{256, 6},   {2048, 22}, {4096, 32},   {5120, 40},
                                     {6656, 60}, {8192, 80}, {16384, 126}, {65536, 504}};

typedef struct search {
    ft_asker ask;
    const ft_largest_request *asked;
    int64_t ways; /* tensor ranks: heads are a multiple */
    ft_largest *r;
    ft_error *err;
} search;

/* -- shapes ------------------------------------------------------------------------------------ */

static int64_t layers_at(const search *s, int64_t hidden)
{
    const shape *line = s->asked->gpt ? gpt_shapes : llama_shapes;
    size_t count = s->asked->gpt ? sizeof gpt_shapes / sizeof *gpt_shapes : sizeof llama_shapes / sizeof *llama_shapes;
    for (size_t i = 1; i < count; i++) {
        if (hidden > line[i].hidden) continue;
        double along = (double)(hidden - line[i - 1].hidden) / (double)(line[i].hidden - line[i - 1].hidden);
        return (int64_t)lround((double)line[i - 1].layers + along * (double)(line[i].layers - line[i - 1].layers));
    }
    return line[count - 1].layers;
}

/* Llama rounds two thirds of four times the width up to a multiple of 256. */
static int64_t ffn_at(const search *s, int64_t hidden)
{
    return s->asked->gpt ? 4 * hidden : (8 * hidden / 3 + 255) / 256 * 256;
}

static int64_t vocab_of(const search *s) { return s->asked->gpt ? 50304 : 32000; }

/* A model that is made to measure has positions for the sequences that are asked for. */
static json_int_t positions_of(const search *s, json_int_t usual)
{
    const json_t *seq = ft__key_get(s->ask.object, FT_KEY_ID_SEQ);
    const double asked = json_number_value(seq); /* 0 of what is no number, which its reader refuses */
    return asked > (double)usual && asked <= (double)FT_LARGEST_SIZE ? (json_int_t)asked : usual;
}

static json_t *config_of(const search *s, int64_t hidden, int64_t layers)
{
    if (s->asked->gpt)
        return json_pack("{s:s,s:I,s:I,s:I,s:I,s:I,s:I}", "model_type", "gpt2", "n_embd", (json_int_t)hidden, "n_layer",
                         (json_int_t)layers, "n_head", (json_int_t)(hidden / HEAD), "n_inner",
                         (json_int_t)ffn_at(s, hidden), "n_positions", positions_of(s, 2048), "vocab_size",
                         (json_int_t)vocab_of(s));
    return json_pack("{s:s,s:I,s:I,s:I,s:I,s:I,s:I,s:b}", "model_type", "llama", "hidden_size", (json_int_t)hidden,
                     "num_hidden_layers", (json_int_t)layers, "num_attention_heads", (json_int_t)(hidden / HEAD),
                     "intermediate_size", (json_int_t)ffn_at(s, hidden), "max_position_embeddings",
                     positions_of(s, 4096), "vocab_size", (json_int_t)vocab_of(s), "tie_word_embeddings", 0);
}

/* -- fitting ----------------------------------------------------------------------------------- */

static ft_status no_memory(search *s) { return ft__no_memory(s->err); }

static double need_of(const ft_memory *m) { return m->reserved_bytes + m->context_bytes; }

static ft_status ask(search *s, const char *task, int64_t hidden, int64_t layers, ft_step_view *v)
{
    FT_TRY(ft__ask_task(&s->ask, task, s->err));
    FT_TRY(ft__ask_set(&s->ask, FT_KEY_ID_MODEL, config_of(s, hidden, layers), s->err));
    FT_TRY(ft__ask_step(&s->ask, v, s->err));
    s->r->device = *v->device;
    return FT_OK;
}

/* The smallest must be forecast; of larger ones those that are too large to be do not fit either. */
static ft_status fits(search *s, int64_t hidden, int64_t layers, bool smallest, bool *out)
{
    ft_step_view v;
    ft_status status = ask(s, "memory", hidden, layers, &v);
    *out = status == FT_OK && v.step->memory.verdict == FT_FIT_YES;
    return status == FT_E_RANGE && !smallest ? FT_OK : status;
}

/* The last of low..high that fits; low does, high is past the end. */
static ft_status last_fit(search *s, int64_t low, int64_t high, int64_t hidden, int64_t *out)
{
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        int64_t width = hidden ? hidden : middle * s->ways * HEAD, layers = hidden ? middle : layers_at(s, width);
        bool fine;
        FT_TRY(fits(s, width, layers, false, &fine));
        if (fine)
            low = middle;
        else
            high = middle;
    }
    *out = low;
    return FT_OK;
}

static ft_status find(search *s)
{
    ft_largest *r = s->r;
    ft_step_view *v = &r->view;
    bool fine;
    double ignored;
    int64_t fewest = (LEAST_HEADS + s->ways - 1) / s->ways, found, smallest = fewest * s->ways * HEAD;
    FT_TRY(fits(s, smallest, layers_at(s, smallest), true, &fine));
    if (!fine) return FT_OK;
    FT_TRY(last_fit(s, fewest, MOST_HEADS / s->ways + 1, 0, &found));
    r->heads = found * s->ways;
    r->hidden = r->heads * HEAD;
    r->ffn = ffn_at(s, r->hidden);
    r->vocab = vocab_of(s);
    int64_t layers = layers_at(s, r->hidden);
    FT_TRY(last_fit(s, layers, 2 * layers, r->hidden, &layers));

    ft_status next = ask(s, "memory", r->hidden, layers + 1, v);
    if (next != FT_OK && next != FT_E_RANGE) return next; /* too large to be forecast: nothing to say of it */
    if (next == FT_OK) {
        r->next_short_bytes = need_of(&v->step->memory) - v->step->memory.capacity_bytes;
        if (!ft__view_parameters(v, &r->next_parameters, &ignored)) return no_memory(s);
    }
    FT_TRY(ask(s, r->training ? "train" : "decode", r->hidden, layers, v));
    if (!ft__view_parameters(v, &r->parameters, &ignored)) return no_memory(s);
    const ft_memory *m = &v->step->memory;
    r->need_bytes = need_of(m);
    r->state_bytes = m->weights_bytes + m->gradients_bytes + m->optimizer_bytes;
    r->layers = layers;
    /* Who trains adapters has a set of examples, not twenty tokens for every parameter. */
    double usual = v->work->lora_rank > 0 ? 0 : TOKENS_PER_PARAMETER * r->parameters;
    double tokens = s->asked->tokens > 0 ? s->asked->tokens : usual;
    if (r->training && tokens > 0) r->days = ft__days_of(v, tokens, (double)r->gpus);
    return FT_OK;
}

/* -- the layout -------------------------------------------------------------------------------- */

/* As many micro-batches as make a step of the usual size, unless the request says how many sequences it has. */
static ft_status set_global_batch(search *s)
{
    const json_t *base = s->ask.object;
    int64_t batch = ft__json_whole_of(ft__key_get(base, FT_KEY_ID_MICRO_BATCH));
    int64_t seq = ft__json_whole_of(ft__key_get(base, FT_KEY_ID_SEQ));
    if (batch < 1) batch = 1;
    if (!s->r->training || ft__key_get(base, FT_KEY_ID_GLOBAL_BATCH)) return FT_OK;
    if (ft__key_get(base, FT_KEY_ID_LORA_RANK) || ft__key_get(base, FT_KEY_ID_LORA)) return FT_OK; /* steps are short */
    if (seq < 1 || batch >= TOKENS_PER_STEP || seq >= TOKENS_PER_STEP) return FT_OK;
    int64_t micro = TOKENS_PER_STEP / (batch * seq) / s->r->gpus;
    return ft__ask_set(&s->ask, FT_KEY_ID_GLOBAL_BATCH, json_integer(batch * s->r->gpus * (micro > 1 ? micro : 1)),
                       s->err);
}

static ft_status lay_out(search *s)
{
    json_int_t gpus = s->r->gpus;
    s->ways = s->r->training ? 1 : gpus;
    if (s->ways > MOST_HEADS)
        return ft__fail_at(s->err, FT_E_RANGE, "gpus", 0, 0,
                           "a model that serves is cut by its heads, of which there are at most %d; got %lld GPUs",
                           MOST_HEADS, (long long)gpus);
    if (gpus == 1) return FT_OK;
    json_t *parallel = json_object();
    bool made = s->r->training ? ft__key_set(parallel, FT_KEY_ID_DP, json_integer(gpus)) &&
                                     ft__key_set(parallel, FT_KEY_ID_ZERO, json_integer(3))
                               : ft__key_set(parallel, FT_KEY_ID_TP, json_integer(gpus));
    FT_TRY(ft__ask_set(&s->ask, FT_KEY_ID_PARALLEL, parallel, s->err)); /* takes it, made or not */
    return made ? FT_OK : no_memory(s);
}

ft_status ft__largest_of(const ft_context *ft, ft_scratch *scratch, const ft_largest_request *r, ft_largest *out,
                         ft_error *err)
{
    search s = {.ask = {.ft = ft, .scratch = scratch, .object = r->base, .idle = &r->idle, .used = "cache"},
                .asked = r,
                .r = out,
                .err = err};
    *out = (ft_largest){.family = r->gpt ? "gpt" : "llama", .training = r->training, .gpus = r->gpus};
    FT_TRY(lay_out(&s));
    FT_TRY(set_global_batch(&s));
    return find(&s);
}

/* largest.c: `foretell largest`: the largest model of a family that trains or serves.
 *
 * A family is a line of shapes through published ones; between them layers follow the width. The width grows in steps
 * of one head (128), then layers one by one, until the next one does not fit.
 *   gpt:   Brown et al. 2020, "Language Models are Few-Shot Learners", table 2.1
 *   llama: Touvron et al. 2023, "LLaMA", table 2 and "Llama 2"; below 7 B TinyLlama (Zhang et al. 2024), above 70 B
 *          Llama 3.1 405B (Dubey et al. 2024)
 * Several GPUs: weights, gradients and optimizer states are divided by their number, as ZeRO-3 does (Rajbhandari et
 * al. 2020), and two layers' weights are held whole, the one at work and the one that is fetched.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ask.h"
#include "commands.h"
#include "picture.h"
#include "report/text/largest_screen.h"
#include "terminal.h"

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
    cli_asker ask;
    bool gpt, training;
    int64_t gpus;
    ft_largest r;
    ft_error err;
} search;

/* -- shapes ------------------------------------------------------------------------------------ */

static int64_t layers_at(const search *s, int64_t hidden)
{
    const shape *line = s->gpt ? gpt_shapes : llama_shapes;
    size_t count = s->gpt ? sizeof gpt_shapes / sizeof *gpt_shapes : sizeof llama_shapes / sizeof *llama_shapes;
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
    return s->gpt ? 4 * hidden : (8 * hidden / 3 + 255) / 256 * 256;
}

static int64_t vocab_of(const search *s) { return s->gpt ? 50304 : 32000; }

static json_t *config_of(const search *s, int64_t hidden, int64_t layers)
{
    if (s->gpt)
        return json_pack("{s:s,s:I,s:I,s:I,s:I,s:I,s:I}", "model_type", "gpt2", "n_embd", (json_int_t)hidden, "n_layer",
                         (json_int_t)layers, "n_head", (json_int_t)(hidden / HEAD), "n_inner",
                         (json_int_t)ffn_at(s, hidden), "n_positions", (json_int_t)2048, "vocab_size",
                         (json_int_t)vocab_of(s));
    return json_pack("{s:s,s:I,s:I,s:I,s:I,s:I,s:I,s:b}", "model_type", "llama", "hidden_size", (json_int_t)hidden,
                     "num_hidden_layers", (json_int_t)layers, "num_attention_heads", (json_int_t)(hidden / HEAD),
                     "intermediate_size", (json_int_t)ffn_at(s, hidden), "max_position_embeddings", (json_int_t)4096,
                     "vocab_size", (json_int_t)vocab_of(s), "tie_word_embeddings", 0);
}

/* -- fitting ----------------------------------------------------------------------------------- */

static double shards_of(const search *s, const ft_memory *m)
{
    return (m->weights_bytes + m->gradients_bytes + m->optimizer_bytes) / (double)s->gpus;
}

static double need_of(const search *s, const ft_memory *m, int64_t layers)
{
    double states = m->weights_bytes + m->gradients_bytes + m->optimizer_bytes;
    double whole = s->gpus > 1 ? 2 * m->weights_bytes / (double)layers : 0;
    return m->reserved_bytes + m->context_bytes - states + shards_of(s, m) + whole;
}

static ft_status ask(search *s, const char *task, int64_t hidden, int64_t layers, ft_step_view *v)
{
    if (!cli_asker_set(&s->ask, "task", json_string(task)) ||
        !cli_asker_set(&s->ask, "model", config_of(s, hidden, layers)))
        return ft__fail(&s->err, FT_E_MEMORY, "out of memory");
    return cli_asker_forecast(&s->ask, v, &s->err);
}

static ft_status fits(search *s, int64_t hidden, int64_t layers, bool *out)
{
    ft_step_view v;
    FT_TRY(ask(s, "memory", hidden, layers, &v));
    *out = need_of(s, &v.step->memory, layers) <= v.step->memory.capacity_bytes;
    return FT_OK;
}

/* The last of low..high that fits; low does, high is past the end. */
static ft_status last_fit(search *s, int64_t low, int64_t high, int64_t hidden, int64_t *out)
{
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        int64_t width = hidden ? hidden : middle * HEAD, layers = hidden ? middle : layers_at(s, width);
        bool fine;
        FT_TRY(fits(s, width, layers, &fine));
        if (fine)
            low = middle;
        else
            high = middle;
    }
    *out = low;
    return FT_OK;
}

static ft_status find(search *s, ft_step_view *v)
{
    ft_largest *r = &s->r;
    bool fine;
    int64_t heads, smallest = LEAST_HEADS * HEAD;
    FT_TRY(fits(s, smallest, layers_at(s, smallest), &fine));
    if (!fine) return FT_OK;
    FT_TRY(last_fit(s, LEAST_HEADS, MOST_HEADS + 1, 0, &heads));
    r->hidden = heads * HEAD;
    r->heads = heads;
    r->ffn = ffn_at(s, r->hidden);
    r->vocab = vocab_of(s);
    int64_t layers = layers_at(s, r->hidden);
    FT_TRY(last_fit(s, layers, 2 * layers, r->hidden, &r->layers));

    const char *task = s->training ? "train" : "decode";
    FT_TRY(ask(s, "memory", r->hidden, r->layers + 1, v));
    r->next_parameters = v->graph->parameters;
    r->next_short_bytes = need_of(s, &v->step->memory, r->layers + 1) - v->step->memory.capacity_bytes;
    FT_TRY(ask(s, task, r->hidden, r->layers, v));
    r->need_bytes = need_of(s, &v->step->memory, r->layers);
    r->shard_bytes = shards_of(s, &v->step->memory);
    double tokens = TOKENS_PER_PARAMETER * v->graph->parameters;
    if (cli_real(s->ask.args, OPT_TRAIN_TOKENS, 1, 1e18, &tokens)) tokens = 0; /* checked before */
    if (s->training) r->days = ft__days_of(v, tokens, (double)s->gpus);
    r->days.fits = true; /* by need_of(): the step's own memory is that of states which are not shared out */
    return FT_OK;
}

/* -- the command ------------------------------------------------------------------------------- */

/* Mixed precision with fp32 masters is how models are trained; --no-master-weights and amp_* say otherwise. */
static bool set_defaults(search *s)
{
    const cli_args *args = s->ask.args;
    const char *dtype = cli_value(args, OPT_MODEL_DTYPE);
    bool low = !dtype || !strcmp(dtype, "bf16") || !strcmp(dtype, "fp16") || !strcmp(dtype, "fp8");
    bool fine = true;
    if (s->training && low && !cli_has(args, OPT_MASTER_WEIGHTS))
        fine = cli_asker_set(&s->ask, "master_weights", json_true());
    if (fine && !cli_has(args, OPT_SEQ)) fine = cli_asker_set(&s->ask, "seq", json_integer(2048));
    int64_t batch = json_integer_value(json_object_get(s->ask.object, "batch"));
    int64_t seq = json_integer_value(json_object_get(s->ask.object, "seq"));
    if (batch < 1) batch = 1;
    if (fine && s->training && seq > 0 && batch < TOKENS_PER_STEP && seq < TOKENS_PER_STEP &&
        !cli_has(args, OPT_GLOBAL_BATCH)) {
        int64_t micro = TOKENS_PER_STEP / (batch * seq) / s->gpus;
        fine = cli_asker_set(&s->ask, "global_batch", json_integer(batch * (micro > 1 ? micro : 1)));
    }
    if (fine && !s->training) fine = cli_asker_set(&s->ask, "cache", json_string("paged"));
    return fine;
}

static int print(search *s, const ft_step_view *v)
{
    ft_text out = {0};
    ft_style style = cli_style(s->ask.args);
    ft_device device;
    if (ft_device_find(s->ask.ft, s->ask.gpus[0], &device, &s->err) != FT_OK) return cli_asker_fail(&s->ask, &s->err);
    const ft_step_view *found = s->r.layers > 0 ? v : NULL;
    if (s->ask.json)
        ft__answer_largest(&out, &device, found, &s->r);
    else if (!ft__screen_largest(&out, &style, &device, found, &s->r))
        out.failed = true;
    int status = s->ask.json ? cli_print(&out) : cli_show(&out, &style);
    if (!status) status = cli_picture_largest(s->ask.args, &device, found, &s->r);
    return !status && !found ? 1 : status;
}

int cli_largest(const cli_args *args)
{
    search s = {.gpus = 1};
    ft_step_view v;
    double tokens = 0;
    const char *family = cli_value(args, OPT_SHAPES), *task = cli_value(args, OPT_USE);
    s.gpt = family && !strcmp(family, "gpt");
    s.training = !task || !strcmp(task, "train");
    int status = cli_whole(args, OPT_GPUS_USED, 1, 1 << 20, &s.gpus);
    if (!status) status = cli_real(args, OPT_TRAIN_TOKENS, 1, 1e18, &tokens);
    if (status) return status;
    s.r = (ft_largest){.family = s.gpt ? "gpt" : "llama", .training = s.training, .gpus = s.gpus};
    status = cli_asker_open(&s.ask, args, "memory");
    if (!status && s.ask.gpu_count > 1) status = cli_usage(args->command, "\"largest\" looks at one kind of GPU");
    if (!status && !set_defaults(&s)) status = cli_complain(FT_E_MEMORY, "out of memory");
    if (!status && find(&s, &v) != FT_OK) status = cli_asker_fail(&s.ask, &s.err);
    if (!status) status = print(&s, &v);
    cli_asker_close(&s.ask);
    return status;
}

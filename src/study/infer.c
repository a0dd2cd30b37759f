/* infer.c: prefill and decode over batches and lengths, what the cache holds, and offline throughput.
 *
 * Offline: all prompts are there from the start and the batch is kept full, as serving engines do. In the time that
 * every sequence of the batch generates its answer, as many new prompts are prefilled: a batch of b takes
 * prefill(b prompts) + osl * TPOT(b) and gives b * osl tokens. Prompts are prefilled in portions of 8192 tokens, the
 * engines' usual budget; TPOT is taken halfway through the answers, as it grows evenly with the context. The interval
 * of the throughput takes both times at their fastest, or at their slowest.
 */
#include "study/infer.h"

#include <math.h>
#include <string.h>

#include "request/keys.h"
#include "study/ask.h"

enum { MOST_SEQUENCES = 1 << 20, PREFILL_TOKENS = 8192 };

typedef struct inferrer {
    ft_asker ask;
    ft_infer *r;
    ft_engine_step step;  /* of `engine` */
    const json_t *engine; /* NULL: the framework's own steps */
    int64_t longest;      /* positions that the model has */
    int64_t batch, seq;   /* that an ONNX or a graph file fixes; 0: none */
    double copies;        /* data ranks, which serve batches of their own */
    bool no_length;       /* the model has no context, and none was given for nothing */
    bool alone;           /* on one GPU */
    bool executes;        /* the request says how kernels are launched */
    ft_error *err;
} inferrer;

static ft_status forecast(inferrer *f, const char *task, int64_t batch, int64_t seq, ft_step_view *v)
{
    FT_TRY(ft__ask_task(&f->ask, task, f->err));
    FT_TRY(ft__ask_set(&f->ask, FT_KEY_ID_MICRO_BATCH, json_integer(batch), f->err));
    if (!f->no_length) FT_TRY(ft__ask_set(&f->ask, FT_KEY_ID_SEQ, json_integer(seq), f->err));
    return ft__ask_step(&f->ask, v, f->err);
}

/* A batch so large that its tensors are refused does not fit either; one that the file does not have is an error. */
static ft_status fill_cell(inferrer *f, const char *task, int64_t batch, int64_t seq, ft_infer_cell *out)
{
    ft_step_view v;
    ft_status status = forecast(f, task, batch, seq, &v);
    if (status == FT_E_RANGE && batch > 1 && !f->batch && !f->seq) return FT_OK;
    if (status != FT_OK) return status;
    const ft_step *s = v.step;
    bool samples = ft__counts_samples(v.arch);
    *out = (ft_infer_cell){.ms = s->step_ms,
                           .low_ms = s->low_ms,
                           .high_ms = s->high_ms,
                           .tokens_per_s = samples ? ft__view_samples_per_s(&v) : ft__view_tokens_per_s(&v),
                           .fits = s->memory.fits};
    bool prefill = !strcmp(task, "prefill");
    double joules = v.memory_only ? 0 : ft__step_joules(v.graph, s, v.device), quantile = v.quantile;
    const ft_device device = *v.device;
    out->energy = ft__view_energy(&v);
    if (!f->engine || (!prefill && strcmp(task, "decode") != 0)) return FT_OK;
    FT_TRY(f->step(f->ask.ft, f->ask.scratch, f->ask.object, f->engine, prefill, batch, seq, out, f->err));
    out->tokens_per_s = (double)batch * (prefill ? (double)seq : 1) * f->copies / out->ms * 1e3;
    out->energy = ft__energy_of(&device, joules, out->ms, out->low_ms, out->high_ms, ft__interval_level(quantile));
    return FT_OK;
}

static ft_status fits(inferrer *f, int64_t batch, int64_t seq, bool *out)
{
    ft_step_view v;
    ft_status status = forecast(f, "memory", batch, seq, &v); /* "cache" is set: of decoding */
    *out = status == FT_OK && v.step->memory.verdict == FT_FIT_YES;
    return status == FT_E_RANGE ? FT_OK : status;
}

/* The largest batch that decodes at this length; 0 for none. */
static ft_status sequences_at(inferrer *f, int64_t seq, int64_t *out)
{
    int64_t low = 0, high = 1;
    bool fine = true;
    while (fine && high <= MOST_SEQUENCES) {
        FT_TRY(fits(f, high, seq, &fine));
        if (fine) {
            low = high;
            high *= 2;
        }
    }
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        FT_TRY(fits(f, middle, seq, &fine));
        if (fine)
            low = middle;
        else
            high = middle;
    }
    *out = low;
    return FT_OK;
}

static ft_status find_capacity(inferrer *f)
{
    ft_infer *r = f->r;
    ft_step_view v;
    double kv[2];
    const int64_t long_one = r->seqs[0] > 1 ? r->seqs[0] : 2, lengths[] = {long_one / 2, long_one};
    for (int i = 0; i < 2; i++) { /* what one more token adds: states and encoders' keys do not grow */
        FT_TRY(forecast(f, "memory", 1, lengths[i], &v));
        kv[i] = v.step->memory.kv_cache_bytes;
    }
    r->kv_bytes_per_token = (kv[1] - kv[0]) / (double)(lengths[1] - lengths[0]);
    if (r->kv_bytes_per_token <= 0) return FT_OK;
    for (size_t s = 0; s < r->seq_count; s++) FT_TRY(sequences_at(f, r->seqs[s], &r->sequences[s]));
    for (size_t s = 0; s < r->seq_count; s++)
        if (r->sequences[s] > 0) r->cache_tokens = (double)r->sequences[s] * (double)r->seqs[s];
    return FT_OK;
}

static ft_status try_batch(inferrer *f, int64_t batch)
{
    ft_offline *o = &f->r->offline;
    ft_infer_cell prefill = {0}, decode = {0};
    int64_t portion = PREFILL_TOKENS / o->isl;
    if (portion > batch) portion = batch;
    if (portion < 1) portion = 1;
    FT_TRY(fill_cell(f, "prefill", portion, o->isl, &prefill));
    FT_TRY(fill_cell(f, "decode", batch, o->isl + o->osl / 2, &decode));
    double portions = (double)batch / (double)portion, osl = (double)o->osl, prefill_ms = prefill.ms * portions;
    double total = prefill_ms + osl * decode.ms, made = (double)batch * f->copies * osl * 1e3, rate = made / total;
    if (total <= 0 || rate <= o->tokens_per_s) return FT_OK;
    o->batch = batch;
    o->prefill_ms = prefill_ms;
    o->tpot_ms = decode.ms;
    o->tokens_per_s = rate;
    o->low_tokens_per_s = made / (prefill.high_ms * portions + osl * decode.high_ms);
    o->high_tokens_per_s = made / (prefill.low_ms * portions + osl * decode.low_ms);
    o->requests_per_s = rate / (double)o->osl;
    double joules = prefill.energy.joules * portions + osl * decode.energy.joules; /* of one GPU */
    o->tokens_per_joule = joules > 0 ? made * 1e-3 / joules : 0;
    o->total_tokens_per_s = o->requests_per_s * (double)(o->isl + o->osl);
    return FT_OK;
}

static ft_status find_offline(inferrer *f)
{
    ft_offline *o = &f->r->offline;
    int64_t most;
    FT_TRY(sequences_at(f, o->isl + o->osl, &most));
    for (int64_t batch = 1; batch < most && batch <= 4096; batch *= 2) FT_TRY(try_batch(f, batch));
    return most > 0 && most <= 4096 ? try_batch(f, most) : FT_OK;
}

/* -- the steps that a report shows ------------------------------------------------------------- */

/* The first cell's steps with advice; the last of them is the title. A view lives until the next forecast. */
static ft_status forecast_first(inferrer *f, const ft_infer_request *asked)
{
    ft_infer *r = f->r;
    bool advises = asked->advice || asked->techniques;
    if (!advises && r->batches[0] == 1) return FT_OK;
    if (asked->advice || asked->techniques) FT_TRY(ft__ask_set(&f->ask, FT_KEY_ID_ADVICE, json_true(), f->err));
    if (asked->techniques) FT_TRY(ft__ask_set(&f->ask, FT_KEY_ID_TECHNIQUES, json_true(), f->err));
    if (advises && r->generates) {
        FT_TRY(forecast(f, "prefill", r->batches[0], r->seqs[0], &r->steps[0]));
        FT_TRY(ft__ask_keep(&f->ask, &r->steps[0], &r->kept, f->err));
        r->step_count = 1;
    }
    FT_TRY(forecast(f, r->generates ? "decode" : "forward", r->batches[0], r->seqs[0], &r->title));
    if (advises) r->steps[r->step_count++] = r->title;
    return FT_OK;
}

static ft_status fill(inferrer *f, const ft_infer_request *asked)
{
    ft_infer *r = f->r;
    const char *last = r->generates ? "decode" : "forward";
    for (size_t s = 0; s < r->seq_count; s++)
        for (size_t b = 0; b < r->batch_count; b++) {
            const char *task = r->generates ? "prefill" : "forward";
            FT_TRY(fill_cell(f, task, r->batches[b], r->seqs[s], &r->prefill[s][b]));
            if (r->generates) FT_TRY(fill_cell(f, "decode", r->batches[b], r->seqs[s], &r->decode[s][b]));
        }
    if (r->generates) {
        FT_TRY(find_capacity(f));
        if (r->offline.isl > 0) FT_TRY(find_offline(f));
    }
    FT_TRY(forecast(f, last, f->batch > 0 ? f->batch : 1, r->seqs[0], &r->title));
    r->one_fits = r->title.step->memory.fits;
    FT_TRY(forecast_first(f, asked));
    r->weights_bytes = r->title.step->memory.weights_bytes;
    r->gpus = ft__view_gpus(&r->title);
    r->offline.tokens_per_joule /= (double)r->gpus;
    return FT_OK;
}

/* -- the grid ---------------------------------------------------------------------------------- */

/* The values given, or usual ones. */
static void side(const int64_t *given, size_t given_count, const int64_t *usual, size_t usual_count, int64_t *out,
                 size_t *count)
{
    *count = given_count > 0 ? given_count : usual_count;
    for (size_t i = 0; i < *count; i++) out[i] = given_count > 0 ? given[i] : usual[i];
}

static ft_status lay_grid(inferrer *f, const ft_infer_request *asked)
{
    static const int64_t batches[] = {1, 4, 16, 64, 256}, lengths[] = {512, 2048, 8192, 32768};
    ft_infer *r = f->r;
    ft_offline *o = &r->offline;
    size_t usual = 1;
    while (usual < 4 && (f->longest <= 0 || lengths[usual] <= f->longest)) usual++;
    int64_t short_one[] = {f->longest > 0 && f->longest < 512 ? f->longest : 512};
    if (f->seq > 0) {
        usual = 1;
        short_one[0] = f->seq;
    }
    side(asked->batches, asked->batch_count, f->batch > 0 ? &f->batch : batches, f->batch > 0 ? 1 : 5, r->batches,
         &r->batch_count);
    side(asked->seqs, asked->seq_count, usual == 1 ? short_one : lengths, usual, r->seqs, &r->seq_count);
    o->isl = asked->isl;
    o->osl = asked->osl;
    if (!r->generates && (o->isl > 0 || o->osl > 0))
        return ft__fail_at(f->err, FT_E_UNSUPPORTED, o->isl > 0 ? "isl" : "osl", 0, 0,
                           "the model generates no tokens: it has no use for \"isl\" and \"osl\"");
    if (o->isl > 0 && o->osl == 0) o->osl = 128;
    if (o->osl > 0 && o->isl == 0) o->isl = 1024;
    if (!r->has_context) r->seq_count = 1;
    f->ask.reach = (double)(o->isl + o->osl);
    for (size_t i = 0; r->has_context && i < r->seq_count; i++) f->ask.reach = fmax(f->ask.reach, (double)r->seqs[i]);
    return FT_OK;
}

/* What the model is decides what is asked; a request for one token tells. */
static ft_status look_at_model(inferrer *f)
{
    ft_model_request request;
    ft_asker *a = &f->ask;
    FT_TRY(ft__ask_task(a, "forward", f->err));
    FT_TRY(ft__model_request_of(a->ft, a->scratch, a->object, &request, f->err));
    ft_design design = request.arch->design;
    f->batch = request.arch->fixed_batch;
    f->seq = request.arch->fixed_seq;
    f->copies = (double)request.parallel.dp;
    f->alone = ft__parallel_alone(&request.parallel);
    f->r->generates = design == FT_DECODER_ONLY || design == FT_ENCODER_DECODER || design == FT_SPEECH ||
                      design == FT_STATE_SPACE;
    const bool sized = request.pictures_of.height > 0 || request.pictures_of.frames > 0; /* which says its tokens */
    f->r->has_context = !ft__counts_samples(request.arch) && !(sized && request.arch->token_pixels > 0);
    f->longest = design == FT_SPEECH ? request.arch->max_target - 1 : request.arch->max_position; /* room for a token */
    if (f->r->generates && !ft__key_get(a->object, FT_KEY_ID_CACHE)) /* makes "memory" that of decoding */
        FT_TRY(ft__ask_set(a, FT_KEY_ID_CACHE, json_string("paged"), f->err));
    f->executes = ft__key_get(a->object, FT_KEY_ID_EXECUTION) != NULL;
    if (f->executes) return FT_OK;
    return ft__ask_set(a, FT_KEY_ID_EXECUTION, json_string("cuda_graph"), f->err); /* as serving engines do */
}

/* -- images of prompts ------------------------------------------------------------------------ */

/* Where nobody knows what is around the model, what is said of it has no effect. */
static ft_status generate(inferrer *f, const ft_infer_request *asked)
{
    const ft_key_id own[] = {FT_KEY_ID_DENOISING_STEPS, FT_KEY_ID_GUIDANCE, FT_KEY_ID_TILING};
    const bool said[] = {asked->steps > 0, asked->guidance >= 0, asked->tiling};
    const bool known = ft__generator_of(f->ask.object) != NULL;
    for (size_t i = 0; i < sizeof own / sizeof *own && !(known && f->alone); i++)
        if (said[i])
            return ft__fail_at(f->err, FT_E_UNSUPPORTED, ft__keys[own[i]].key, 0, 0,
                               known ? "images from prompts are forecast on one GPU: \"%s\" has no use here"
                                     : "no pipeline of this model is known: \"%s\" is for denoisers in "
                                       "data/generators, such as flux.1-dev",
                               ft__keys[own[i]].key);
    if (!known || !f->alone) return FT_OK;
    json_t *object = ft__study_copy(f->ask.object);
    if (!object) return ft__no_memory(f->err);
    if (!f->executes) ft__key_drop(object, FT_KEY_ID_EXECUTION); /* which is a serving engine's by then */
    const ft_generate_asked one = {.object = object,
                                   .steps = asked->steps,
                                   .batch = f->r->batches[0],
                                   .guidance = asked->guidance,
                                   .tiled = asked->tiling};
    ft_status status = ft__generate_of(f->ask.ft, f->ask.scratch, &one, &f->r->made, f->err);
    json_decref(object);
    return status;
}

ft_status ft__infer_of(const ft_context *ft, ft_scratch *scratch, const ft_infer_request *r, ft_engine_step step,
                       ft_infer *out, ft_error *err)
{
    inferrer f = {.ask = {.ft = ft, .scratch = scratch, .object = r->base, .idle = &r->idle},
                  .r = out,
                  .engine = r->engine,
                  .step = step,
                  .err = err};
    *out = (ft_infer){0};
    FT_TRY(look_at_model(&f));
    f.no_length = !out->has_context && !r->seq_count;
    FT_TRY(lay_grid(&f, r));
    FT_TRY(generate(&f, r));
    return fill(&f, r);
}

void ft__infer_free(ft_infer *r)
{
    ft__arena_free(r->kept);
    r->kept = NULL;
}

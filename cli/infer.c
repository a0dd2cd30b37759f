/* infer.c: `foretell infer MODEL`: prefill and decode over batches and lengths, what the cache holds, and offline
 * throughput.
 *
 * Offline: all prompts are there from the start and the batch is kept full, as serving engines do. In the time that
 * every sequence of the batch generates its answer, as many new prompts are prefilled: a batch of b takes
 * prefill(b prompts) + osl * TPOT(b) and gives b * osl tokens. Prompts are prefilled in portions of 8192 tokens, the
 * engines' usual budget; TPOT is taken halfway through the answers, as it grows evenly with the context.
 */
#include <stdio.h>
#include <string.h>

#include "ask.h"
#include "commands.h"
#include "picture.h"
#include "report/json/answer_step.h"
#include "report/text/infer_screen.h"
#include "terminal.h"

enum { MOST_SEQUENCES = 1 << 20, PREFILL_TOKENS = 8192 };

typedef struct inferrer {
    cli_asker ask;
    ft_infer r;
    int64_t longest;    /* positions that the model has */
    int64_t batch, seq; /* that an ONNX or a graph file fixes; 0: none */
    bool one_fits;      /* one sequence of the first length */
    bool advises;       /* steps of the first cell come with advice */
    bool only_page;     /* for the page alone */
    const char *how;    /* of the screen: NULL, "all", "techniques" */
    ft_text steps;      /* those before the title's, printed */
    json_t *asked;      /* the request as it was given */
    ft_error err;
} inferrer;

static bool set(inferrer *f, const char *task, int64_t batch, int64_t seq)
{
    cli_asker *a = &f->ask;
    return cli_asker_set(a, "task", json_string(task)) && cli_asker_set(a, "batch", json_integer(batch)) &&
           cli_asker_set(a, "seq", json_integer(seq));
}

static ft_status forecast(inferrer *f, const char *task, int64_t batch, int64_t seq, ft_step_view *v)
{
    if (!set(f, task, batch, seq)) return ft__fail(&f->err, FT_E_MEMORY, "out of memory");
    return cli_asker_forecast(&f->ask, v, &f->err);
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
    return FT_OK;
}

static ft_status fits(inferrer *f, int64_t batch, int64_t seq, bool *out)
{
    ft_step_view v;
    ft_status status = forecast(f, "memory", batch, seq, &v); /* "cache" is set: of decoding */
    *out = status == FT_OK && v.step->memory.fits;
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
    ft_infer *r = &f->r;
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

/* Data ranks serve batches of their own. */
static double data_ranks(const inferrer *f)
{
    json_int_t dp = json_integer_value(json_object_get(json_object_get(f->ask.object, "parallel"), "dp"));
    return dp > 1 ? (double)dp : 1;
}

static ft_status try_batch(inferrer *f, int64_t batch)
{
    ft_offline *o = &f->r.offline;
    ft_infer_cell prefill = {0}, decode = {0};
    int64_t portion = PREFILL_TOKENS / o->isl;
    if (portion > batch) portion = batch;
    if (portion < 1) portion = 1;
    FT_TRY(fill_cell(f, "prefill", portion, o->isl, &prefill));
    FT_TRY(fill_cell(f, "decode", batch, o->isl + o->osl / 2, &decode));
    double prefill_ms = prefill.ms * (double)batch / (double)portion, total = prefill_ms + (double)o->osl * decode.ms;
    double rate = (double)batch * data_ranks(f) * (double)o->osl / total * 1e3;
    if (total <= 0 || rate <= o->tokens_per_s) return FT_OK;
    o->batch = batch;
    o->prefill_ms = prefill_ms;
    o->tpot_ms = decode.ms;
    o->tokens_per_s = rate;
    o->requests_per_s = rate / (double)o->osl;
    o->total_tokens_per_s = o->requests_per_s * (double)(o->isl + o->osl);
    return FT_OK;
}

static ft_status find_offline(inferrer *f)
{
    ft_offline *o = &f->r.offline;
    int64_t most;
    FT_TRY(sequences_at(f, o->isl + o->osl, &most));
    for (int64_t batch = 1; batch < most && batch <= 4096; batch *= 2) FT_TRY(try_batch(f, batch));
    return most > 0 && most <= 4096 ? try_batch(f, most) : FT_OK;
}

/* -- what to change ---------------------------------------------------------------------------- */

static ft_status add_step(inferrer *f, const ft_step_view *v)
{
    ft_style style = cli_style(f->ask.args);
    bool fine = true;
    if (f->ask.json) {
        json_t *id = json_string(v->work->task == FT_PREFILL  ? "prefill"
                                 : v->work->task == FT_DECODE ? "decode"
                                                              : "forward");
        ft__text_add(&f->steps, f->steps.length ? "," : "");
        ft__answer_step(&f->steps, id, v);
        json_decref(id);
    } else {
        fine = ft__screen_infer_step(&f->steps, &style, v, f->how);
    }
    return fine && !f->steps.failed ? FT_OK : ft__fail(&f->err, FT_E_MEMORY, "out of memory");
}

/* The first cell's steps with advice; the last of them is the title. A view lives until the next forecast. */
static ft_status forecast_first(inferrer *f, ft_step_view *title)
{
    const ft_infer *r = &f->r;
    bool table = cli_has(f->ask.args, OPT_TECHNIQUES);
    if (!f->advises && r->batches[0] == 1) return FT_OK;
    if (f->advises && (!cli_asker_set(&f->ask, "advice", json_true()) ||
                       (table && !cli_asker_set(&f->ask, "techniques", json_true()))))
        return ft__fail(&f->err, FT_E_MEMORY, "out of memory");
    bool printed = f->advises && !f->only_page;
    if (printed && r->generates) {
        FT_TRY(forecast(f, "prefill", r->batches[0], r->seqs[0], title));
        FT_TRY(add_step(f, title));
    }
    FT_TRY(forecast(f, r->generates ? "decode" : "forward", r->batches[0], r->seqs[0], title));
    return printed ? add_step(f, title) : FT_OK;
}

/* As `train` does: people get advice unless they do without, programs when they say so, a page always. */
static void read_advice(inferrer *f)
{
    const cli_args *args = f->ask.args;
    const char *advice = cli_value(args, OPT_ADVICE);
    bool table = cli_has(args, OPT_TECHNIQUES), quiet = f->ask.json || cli_has(args, OPT_INFER_CSV);
    bool none = advice && !strcmp(advice, "none"), wanted = table || (advice ? !none : !quiet);
    f->only_page = !wanted && !none && cli_value(args, OPT_HTML);
    f->advises = wanted || f->only_page;
    f->how = advice && !strcmp(advice, "all") ? "all" : table ? "techniques" : NULL;
}

/* The request as it was given, with the batches and lengths of the grid. */
static json_t *said_request(const inferrer *f)
{
    json_t *q = json_copy(f->asked), *batches = json_array(), *seqs = json_array();
    bool fine = q && batches && seqs;
    for (size_t i = 0; fine && i < f->r.batch_count; i++)
        fine = json_array_append_new(batches, json_integer(f->r.batches[i])) == 0;
    for (size_t i = 0; fine && i < f->r.seq_count; i++)
        fine = json_array_append_new(seqs, json_integer(f->r.seqs[i])) == 0;
    fine = fine && json_object_set_new(q, "task", json_string("infer")) == 0 &&
           json_object_set(q, "batch", batches) == 0 && (!f->r.has_context || json_object_set(q, "seq", seqs) == 0);
    json_decref(batches);
    json_decref(seqs);
    if (fine) return q;
    json_decref(q);
    return NULL;
}

static ft_status fill(inferrer *f, ft_step_view *title)
{
    ft_infer *r = &f->r;
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
    FT_TRY(forecast(f, r->generates ? "decode" : "forward", f->batch > 0 ? f->batch : 1, r->seqs[0], title));
    f->one_fits = title->step->memory.fits;
    FT_TRY(forecast_first(f, title));
    r->weights_bytes = title->step->memory.weights_bytes;
    r->gpus = ft__view_gpus(title);
    return FT_OK;
}

/* -- the grid ---------------------------------------------------------------------------------- */

/* The values given, or usual ones. */
static int side(const cli_args *args, cli_option_id option, const int64_t *usual, size_t usual_count, int64_t *out,
                size_t *count)
{
    *count = 0;
    for (int i = 0; i < args->given_count; i++) {
        if (args->given[i].option != option) continue;
        char flag[48];
        if (*count == FT_INFER_SIDE)
            return cli_usage(args->command, "%s: at most %d of them", cli_flag(option, flag), FT_INFER_SIDE);
        int64_t value;
        if (!ft__whole_parse(args->given[i].value, &value) || value < 1 || value > FT_LARGEST_SIZE)
            return cli_usage(args->command, "%s takes a whole number from 1 to 2^40, not \"%s\"",
                             cli_flag(option, flag), args->given[i].value);
        out[(*count)++] = value;
    }
    if (*count == 0)
        for (; *count < usual_count; ++*count) out[*count] = usual[*count];
    return 0;
}

static int read_grid(inferrer *f)
{
    static const int64_t batches[] = {1, 4, 16, 64, 256}, lengths[] = {512, 2048, 8192, 32768};
    const cli_args *args = f->ask.args;
    ft_infer *r = &f->r;
    ft_offline *o = &r->offline;
    size_t usual = 1;
    while (usual < 4 && (f->longest <= 0 || lengths[usual] <= f->longest)) usual++;
    int64_t short_one[] = {f->longest > 0 && f->longest < 512 ? f->longest : 512};
    if (f->seq > 0) {
        usual = 1;
        short_one[0] = f->seq;
    }
    int status = side(args, OPT_INFER_BATCHES, f->batch > 0 ? &f->batch : batches, f->batch > 0 ? 1 : 5, r->batches,
                      &r->batch_count);
    if (!status) status = side(args, OPT_INFER_SEQS, usual == 1 ? short_one : lengths, usual, r->seqs, &r->seq_count);
    if (!status) status = cli_whole(args, OPT_ISL, 1, 1 << 30, &o->isl);
    if (!status) status = cli_whole(args, OPT_OSL, 1, 1 << 30, &o->osl);
    if (!status && !r->generates && (o->isl > 0 || o->osl > 0))
        return cli_usage(args->command, "\"%s\" generates no tokens: it has no use for --isl and --osl",
                         args->operands[0]);
    if (o->isl > 0 && o->osl == 0) o->osl = 128;
    if (o->osl > 0 && o->isl == 0) o->isl = 1024;
    if (!r->has_context) r->seq_count = 1;
    return status;
}

/* What the model is decides what is asked; a request for one token tells. */
static int look_at_model(inferrer *f)
{
    ft_model_request request;
    cli_asker *a = &f->ask;
    if (!cli_asker_set(a, "task", json_string("forward"))) return cli_complain(FT_E_MEMORY, "out of memory");
    if (ft__model_request_of(a->ft, &a->scratch, a->object, &request, &f->err) != FT_OK)
        return cli_asker_fail(a, &f->err);
    ft_design design = request.arch->design;
    f->batch = request.arch->fixed_batch;
    f->seq = request.arch->fixed_seq;
    f->r.generates = design == FT_DECODER_ONLY || design == FT_ENCODER_DECODER || design == FT_SPEECH ||
                     design == FT_STATE_SPACE;
    f->r.has_context = !ft__counts_samples(request.arch);
    f->longest = design == FT_SPEECH ? request.arch->max_target - 1 : request.arch->max_position; /* room for a token */
    bool needs_cache = f->r.generates && !json_object_get(a->object, "cache"); /* makes "memory" that of decoding */
    bool fine = (!needs_cache || cli_asker_set(a, "cache", json_string("paged"))) &&
                (cli_has(a->args, OPT_INFER_EXECUTION) || cli_asker_set(a, "execution", json_string("cuda_graph")));
    return fine ? 0 : cli_complain(FT_E_MEMORY, "out of memory");
}

static void add_answer(const inferrer *f, ft_text *out, const ft_step_view *title)
{
    json_t *request = said_request(f);
    ft__answer_infer(out, title, &f->r, &f->steps);
    if (request)
        cli_ask_answered(out, request);
    else
        out->failed = true;
    json_decref(request);
    ft__text_add(out, "\n");
}

int cli_infer(const cli_args *args)
{
    inferrer f = {0};
    ft_step_view title;
    ft_text out = {0};
    int status = cli_picture_check(args);
    if (!status && cli_has(args, OPT_INFER_CSV) && cli_has(args, OPT_JSON))
        status = cli_usage(args->command, "--csv or --json, not both");
    if (status) return status;
    status = cli_asker_open(&f.ask, args, "forward");
    if (!status && f.ask.gpu_count > 1)
        status = cli_usage(args->command, "\"infer\" looks at one GPU; give --gpu once");
    if (!status) f.asked = json_deep_copy(f.ask.object);
    if (!status) status = look_at_model(&f);
    if (!status) status = read_grid(&f);
    read_advice(&f);
    if (!status && fill(&f, &title) != FT_OK) status = cli_asker_fail(&f.ask, &f.err);
    if (!status) status = cli_picture_infer(args, &title, &f.r);
    if (!status) {
        ft_style style = cli_style(args);
        bool csv = cli_has(args, OPT_INFER_CSV);
        if (f.ask.json)
            add_answer(&f, &out, &title);
        else if (!(csv ? ft__csv_infer(&out, &f.r) : ft__screen_infer(&out, &style, &title, &f.r)))
            out.failed = true;
        else if (!csv && f.steps.length)
            ft__text_add_n(&out, f.steps.at, f.steps.length);
        if (!f.ask.json) cli_say_warnings(args->operands[0], title.warnings);
        status = f.ask.json || csv ? cli_print(&out) : cli_show(&out, &style);
        if (!status && !f.one_fits) status = 1; /* not even one sequence */
    }
    json_decref(f.asked);
    ft__text_free(&f.steps);
    cli_asker_close(&f.ask);
    return status;
}

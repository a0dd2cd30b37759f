/* infer.c: `foretell infer MODEL`: prefill and decode over batches and lengths, what the cache holds, and offline
 * throughput. */
#include <stdlib.h>
#include <string.h>

#include "ask.h"
#include "commands.h"
#include "picture.h"
#include "report/json/infer_answer.h"
#include "report/json/serve_answer.h"
#include "report/text/infer_screen.h"
#include "report/text/several_screen.h"
#include "terminal.h"

typedef struct inferrer {
    cli_asker ask;
    ft_infer_request asked;
    ft_infer r;
    bool only_page;  /* advice is for the page alone */
    const char *how; /* of the screen: NULL, "all", "techniques" */
    ft_error err;
} inferrer;

/* As `train` does: people get advice unless they do without, programs when they say so, a page always. */
static void read_advice(inferrer *f)
{
    const cli_args *args = f->ask.args;
    const char *advice = cli_value(args, OPT_ADVICE);
    bool table = cli_has(args, OPT_TECHNIQUES), quiet = f->ask.json || cli_has(args, OPT_INFER_CSV);
    bool none = advice && !strcmp(advice, "none"), wanted = table || (advice ? !none : !quiet);
    f->only_page = !wanted && !none && cli_value(args, OPT_HTML);
    f->asked.advice = wanted || f->only_page;
    f->asked.techniques = table;
    f->how = advice && !strcmp(advice, "all") ? "all" : table ? "techniques" : NULL;
}

/* -- printing ---------------------------------------------------------------------------------- */

static bool set_list(json_t *object, ft_key_id key, const int64_t *values, size_t count)
{
    json_t *list = json_array();
    bool fine = list != NULL;
    for (size_t i = 0; fine && i < count; i++) fine = json_array_append_new(list, json_integer(values[i])) == 0;
    return ft__key_set(object, key, list) && fine;
}

/* The answer, and the request as it was given with the batches and lengths of the grid. */
static void add_answer(inferrer *f, const json_t *id, ft_text *out)
{
    json_t *q = cli_ask_copy(f->ask.object);
    const ft_infer *r = &f->r;
    bool fine = q && set_list(q, FT_KEY_ID_INFER_BATCHES, r->batches, r->batch_count) &&
                (!r->has_context || set_list(q, FT_KEY_ID_INFER_SEQS, r->seqs, r->seq_count));
    if (f->only_page) f->r.step_count = 0;
    ft__answer_infer(out, id, r);
    if (fine)
        cli_ask_answered(out, q);
    else
        out->failed = true;
    json_decref(q);
    ft__text_add(out, "\n");
}

static int print(inferrer *f)
{
    const cli_args *args = f->ask.args;
    const ft_infer *r = &f->r;
    ft_style style = cli_style(args);
    ft_text out = {0};
    bool csv = cli_has(args, OPT_INFER_CSV), printed = true;
    int status = cli_picture_infer(args, r);
    if (status) return status;
    if (f->ask.json)
        add_answer(f, NULL, &out);
    else
        printed = csv ? ft__csv_infer(&out, r) : ft__screen_infer(&out, &style, r);
    for (size_t i = 0; !f->ask.json && !csv && !f->only_page && printed && i < r->step_count; i++)
        printed = ft__screen_infer_step(&out, &style, &r->steps[i], f->how);
    if (!printed) out.failed = true;
    if (!f->ask.json) cli_say_warnings(args, args->operands[0], r->title.warnings);
    status = f->ask.json || csv ? cli_print(&out) : cli_show(&out, &style);
    return !status && !r->one_fits ? 1 : status; /* not even one sequence */
}

/* -- the command ------------------------------------------------------------------------------- */

static int fail(inferrer *f)
{
    if (f->err.code == FT_E_UNSUPPORTED && (!strcmp(f->err.where, "isl") || !strcmp(f->err.where, "osl")))
        return cli_usage(f->ask.args->command, "\"%s\" generates no tokens: it has no use for --isl and --osl",
                         f->ask.args->operands[0]);
    return cli_asker_fail(&f->ask, &f->err);
}

static int forecast(inferrer *f)
{
    if (ft__infer_request_read(f->ask.object, &f->asked, &f->err) != FT_OK) return fail(f);
    if (f->ask.gpu_count == 1) read_advice(f);
    ft_status status = ft__infer_of(f->ask.ft, &f->ask.scratch, &f->asked, ft__serving_step, &f->r, &f->err);
    return status == FT_OK ? 0 : -1;
}

/* Side by side: figures of each are kept, its step is not. */
static int run_several(inferrer *f)
{
    cli_asker *a = &f->ask;
    ft_style style = cli_style(a->args);
    ft_text out = {0}, title = {0};
    size_t count = 0;
    int status = 0;
    bool one_fits = false;
    ft_infer *cases = calloc(a->gpu_count, sizeof *cases);
    ft_device *devices = calloc(a->gpu_count, sizeof *devices);
    if (!cases || !devices) status = cli_complain(FT_E_MEMORY, "out of memory");
    for (size_t i = 0; i < a->gpu_count && !status; i++) {
        if (!cli_asker_set(a, FT_KEY_ID_GPU, json_string(a->gpus[i]))) {
            status = cli_ask_unread(a->args);
            break;
        }
        status = forecast(f);
        if (status < 0) {
            bool last = i + 1 == a->gpu_count && count == 0;
            status = !last && cli_leave_out(&f->err, a->gpu_count, a->gpus[i], a->json, &out) ? 0 : fail(f);
        } else if (!status) {
            cases[count] = f->r;
            devices[count++] = *f->r.title.device;
            one_fits = one_fits || f->r.one_fits;
            if (count == 1) ft__infers_title(&title, &style, &f->r);
            json_t *id = a->json ? cli_ask_id(&out, a->gpus[i]) : NULL;
            if (a->json)
                add_answer(f, id, &out);
            else
                cli_say_warnings(a->args, a->args->operands[0], f->r.title.warnings);
            json_decref(id);
        }
        ft__infer_free(&f->r);
        memset(&f->r, 0, sizeof f->r);
        ft__infer_request_free(&f->asked);
        memset(&f->asked, 0, sizeof f->asked);
    }
    if (!status && !a->json && (title.failed || !ft__screen_infers(&out, &style, title.at, cases, devices, count)))
        out.failed = true;
    if (!status)
        status = a->json ? cli_print(&out) : cli_show(&out, &style);
    else
        ft__text_free(&out);
    ft__text_free(&title);
    free(cases);
    free(devices);
    return !status && !one_fits ? 1 : status;
}

static int check_several(const cli_args *args)
{
    bool one = cli_picture_wanted(args) || cli_has(args, OPT_INFER_CSV) || cli_has(args, OPT_TECHNIQUES) ||
               cli_has(args, OPT_ADVICE);
    return one ? cli_usage(args->command, "--html, --svg, --csv, --advice and --techniques are of one GPU; give --gpu "
                                          "once")
               : 0;
}

int cli_infer(const cli_args *args)
{
    inferrer f = {0};
    int status = cli_picture_check(args);
    if (!status && cli_has(args, OPT_INFER_CSV) && cli_has(args, OPT_JSON))
        status = cli_usage(args->command, "--csv or --json, not both");
    if (status) return status;
    status = cli_asker_open(&f.ask, args, "infer");
    if (!status && f.ask.gpu_count > 1) {
        status = check_several(args);
        if (!status) status = run_several(&f);
        cli_asker_close(&f.ask);
        return status;
    }
    if (!status) status = forecast(&f);
    status = status < 0 ? fail(&f) : !status ? print(&f) : status;
    ft__infer_free(&f.r);
    ft__infer_request_free(&f.asked);
    cli_asker_close(&f.ask);
    return status;
}

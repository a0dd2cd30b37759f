/* sweep_command.c: a command over a range of one of its numbers.
 *
 * Every point is the command itself, asked for JSON with the number put in, so that a sweep knows all flags and all
 * rules that the command knows, and a point says what the command alone would say.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ask.h"
#include "base/json.h"
#include "base/json_write.h"
#include "commands.h"
#include "picture.h"
#include "report/text/lines.h"
#include "report/text/step_words.h"
#include "report/text/swept.h"
#include "study/warned.h"
#include "sweep.h"
#include "terminal.h"

enum { MOST_POINTS = 2000 };

typedef struct sweeper {
    const cli_args *args;
    cli_args point; /* what is asked: flags as given, but for the GPU, the number and the form of the answer */
    cli_sweep sweep;
    json_t **answers; /* of every GPU, one after another */
    size_t answer_count;
    bool json, csv, all_fine;
    ft_text fixed;    /* what stays as it is */
    ft_text warnings; /* of the whole sweep */
} sweeper;

static void give(cli_args *args, cli_option_id option, const char *value)
{
    args->given[args->given_count].option = option;
    args->given[args->given_count++].value = value;
}

/* Flags as they are given at every point; files would be written again and again. */
static int copy_flags(sweeper *s)
{
    const cli_args *args = s->args;
    s->point = *args;
    s->point.given_count = 0;
    s->point.given = calloc((size_t)args->given_count + 4, sizeof *s->point.given);
    if (!s->point.given) return cli_complain(FT_E_MEMORY, "out of memory");
    for (int i = 0; i < args->given_count; i++) {
        cli_option_id id = args->given[i].option;
        const cli_option *o = &cli_options[id];
        if (id == OPT_HTML || id == OPT_SVG) continue; /* of the whole sweep */
        if (o->group == CLI_OUTPUT && (o->kind == CLI_FILE || o->kind == CLI_FOLDER || id == OPT_PICTURE))
            return cli_usage(args->command, "--%s shows one point, --sweep has %zu; leave one of them out", o->name,
                             s->sweep.count);
        s->csv = s->csv || !strcmp(o->name, "csv");
        if (id == OPT_SWEEP || id == OPT_JSON || id == OPT_GPU || id == s->sweep.option || !strcmp(o->name, "csv"))
            continue;
        give(&s->point, id, args->given[i].value);
    }
    give(&s->point, OPT_JSON, NULL);
    bool fixed = false; /* by the model's file, which then has one cell of itself */
    if (args->command->bit == CLI_INFER && s->sweep.option != OPT_INFER_BATCHES && !cli_has(args, OPT_INFER_BATCHES)) {
        cli_sweep_own_batch(args, &fixed);
        if (!fixed) give(&s->point, OPT_INFER_BATCHES, "1"); /* one cell, not the usual grid */
    }
    return s->csv && s->json ? cli_usage(args->command, "--csv or --json, not both") : 0;
}

static int ask(sweeper *s, const char *gpu, size_t i, json_t **answer)
{
    char value[40];
    ft_text said = {0};
    ft_error err = {0};
    const cli_command *command = s->args->command;
    int given = s->point.given_count;
    snprintf(value, sizeof value, "%.15g", s->sweep.x[i]);
    give(&s->point, OPT_GPU, gpu);
    give(&s->point, s->sweep.option, value);
    cli_capture(&said);
    int status = command->run(&s->point);
    cli_capture(NULL);
    s->point.given_count = given;
    if (status == 1) s->all_fine = false; /* answered, and the answer is no */
    if (status > 1) {
        if (s->json) cli_print(&said);
        cli_complain(FT_E_RANGE, "--sweep: at %s = %s", s->sweep.key, value);
    } else if (said.failed || !said.at || ft__json_parse(said.at, said.length, "the answer", answer, &err) != FT_OK) {
        status = cli_complain(FT_E_BUG, "no answer at %s = %s", s->sweep.key, value);
    } else {
        status = 0;
        if (s->json) { /* {"ok":...  becomes {"id":"h100_sxm seq=512","ok":... */
            ft_text line = {0};
            char id[160];
            snprintf(id, sizeof id, "%.64s %s=%s", gpu, s->sweep.key, value);
            ft__json_open(&line);
            ft__json_member_text(&line, "id", id);
            ft__json_rest(&line, said.at);
            status = cli_print(&line);
        }
    }
    ft__text_free(&said);
    return status;
}

static void forget(sweeper *s)
{
    for (size_t i = 0; s->answers && i < s->answer_count; i++) json_decref(s->answers[i]);
    free(s->answers);
}

/* "train gpt2", and the range; the GPU between them where there is one. */
static void add_name(ft_text *out, const ft_style *style, const sweeper *s, const char *gpu)
{
    const cli_sweep *w = &s->sweep;
    bool plain = ft__points_plain(w->x, w->count);
    ft__text_addf(out, "%s ", s->args->command->name);
    if (s->args->operand_count) {
        ft__add_model_name(out, s->args->operands[0]);
        ft__text_add(out, " ");
    }
    if (gpu) {
        ft__text_add(out, "on ");
        ft__text_add_plain(out, gpu);
        ft__text_add(out, " ");
    }
    ft__text_addf(out, "over %s ", w->key);
    ft__add_point(out, w->x[0], plain);
    ft__text_addf(out, " %s ", ft__dash(style));
    ft__add_point(out, w->x[w->count - 1], plain);
}

static void add_title(ft_text *out, const ft_style *style, const sweeper *s, const char *gpu)
{
    ft_text line = {0};
    add_name(&line, style, s, gpu);
    ft__ink(out, style, FT_INK_BOLD);
    ft__add_wrapped(out, style, line.at ? line.at : "");
    ft__ink_end(out, style);
    ft__ink(out, style, FT_INK_DIM);
    if (s->fixed.length) ft__add_wrapped(out, style, s->fixed.at);
    ft__ink_end(out, style);
    ft__text_add(out, "\n");
    out->failed = out->failed || line.failed || s->fixed.failed;
    ft__text_free(&line);
}

static ft_swept swept_of(const sweeper *s)
{
    return (ft_swept){s->args->command->name, s->sweep.key, s->sweep.x, s->sweep.count};
}

static int sweep_gpu(sweeper *s, const char *gpu, size_t number)
{
    int status = 0;
    ft_style style = cli_style(s->args);
    ft_swept swept = swept_of(s);
    json_t **answers = s->answers + number * s->sweep.count;
    for (size_t i = 0; i < s->sweep.count && !status; i++) status = ask(s, gpu, i, &answers[i]);
    double length = !status && number == 0 ? ft__swept_length(&swept, answers[0]) : 0;
    if (length > 0) ft__text_addf(&s->fixed, "%sseq %.0f", s->fixed.length ? ", " : "", length);
    if (status || s->json) return status;
    ft_text out = {0};
    bool printed;
    if (s->csv) {
        printed = ft__csv_swept(&out, &swept, gpu, number == 0, answers);
    } else {
        ft__text_add(&out, number == 0 ? "" : "\n");
        add_title(&out, &style, s, gpu);
        printed = ft__screen_swept(&out, &style, &swept, answers);
    }
    if (!printed) out.failed = true;
    return s->csv ? cli_print(&out) : cli_show(&out, &style);
}

/* What has no effect at any point, on stderr; in JSON the answers carry it, on a page the page. */
static int say_warnings(sweeper *s)
{
    ft__warned_over(s->answers, s->answer_count, s->sweep.x, s->sweep.count, cli_sweep_key(&s->sweep), &s->warnings);
    if (s->warnings.failed) return cli_complain(FT_E_MEMORY, "out of memory");
    const char *about = s->args->operand_count ? s->args->operands[0] : NULL;
    if (s->warnings.length && !s->json) cli_say_warnings(s->args, about, s->warnings.at);
    return 0;
}

static int draw(const sweeper *s, const ft_swept_rows *d, const char *const *gpus, size_t gpu_count, const char *title)
{
    ft_page_range page = {.title = title,
                          .fixed = s->fixed.at ? s->fixed.at : "",
                          .key = s->sweep.key,
                          .heading = d->heading,
                          .figure = d->figure,
                          .gpus = gpus,
                          .gpu_count = gpu_count,
                          .count = s->sweep.count,
                          .columns = d->columns,
                          .x = s->sweep.x,
                          .y = d->figures,
                          .low = d->low,
                          .high = d->high,
                          .head = d->head,
                          .align = d->align,
                          .cells = d->cells,
                          .warnings = s->warnings.at};
    if (s->args->command->bit != CLI_SERVE) return cli_picture_range(s->args, &page);
    double *at = calloc(3 * d->rows + 1, sizeof *at);
    if (!at) return cli_complain(FT_E_MEMORY, "out of memory");
    ft_page_loads loads = ft__loads_of(s->answers, d->rows, at);
    page.loads = &loads;
    int status = cli_picture_range(s->args, &page);
    free(at);
    return status;
}

static int write_page(const sweeper *s, const char *const *gpus, size_t gpu_count)
{
    static const ft_style page = {.unicode = true, .width = 100000};
    ft_text title = {0};
    ft_swept_rows rows;
    ft_swept swept = swept_of(s);
    int status;
    add_name(&title, &page, s, NULL);
    if (!ft__swept_rows(&swept, s->answer_count, s->answers, &rows) || title.failed || s->fixed.failed)
        status = cli_complain(FT_E_MEMORY, "out of memory");
    else if (rows.columns == 0)
        status = cli_complain(FT_E_RANGE, "no point of the sweep has a figure to draw");
    else
        status = draw(s, &rows, gpus, gpu_count, title.at);
    ft__swept_rows_free(&rows);
    ft__text_free(&title);
    return status;
}

int cli_sweep_command(const cli_args *args)
{
    sweeper s = {.args = args, .json = cli_has(args, OPT_JSON), .all_fine = true};
    const char **gpus = NULL;
    size_t gpu_count = 0;
    int status = cli_sweep_parse(args, MOST_POINTS, &s.sweep);
    if (!status) status = copy_flags(&s);
    if (!status && !cli_values(args, OPT_GPU, &gpus, &gpu_count)) status = cli_complain(FT_E_MEMORY, "out of memory");
    if (!status && gpu_count == 0)
        status = cli_usage(args->command, "which GPU? --gpu h100_sxm (foretell gpus lists them)");
    if (!status) status = cli_picture_check(args);
    s.answer_count = gpu_count * s.sweep.count;
    if (!status) s.answers = calloc(s.answer_count + 1, sizeof *s.answers);
    if (!status && !s.answers) status = cli_complain(FT_E_MEMORY, "out of memory");
    if (!status) cli_sweep_fixed(&s.fixed, args, s.sweep.option);
    for (size_t i = 0; i < gpu_count && !status; i++) status = sweep_gpu(&s, gpus[i], i);
    if (!status) status = say_warnings(&s);
    if (!status && cli_picture_wanted(args)) status = write_page(&s, gpus, gpu_count);
    forget(&s);
    free(gpus);
    free(s.point.given);
    ft__text_free(&s.fixed);
    ft__text_free(&s.warnings);
    cli_sweep_free(&s.sweep);
    return status || s.all_fine ? status : 1;
}

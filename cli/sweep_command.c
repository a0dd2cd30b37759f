/* sweep_command.c: a command over a range of one of its numbers.
 *
 * Every point is the command itself, asked for JSON with the number put in, so that a sweep knows all flags and all
 * rules that the command knows, and a point says what the command alone would say.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "commands.h"
#include "report/lines.h"
#include "sweep.h"
#include "terminal.h"

enum { MOST_POINTS = 2000 };

typedef struct sweeper {
    const cli_args *args;
    cli_args point; /* what is asked: flags as given, but for the GPU, the number and the form of the answer */
    cli_option_id option;
    cli_sweep sweep;
    json_t **answers;
    bool json, csv, all_fine;
} sweeper;

static bool is_number(const cli_option *o) { return o->kind == CLI_WHOLE || o->kind == CLI_REAL; }

static bool named(const cli_option *o, const char *key)
{
    if (strlen(key) == 1 && o->letter == key[0]) return true;
    if (strlen(key) != strlen(o->name)) return false;
    for (size_t i = 0; key[i]; i++)
        if (key[i] != o->name[i] && !(key[i] == '_' && o->name[i] == '-')) return false;
    return true;
}

/* Numbers alone can be swept. */
static int find_option(sweeper *s)
{
    const cli_command *command = s->args->command;
    const char *names[OPT_COUNT], *key = s->sweep.key;
    char typed[sizeof s->sweep.key];
    size_t count = 0;
    for (int i = 0; i < OPT_COUNT; i++) {
        const cli_option *o = &cli_options[i];
        if (!(o->commands & command->bit) || !is_number(o)) continue;
        if (cli_option_shown(o) || o->group == CLI_ALIAS) names[count++] = o->name;
        if (!named(o, key)) continue;
        s->option = (cli_option_id)i;
        if (o->kind == CLI_WHOLE && !s->sweep.whole)
            return cli_usage(command, "--%s takes whole numbers; --sweep %s has others", o->name,
                             cli_value(s->args, OPT_SWEEP));
        return 0;
    }
    snprintf(typed, sizeof typed, "%s", key);
    for (char *at = typed; *at; at++)
        if (*at == '_') *at = '-';
    const char *nearest = ft__nearest(typed, names, count);
    if (nearest)
        return cli_usage(command, "--sweep: \"%s\" has no number called %s; did you mean %s?", command->name, typed,
                         nearest);
    return cli_usage(command, "--sweep: \"%s\" has no number called %s, as seq or batch are", command->name, typed);
}

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
        if (o->group == CLI_OUTPUT && (o->kind == CLI_FILE || o->kind == CLI_FOLDER))
            return cli_usage(args->command, "--%s shows one point, --sweep has %zu; leave one of them out", o->name,
                             s->sweep.count);
        s->csv = s->csv || !strcmp(o->name, "csv");
        if (id == OPT_SWEEP || id == OPT_JSON || id == OPT_GPU || id == s->option || !strcmp(o->name, "csv")) continue;
        give(&s->point, id, args->given[i].value);
    }
    give(&s->point, OPT_JSON, NULL);
    if (args->command->bit == CLI_INFER && s->option != OPT_INFER_BATCHES && !cli_has(args, OPT_INFER_BATCHES))
        give(&s->point, OPT_INFER_BATCHES, "1"); /* one cell, not the usual grid */
    return s->csv && s->json ? cli_usage(args->command, "--csv or --json, not both") : 0;
}

static int ask(sweeper *s, const char *gpu, size_t i)
{
    char value[40];
    ft_text said = {0};
    ft_error err = {0};
    const cli_command *command = s->args->command;
    int given = s->point.given_count;
    snprintf(value, sizeof value, "%.15g", s->sweep.x[i]);
    give(&s->point, OPT_GPU, gpu);
    give(&s->point, s->option, value);
    cli_capture(&said);
    int status = command->run(&s->point);
    cli_capture(NULL);
    s->point.given_count = given;
    if (status == 1) s->all_fine = false; /* answered, and the answer is no */
    if (status > 1) {
        if (s->json) cli_print(&said);
        cli_complain(FT_E_RANGE, "--sweep: at %s = %s", s->sweep.key, value);
    } else if (said.failed || !said.at ||
               ft__json_parse(said.at, said.length, "the answer", &s->answers[i], &err) != FT_OK) {
        status = cli_complain(FT_E_BUG, "no answer at %s = %s", s->sweep.key, value);
    } else {
        status = 0;
        if (s->json) { /* {"ok":...  becomes {"id":"h100_sxm seq=512","ok":... */
            ft_text line = {0};
            char id[160];
            snprintf(id, sizeof id, "%.64s %s=%s", gpu, s->sweep.key, value);
            ft__text_add(&line, "{\"id\":");
            ft__text_add_json(&line, id);
            ft__text_addf(&line, ",%s", said.at + 1);
            status = cli_print(&line);
        }
    }
    ft__text_free(&said);
    return status;
}

static void forget(sweeper *s)
{
    for (size_t i = 0; s->answers && i < s->sweep.count; i++) {
        json_decref(s->answers[i]);
        s->answers[i] = NULL;
    }
}

static void add_title(ft_text *out, const ft_style *style, const sweeper *s, const char *gpu)
{
    ft_text line = {0};
    const cli_sweep *w = &s->sweep;
    ft__text_addf(&line, "%s ", s->args->command->name);
    if (s->args->operand_count) ft__text_add_plain(&line, s->args->operands[0]);
    ft__text_add(&line, s->args->operand_count ? " on " : "on ");
    ft__text_add_plain(&line, gpu);
    ft__text_addf(&line, " over %s %.10g %s %.10g", w->key, w->x[0], ft__dash(style), w->x[w->count - 1]);
    ft__ink(out, style, FT_INK_BOLD);
    ft__add_wrapped(out, style, line.at ? line.at : "");
    ft__ink_end(out, style);
    ft__text_add(out, "\n");
    out->failed = out->failed || line.failed;
    ft__text_free(&line);
}

static int sweep_gpu(sweeper *s, const char *gpu, bool first)
{
    int status = 0;
    ft_style style = cli_style(s->args);
    unsigned bit = s->args->command->bit;
    for (size_t i = 0; i < s->sweep.count && !status; i++) status = ask(s, gpu, i);
    if (status || s->json) return status;
    ft_text out = {0};
    bool printed;
    if (s->csv) {
        printed = cli_sweep_csv(&out, bit, &s->sweep, gpu, first, s->answers);
    } else {
        ft__text_add(&out, first ? "" : "\n");
        add_title(&out, &style, s, gpu);
        printed = cli_sweep_screen(&out, &style, bit, &s->sweep, s->answers);
    }
    if (!printed) out.failed = true;
    return cli_print(&out);
}

int cli_sweep_command(const cli_args *args)
{
    sweeper s = {.args = args, .json = cli_has(args, OPT_JSON), .all_fine = true};
    const char **gpus = NULL;
    size_t gpu_count = 0;
    int status = cli_sweep_parse(args->command, cli_value(args, OPT_SWEEP), MOST_POINTS, &s.sweep);
    if (!status) status = find_option(&s);
    if (!status) status = copy_flags(&s);
    if (!status && !cli_values(args, OPT_GPU, &gpus, &gpu_count)) status = cli_complain(FT_E_MEMORY, "out of memory");
    if (!status && gpu_count == 0)
        status = cli_usage(args->command, "which GPU? --gpu h100_sxm (foretell gpus lists them)");
    if (!status) s.answers = calloc(s.sweep.count, sizeof *s.answers);
    if (!status && !s.answers) status = cli_complain(FT_E_MEMORY, "out of memory");
    for (size_t i = 0; i < gpu_count && !status; i++) {
        status = sweep_gpu(&s, gpus[i], i == 0);
        forget(&s);
    }
    forget(&s);
    free(s.answers);
    free(gpus);
    free(s.point.given);
    cli_sweep_free(&s.sweep);
    return status || s.all_fine ? status : 1;
}

/* sweep.c: KEY=FROM:TO[:STEP] -> the points to forecast.
 *
 * STEP adds, xSTEP multiplies. Without one, the range is cut into at most 64 pieces at multiples of a power of two:
 * from 1 to 8192 that is 1, 128, 256, ... and not 1, 129, 257, ..., whose odd sizes would all go down the slow path of
 * unaligned operands and say nothing about the sizes people use. Ends that are no whole numbers are joined by 32 equal
 * steps.
 */
#include "sweep.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ask.h"
#include "terminal.h"

enum { PIECES = 64, PARTS = 32 };

typedef struct range {
    double from, to, step;
    bool multiply, aligned;
} range;

static bool is_whole(double x) { return x == floor(x); }

/* NULL, or what is wrong with it. */
static const char *read_range(char *text, range *r)
{
    static const double largest = 9007199254740992.0; /* 2^53: whole numbers beyond it cannot be told apart */
    char *to = strchr(text, ':');
    if (!to) return "the range has one end, FROM:TO has two";
    *to++ = '\0';
    char *step = strchr(to, ':');
    if (step) *step++ = '\0';
    if (!ft__number_parse(text, &r->from)) return "FROM is no number";
    if (!ft__number_parse(to, &r->to)) return "TO is no number";
    if (r->from < 0) return "FROM is below 0";
    if (r->to < r->from) return "TO is below FROM; sweeps go up";
    if (r->to > largest) return "TO is beyond 2^53";
    if (!step && is_whole(r->from) && is_whole(r->to)) {
        r->aligned = true;
        for (r->step = 1; (r->to - r->from) / r->step >= PIECES; r->step *= 2) {}
        return NULL;
    }
    if (!step) {
        r->step = (r->to - r->from) / PARTS; /* 0 for a single point */
        return NULL;
    }
    r->multiply = *step == 'x';
    if (!ft__number_parse(step + r->multiply, &r->step)) return "STEP is no number, and no factor such as x2";
    if (r->multiply && r->step <= 1) return "a factor must be above 1";
    return r->step > 0 ? NULL : "STEP must be above 0";
}

/* Point `i`, counted from the first so that errors do not add up; a sliver beyond the end is the end. */
static double point(const range *r, double before, size_t i)
{
    double x = r->from + (double)i * r->step;
    if (r->multiply) x = before > 0 ? before * r->step : 1;
    if (r->aligned) x = (floor(before / r->step) + 1) * r->step;
    return x > r->to && x - r->to < 1e-9 * r->to ? r->to : x;
}

/* -- which number ------------------------------------------------------------------------------ */

static bool is_number(const cli_option *o) { return o->kind == CLI_WHOLE || o->kind == CLI_REAL; }

/* By its letter, as the flag is called, or as the key is in a request ("global_batch"). */
static bool named(cli_option_id id, const char *key)
{
    const cli_option *o = &cli_options[id];
    char asked[48];
    if (strlen(key) == 1 && o->letter == key[0]) return true;
    cli_ask_key(id, asked);
    if (!strcmp(key, asked)) return true;
    if (strlen(key) != strlen(o->name)) return false;
    for (size_t i = 0; key[i]; i++)
        if (key[i] != o->name[i] && !(key[i] == '_' && o->name[i] == '-')) return false;
    return true;
}

/* Numbers alone can be swept. */
static int find_option(const cli_command *command, const char *text, cli_sweep *s)
{
    const char *names[OPT_COUNT];
    char typed[sizeof s->key];
    size_t count = 0;
    for (int i = 0; i < OPT_COUNT; i++) {
        const cli_option *o = &cli_options[i];
        if (!(o->commands & command->bit) || !is_number(o)) continue;
        if (cli_option_shown(o) || o->group == CLI_ALIAS) names[count++] = o->name;
        if (!named((cli_option_id)i, s->key)) continue;
        s->option = (cli_option_id)i;
        if (o->kind == CLI_WHOLE && !s->whole)
            return cli_usage(command, "--%s takes whole numbers; --sweep %.100s has others", o->name, text);
        return 0;
    }
    snprintf(typed, sizeof typed, "%s", s->key);
    for (char *at = typed; *at; at++)
        if (*at == '_') *at = '-';
    const char *nearest = ft__nearest(typed, names, count);
    if (nearest)
        return cli_usage(command, "--sweep: \"%s\" has no number called %s; did you mean %s?", command->name, typed,
                         nearest);
    return cli_usage(command, "--sweep: \"%s\" has no number called %s, as %s are", command->name, typed,
                     command->bit == CLI_KERNEL ? "n or rows" : "seq or batch");
}

/* -- the points -------------------------------------------------------------------------------- */

static int read_points(const cli_command *command, const char *text, size_t most, cli_sweep *out)
{
    char copy[160];
    const char *equals = strchr(text, '=');
    size_t length = equals ? (size_t)(equals - text) : 0;
    range r = {0};
    if (!equals || length == 0 || length >= sizeof out->key || strlen(equals + 1) >= sizeof copy)
        return cli_usage(command, "--sweep takes KEY=FROM:TO[:STEP], as in n=128:8192:128, not \"%.100s\"", text);
    for (size_t i = 0; i < length; i++) out->key[i] = text[i] == '-' ? '_' : text[i];
    strcpy(copy, equals + 1);
    const char *wrong = read_range(copy, &r);
    if (wrong) return cli_usage(command, "--sweep takes KEY=FROM:TO[:STEP], not \"%.100s\": %s", text, wrong);
    size_t room = 0;
    out->whole = true;
    double x = r.from;
    while (x <= r.to) {
        if (out->count == most)
            return cli_usage(command, "--sweep %.100s has more than %zu points; take a larger STEP", text, most);
        if (out->count == room) {
            room = room ? 2 * room : 64;
            double *grown = realloc(out->x, room * sizeof *grown);
            if (!grown) return cli_complain(FT_E_MEMORY, "out of memory");
            out->x = grown;
        }
        out->whole = out->whole && is_whole(x);
        out->x[out->count++] = x;
        if (r.step == 0) break;
        x = point(&r, x, out->count);
    }
    return 0;
}

int cli_sweep_parse(const cli_args *args, size_t most, cli_sweep *out)
{
    const char *text = cli_value(args, OPT_SWEEP);
    int given = 0;
    memset(out, 0, sizeof *out);
    for (int i = 0; i < args->given_count; i++) given += args->given[i].option == OPT_SWEEP;
    if (given > 1) return cli_usage(args->command, "--sweep was given %d times; it takes one number", given);
    int status = read_points(args->command, text, most, out);
    return status ? status : find_option(args->command, text, out);
}

void cli_sweep_free(cli_sweep *sweep)
{
    free(sweep->x);
    sweep->x = NULL;
}

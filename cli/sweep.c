/* sweep.c: KEY=FROM:TO[:STEP] -> the points to forecast.
 *
 * STEP adds, xSTEP multiplies. Without one, the range is cut into at most 64 pieces at multiples of a power of two:
 * from 1 to 8192 that is 1, 128, 256, ... and not 1, 129, 257, ..., whose odd sizes would all go down the slow path of
 * unaligned operands and say nothing about the sizes people use. Ends that are no whole numbers are joined by 32 equal
 * steps.
 */
#include "sweep.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "terminal.h"

enum { PIECES = 64, PARTS = 32 };

typedef struct range {
    double from, to, step;
    bool multiply, aligned;
} range;

static bool is_whole(double x) { return x == floor(x); }

static bool read_range(char *text, range *r)
{
    const double largest = (double)((int64_t)1 << 40);
    char *to = strchr(text, ':');
    if (!to) return false;
    *to++ = '\0';
    char *step = strchr(to, ':');
    if (step) *step++ = '\0';
    if (!ft__number_parse(text, &r->from) || !ft__number_parse(to, &r->to)) return false;
    if (r->from < 0 || r->to < r->from || r->to > largest) return false;
    if (!step && is_whole(r->from) && is_whole(r->to)) {
        r->aligned = true;
        for (r->step = 1; (r->to - r->from) / r->step >= PIECES; r->step *= 2) {}
        return true;
    }
    if (!step) {
        r->step = (r->to - r->from) / PARTS; /* 0 for a single point */
        return true;
    }
    r->multiply = *step == 'x';
    if (!ft__number_parse(step + r->multiply, &r->step) || r->step > largest) return false;
    return r->multiply ? r->step > 1 : r->step > 0;
}

/* Point `i`, counted from the first so that errors do not add up; a sliver beyond the end is the end. */
static double point(const range *r, double before, size_t i)
{
    double x = r->from + (double)i * r->step;
    if (r->multiply) x = before > 0 ? before * r->step : 1;
    if (r->aligned) x = (floor(before / r->step) + 1) * r->step;
    return x > r->to && x - r->to < 1e-9 * r->to ? r->to : x;
}

int cli_sweep_parse(const cli_command *command, const char *text, size_t most, cli_sweep *out)
{
    char copy[160];
    memset(out, 0, sizeof *out);
    const char *equals = strchr(text, '=');
    size_t length = equals ? (size_t)(equals - text) : 0;
    range r = {0};
    if (!equals || length == 0 || length >= sizeof out->key || strlen(equals + 1) >= sizeof copy)
        return cli_usage(command, "--sweep takes KEY=FROM:TO[:STEP], as in n=128:8192:128, not \"%.100s\"", text);
    for (size_t i = 0; i < length; i++) out->key[i] = text[i] == '-' ? '_' : text[i];
    strcpy(copy, equals + 1);
    if (!read_range(copy, &r))
        return cli_usage(command,
                         "--sweep takes KEY=FROM:TO[:STEP] with FROM at most TO and a STEP that gets there, not "
                         "\"%.100s\"",
                         text);
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

void cli_sweep_free(cli_sweep *sweep)
{
    free(sweep->x);
    sweep->x = NULL;
}

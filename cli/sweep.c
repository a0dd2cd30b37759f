/* sweep.c: KEY=FROM:TO[:STEP] -> the sizes to forecast.
 *
 * STEP adds, xSTEP multiplies. Without one, the range is cut into at most 64 pieces at multiples of a power of two:
 * from 1 to 8192 that is 1, 128, 256, ... and not 1, 129, 257, ..., whose odd sizes would all go down the slow path of
 * unaligned operands and say nothing about the sizes people use.
 */
#include "sweep.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "terminal.h"

enum { MOST_POINTS = 100000, PIECES = 64 };

typedef struct range {
    int64_t from, to, step;
    bool multiply, aligned;
} range;

static bool read_range(char *text, range *r)
{
    char *to = strchr(text, ':');
    if (!to) return false;
    *to++ = '\0';
    char *step = strchr(to, ':');
    if (step) *step++ = '\0';
    if (!ft__whole_parse(text, &r->from) || !ft__whole_parse(to, &r->to)) return false;
    if (r->from < 0 || r->to < r->from || r->to > (int64_t)1 << 40) return false;
    if (!step) {
        r->aligned = true;
        for (r->step = 1; (r->to - r->from) / r->step >= PIECES; r->step *= 2) {}
        return true;
    }
    r->multiply = *step == 'x';
    return ft__whole_parse(step + r->multiply, &r->step) && r->step >= (r->multiply ? 2 : 1) &&
           r->step <= (int64_t)1 << 40;
}

static int64_t after(const range *r, int64_t x)
{
    if (r->multiply) return x > 0 ? x * r->step : 1; /* x, step <= 2^40: the caller stops long before 2^63 */
    if (r->aligned) return (x / r->step + 1) * r->step;
    return x + r->step;
}

/* Multiplying is safe only while the product stays in range. */
static bool more(const range *r, int64_t x) { return !(r->multiply && x > r->to / r->step) && after(r, x) <= r->to; }

int cli_sweep_parse(const cli_command *command, const char *text, cli_sweep *out)
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
                         "--sweep takes KEY=FROM:TO[:STEP] with whole numbers, FROM at most TO, not \"%.100s\"", text);
    size_t count = 1;
    for (int64_t x = r.from; more(&r, x) && count <= MOST_POINTS; x = after(&r, x)) count++;
    if (count > MOST_POINTS)
        return cli_usage(command, "--sweep %.100s has more than %d points; take a larger STEP", text, MOST_POINTS);
    out->x = calloc(count, sizeof *out->x);
    if (!out->x) return cli_complain(FT_E_MEMORY, "out of memory");
    int64_t x = r.from;
    for (out->count = 0; out->count < count; x = after(&r, x)) out->x[out->count++] = x;
    return 0;
}

void cli_sweep_free(cli_sweep *sweep)
{
    free(sweep->x);
    sweep->x = NULL;
}

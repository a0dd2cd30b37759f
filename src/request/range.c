/* range.c: KEY=FROM:TO[:STEP] -> points.
 *
 * STEP adds, xSTEP multiplies. Without one, the range is cut into at most 64 pieces at multiples of a power of two:
 * from 1 to 8192 that is 1, 128, 256, ... and not 1, 129, 257, ..., whose odd sizes would all go down the slow path of
 * unaligned operands and say nothing about the sizes people use. Ends that are no whole numbers are joined by 32 equal
 * steps.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "request/sweep.h"

enum { PIECES = 64, PARTS = 32 };

typedef struct ends {
    double from, to, step;
    bool multiply, aligned;
} ends;

static bool is_whole(double x) { return x == floor(x); }

/* NULL, or what is wrong with it. */
static const char *read_ends(char *text, ends *r)
{
    char *to = strchr(text, ':');
    if (!to) return "the range has one end, FROM:TO has two";
    *to++ = '\0';
    char *step = strchr(to, ':');
    if (step) *step++ = '\0';
    if (!ft__number_parse(text, &r->from)) return "FROM is not a number";
    if (!ft__number_parse(to, &r->to)) return "TO is not a number";
    if (r->from < 0) return "FROM is below 0";
    if (r->to < r->from) return "TO is below FROM; sweeps go up";
    if (r->to > FT_RANGE_LARGEST) return "TO is beyond 2^53";
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
    if (!ft__number_parse(step + r->multiply, &r->step)) return "STEP is neither a number nor a factor such as x2";
    if (r->multiply && r->step <= 1) return "a factor must be above 1";
    return r->step > 0 ? NULL : "STEP must be above 0";
}

/* Point `i`, counted from the first so that errors do not add up; a sliver beyond the end is the end. */
static double point(const ends *r, double before, size_t i)
{
    double x = r->from + (double)i * r->step;
    if (r->multiply) x = before > 0 ? before * r->step : 1;
    if (r->aligned) x = (floor(before / r->step) + 1) * r->step;
    return x > r->to && x - r->to < 1e-9 * r->to ? r->to : x;
}

static ft_status add_points(const ends *r, const char *text, size_t most, ft_range *out, ft_error *err)
{
    size_t room = 0;
    out->whole = true;
    double x = r->from;
    while (x <= r->to) {
        if (out->count == most)
            return ft__fail_at(err, FT_E_RANGE, "sweep", 0, 0, "%.100s has more than %zu points; take a larger STEP",
                               text, most);
        if (out->count == room) {
            room = room ? 2 * room : 64;
            double *grown = realloc(out->x, room * sizeof *grown);
            if (!grown) return ft__no_memory(err);
            out->x = grown;
        }
        out->whole = out->whole && is_whole(x);
        out->x[out->count++] = x;
        if (r->step == 0) break;
        x = point(r, x, out->count);
    }
    return FT_OK;
}

ft_status ft__range_read(const char *text, size_t most, ft_range *out, ft_error *err)
{
    char copy[FT_RANGE_TEXT];
    const char *equals = strchr(text, '=');
    size_t length = equals ? (size_t)(equals - text) : 0;
    ends r = {0};
    memset(out, 0, sizeof *out);
    if (!equals || length == 0 || length >= sizeof out->key || strlen(equals + 1) >= sizeof copy)
        return ft__fail_at(err, FT_E_FORMAT, "sweep", 0, 0,
                           "takes KEY=FROM:TO[:STEP], as in n=128:8192:128, not \"%.100s\"", text);
    for (size_t i = 0; i < length; i++) out->key[i] = text[i] == '-' ? '_' : text[i];
    strcpy(copy, equals + 1);
    const char *wrong = read_ends(copy, &r);
    if (wrong)
        return ft__fail_at(err, FT_E_FORMAT, "sweep", 0, 0, "takes KEY=FROM:TO[:STEP], not \"%.100s\": %s", text,
                           wrong);
    return add_points(&r, text, most, out, err);
}

void ft__range_free(ft_range *range)
{
    free(range->x);
    range->x = NULL;
}

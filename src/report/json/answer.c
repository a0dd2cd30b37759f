/* answer.c: a forecast, or the reason why there is none, as one JSON object.
 *
 * Figures carry six significant digits, which is three more than any forecast deserves and enough to compare two of
 * them. What does not apply (the tile of a softmax) is left out rather than written as zero.
 */
#include "report/json/answer.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIGITS = 6, BYTE_DIGITS = 15 };

void ft__answer_figure(ft_text *out, const char *key, double value)
{
    if (!isfinite(value) || value < 0) return; /* a figure that makes no sense is not a figure */
    ft__json_member_number(out, key, value, DIGITS);
}

void ft__answer_bytes(ft_text *out, const char *key, double bytes)
{
    ft__json_member_number(out, key, bytes > 0 ? floor(bytes + 0.5) : 0, BYTE_DIGITS);
}

void ft__answer_word(ft_text *out, const char *key, const char *word)
{
    if (word && *word) ft__json_member_text(out, key, word);
}

void ft__answer_begin(ft_text *out, const json_t *id)
{
    ft__json_open(out);
    if (id) ft__json_member_tree(out, "id", id);
    ft__json_member_flag(out, "ok", true);
}

/* Where the milliseconds go: the fixed part is overhead, the rest belongs to the roof that holds the kernel. Shares of
 * kernels add up, weighted by their time, to the regime of a model. */
static void add_regime(ft_text *out, const ft_forecast *f)
{
    double share[4] = {0};
    double overhead = f->launch_ms > 0 ? fmin(f->launch_ms / f->ms, 1) : 0;
    share[FT_BOUND_OVERHEAD] = overhead;
    share[(unsigned)f->bound < 4 ? f->bound : FT_BOUND_OVERHEAD] += 1 - overhead;
    ft__json_member_open(out, "regime");
    ft__json_member_number(out, "compute", share[FT_BOUND_COMPUTE], DIGITS);
    ft__answer_figure(out, "memory", share[FT_BOUND_MEMORY]);
    ft__answer_figure(out, "overhead", share[FT_BOUND_OVERHEAD]);
    ft__answer_figure(out, "communication", share[FT_BOUND_COMMUNICATION]);
    ft__json_close(out);
}

/* An array of a text's lines. */
void ft__answer_lines(ft_text *out, const char *key, const char *lines)
{
    if (!*lines) return;
    ft_text one = {0};
    ft__json_member_list(out, key);
    while (*lines) {
        size_t length = strcspn(lines, "\n");
        ft__text_empty(&one);
        ft__text_add_n(&one, lines, length);
        ft__json_add_text(out, one.failed ? "" : one.at);
        lines += length + (lines[length] == '\n');
    }
    ft__json_close_list(out);
    ft__text_drop(&one, out);
}

static void add_energy(ft_text *out, const ft_energy *e)
{
    if (!e || !(e->joules > 0)) return;
    ft__json_member_open(out, "energy");
    ft__json_member_number(out, "joules", e->joules, DIGITS);
    ft__answer_figure(out, "low_joules", e->low_joules);
    ft__answer_figure(out, "high_joules", e->high_joules);
    ft__answer_figure(out, "watts", e->watts);
    ft__json_close(out);
}

void ft__answer_kernel(ft_text *out, const json_t *id, const ft_forecast *f, const ft_energy *energy,
                       const char *warnings)
{
    ft__answer_begin(out, id);
    ft__answer_figure(out, "ms", f->ms);
    ft__answer_figure(out, "low_ms", f->low_ms);
    ft__answer_figure(out, "high_ms", f->high_ms);
    ft__answer_word(out, "bound", ft_bound_name(f->bound));
    ft__answer_word(out, "source", ft_source_name(f->source));
    ft__answer_word(out, "kin", f->kin);
    ft__answer_word(out, "family", f->family);
    if (f->tile_m > 0 && f->tile_n > 0) {
        char tile[48];
        snprintf(tile, sizeof tile, "%dx%d", f->tile_m, f->tile_n);
        ft__answer_word(out, "tile", tile);
        ft__answer_figure(out, "tiles", f->tiles);
        ft__answer_figure(out, "waves", f->waves);
        if (f->split_k > 0) ft__answer_figure(out, "split_k", f->split_k);
    }
    ft__answer_figure(out, "flops", f->flops);
    ft__answer_figure(out, "bytes", f->bytes);
    ft__answer_figure(out, "intensity", f->intensity);
    ft__answer_figure(out, "roofline_ms", f->roofline_ms);
    ft__answer_figure(out, "launch_ms", f->launch_ms);
    if (f->sustained_ms > f->ms) ft__answer_figure(out, "sustained_ms", f->sustained_ms);
    ft__answer_figure(out, "achieved_tflops", f->flops / f->ms / 1e9);
    ft__answer_figure(out, "achieved_gbps", f->bytes / f->ms / 1e6);
    add_energy(out, energy);
    add_regime(out, f);
    ft__answer_word(out, "note", f->note);
    ft__answer_lines(out, "warnings", warnings);
    ft__json_close(out);
}

/* "line 17, column 5", "line 17, key m", "key gpu.sms", "my.json:3:9": as much as is known. On the stack: that memory
 * ran out has a place, too. */
static void add_place(ft_text *out, const ft_error *err, int64_t line)
{
    char place[sizeof err->where + 128] = "";
    size_t n = 0;
    if (line > 0) {
        n += (size_t)snprintf(place + n, sizeof place - n, "line %" PRId64, line);
        if (!err->where[0] && err->column > 0)
            n += (size_t)snprintf(place + n, sizeof place - n, ", column %d", err->column);
        if (err->where[0]) n += (size_t)snprintf(place + n, sizeof place - n, ", %s", err->where);
    } else if (err->where[0]) {
        n += (size_t)snprintf(place + n, sizeof place - n, "%s", err->where);
    }
    if (err->line > 0 && (err->where[0] || line == 0)) {
        n += (size_t)snprintf(place + n, sizeof place - n, "%sline %d", n ? ", " : "", err->line);
        if (err->column > 0) snprintf(place + n, sizeof place - n, ", column %d", err->column);
    }
    if (place[0]) ft__answer_word(out, "where", place);
}

void ft__answer_error(ft_text *out, const json_t *id, const ft_error *err, int64_t line)
{
    bool scalar = id && !json_is_object(id) && !json_is_array(id); /* those are refused, and refused without an id */
    ft__json_open(out);
    if (scalar || line > 0) ft__json_member_tree(out, "id", scalar ? id : NULL);
    ft__json_member_flag(out, "ok", false);
    ft__json_member_open(out, "error");
    ft__json_member_text(out, "code", ft_status_name(err->code));
    ft__answer_word(out, "message", err->message);
    add_place(out, err, line);
    ft__json_close(out);
    ft__json_close(out);
}

/* compare_rows.c: figures of answers side by side, a row each, as screens and pages show them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_write.h"
#include "report/text/compare_screen.h"
#include "report/text/lines.h"

enum { CELL = FT_COMPARED_CELL };

typedef enum unit { MS, PLAIN, WHOLE, SHARE, GIB } unit;
typedef ft_compared_row row;

static bool put(char out[CELL], const ft_text *text)
{
    ft_text cut = {0};
    ft__add_cut(&cut, text, CELL - 4);
    snprintf(out, CELL, "%s", cut.at ? cut.at : "");
    bool done = !cut.failed;
    ft__text_free(&cut);
    return done;
}

static bool put_figure(char out[CELL], unit u, double value)
{
    ft_text t = {0};
    if (u == GIB)
        ft__add_gib(&t, value);
    else if (u == SHARE)
        ft__add_percent(&t, value);
    else if (u == WHOLE && value < 1e15 && fabs(value - round(value)) < 1e-9 * fmax(1, value))
        ft__text_addf(&t, "%.0f", value); /* launches are counted, not measured */
    else
        ft__add_figure(&t, value, 4);
    bool done = put(out, &t);
    ft__text_free(&t);
    return done;
}

/* "-24.6 (-50 %)": signs are said; what no reader would call a change is none. */
static bool put_change(char out[CELL], unit u, double from, double to)
{
    char size[CELL];
    double by = to - from;
    strcpy(out, "=");
    if (!(fabs(by) > 5e-4 * fmax(fabs(from), fabs(to)))) return true;
    bool done = put_figure(size, u, fabs(by));
    if (u == SHARE || !(to < 1000 * from)) /* out of next to nothing: how many times says nothing */
        snprintf(out, CELL, "%c%.30s", by < 0 ? '-' : '+', size);
    else if (fabs(by / from) < 0.005)
        snprintf(out, CELL, "%c%.20s (0 %%)", by < 0 ? '-' : '+', size); /* not -0 */
    else if (to / from >= 10)
        snprintf(out, CELL, "%c%.20s (%.3g x)", by < 0 ? '-' : '+', size, to / from);
    else
        snprintf(out, CELL, "%c%.20s (%+.0f %%)", by < 0 ? '-' : '+', size, 100 * by / from);
    return done;
}

static void add_figures(row *rows, size_t *at, const ft_compared *c, size_t count, const char *label, unit u,
                        const char *path)
{
    double value[FT_MOST_COMPARED], most = 0;
    if (*at == FT_COMPARED_ROWS) return;
    for (size_t i = 0; i < count; i++) {
        value[i] = ft__compared_figure(c[i].answer, path);
        most = fmax(most, value[i]);
    }
    if (!(most > 0)) return;
    row *r = &rows[(*at)++];
    *r = (row){.label = label};
    for (size_t i = 0; i < count; i++)
        if (!put_figure(r->cell[i], u, value[i])) r->failed = true;
    if (count == 2 && !put_change(r->change, u, value[0], value[1])) r->failed = true;
}

/* What an answer calls overhead, when most of it is waiting for other stages of a pipeline. */
static bool waits_for_stages(const json_t *answer, const json_t *bound)
{
    const json_t *regime = json_object_get(answer, "regime");
    if (json_object_get(regime, "bound") != bound || strcmp(json_string_value(bound), "overhead")) return false;
    double all = ft__compared_figure(regime, "overhead") * ft__compared_figure(answer, "step_ms");
    return ft__compared_figure(answer, "bubble_ms") > 0.5 * all;
}

static void add_words(row *rows, size_t *at, const ft_compared *c, size_t count, const char *label, const char *outer,
                      const char *key)
{
    bool any = false;
    if (*at == FT_COMPARED_ROWS) return;
    row *r = &rows[*at];
    *r = (row){.label = label};
    for (size_t i = 0; i < count; i++) {
        const json_t *home = outer ? json_object_get(c[i].answer, outer) : c[i].answer, *v = json_object_get(home, key);
        ft_text t = {0};
        if (json_is_boolean(v)) ft__text_add(&t, json_is_true(v) ? "yes" : "no");
        if (json_is_string(v))
            ft__text_add_plain(&t, waits_for_stages(c[i].answer, v) ? "bubble" : json_string_value(v));
        any = any || t.length > 0;
        if (!put(r->cell[i], &t)) r->failed = true;
        ft__text_free(&t);
    }
    if (count == 2) strcpy(r->change, strcmp(r->cell[0], r->cell[1]) ? "differs" : "=");
    if (any) ++*at;
}

static void add_interval(row *rows, size_t *at, const ft_compared *c, size_t count, const ft_style *style)
{
    row *r = &rows[(*at)++];
    *r = (row){.label = style->unicode ? "low \xe2\x80\x93 high" : "low - high"};
    for (size_t i = 0; i < count; i++) {
        ft_text t = {0};
        ft__add_figure(&t, ft__compared_figure(c[i].answer, "low_ms"), 4);
        ft__text_addf(&t, "%s", ft__dash(style));
        ft__add_figure(&t, ft__compared_figure(c[i].answer, "high_ms"), 4);
        if (!put(r->cell[i], &t)) r->failed = true;
        ft__text_free(&t);
    }
    if (count == 2) {
        bool same = !strcmp(r->cell[0], r->cell[1]),
             over = ft__compared_figure(c[0].answer, "low_ms") <= ft__compared_figure(c[1].answer, "high_ms") &&
                    ft__compared_figure(c[1].answer, "low_ms") <= ft__compared_figure(c[0].answer, "high_ms");
        strcpy(r->change, same ? "=" : over ? "overlap" : "apart");
    }
}
static void add_memory_rows(row *rows, size_t *at, const ft_compared *c, size_t count)
{
    static const struct {
        const char *label, *path;
    } parts[] = {{"peak GiB", "memory.peak_bytes"},
                 {"  weights", "memory.weights_bytes"},
                 {"  gradients", "memory.gradients_bytes"},
                 {"  optimizer", "memory.optimizer_bytes"},
                 {"  activations", "memory.activations_bytes"},
                 {"  temporary", "memory.temporary_bytes"},
                 {"  cache", "memory.kv_cache_bytes"},
                 {"  exchanges", "memory.communication_bytes"},
                 {"reserved GiB", "memory.reserved_bytes"},
                 {"of GiB", "memory.capacity_bytes"}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        add_figures(rows, at, c, count, parts[i].label, GIB, parts[i].path);
    add_words(rows, at, c, count, "fits", "memory", "fits");
}

static void add_step_rows(row *rows, size_t *at, const ft_compared *c, size_t count, const ft_style *style)
{
    static const struct {
        const char *label, *path;
        unit u;
    } parts[] = {{"forward", "forward_ms", MS},
                 {"recompute", "recompute_ms", MS},
                 {"backward", "backward_ms", MS},
                 {"optimizer", "optimizer_ms", MS},
                 {"rollout", "rollout_ms", MS},
                 {"reference", "reference_ms", MS},
                 {"critic", "critic_ms", MS},
                 {"exchanges", "comm_exposed_ms", MS},
                 {"bubble", "bubble_ms", MS},
                 {"idle", "idle_ms", MS},
                 {"between", "between_ms", MS},
                 {"host ms", "host_ms", MS},
                 {"launches", "launches", WHOLE},
                 {"GPUs", "ranks", WHOLE},
                 {"tokens/s GPU", "tokens_per_s_per_gpu", PLAIN},
                 {"samples/s GPU", "samples_per_s_per_gpu", PLAIN},
                 {"MFU", "mfu", SHARE}};
    add_figures(rows, at, c, count, "step ms", MS, "step_ms");
    add_interval(rows, at, c, count, style);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        add_figures(rows, at, c, count, parts[i].label, parts[i].u, parts[i].path);
    add_words(rows, at, c, count, "bound by", "regime", "bound");
    add_memory_rows(rows, at, c, count);
}

static void add_kernel_rows(row *rows, size_t *at, const ft_compared *c, size_t count, const ft_style *style)
{
    add_figures(rows, at, c, count, "ms", MS, "ms");
    add_interval(rows, at, c, count, style);
    add_figures(rows, at, c, count, "roofline ms", MS, "roofline_ms");
    add_figures(rows, at, c, count, "TFLOP/s", PLAIN, "achieved_tflops");
    add_figures(rows, at, c, count, "GB/s", PLAIN, "achieved_gbps");
    add_figures(rows, at, c, count, "FLOP", PLAIN, "flops");
    add_figures(rows, at, c, count, "bytes", PLAIN, "bytes");
    add_words(rows, at, c, count, "tile", NULL, "tile");
    add_figures(rows, at, c, count, "waves", PLAIN, "waves");
    add_figures(rows, at, c, count, "split-K", PLAIN, "split_k");
    add_words(rows, at, c, count, "bound by", NULL, "bound");
    add_words(rows, at, c, count, "source", NULL, "source");
}
/* The order of a step's, a kernel's, a grid's figures. */
size_t ft__compared_rows(const ft_compared *c, size_t count, const ft_style *style, ft_compared_row *rows)
{
    size_t at = 0;
    if (c[0].kind == FT_COMPARE_STEP) add_step_rows(rows, &at, c, count, style);
    if (c[0].kind == FT_COMPARE_MEMORY) add_memory_rows(rows, &at, c, count);
    if (c[0].kind == FT_COMPARE_KERNEL) add_kernel_rows(rows, &at, c, count, style);
    if (c[0].kind == FT_COMPARE_GRID) {
        add_figures(rows, &at, c, count, "cache tokens", WHOLE, "capacity.tokens");
        add_figures(rows, &at, c, count, "offline tok/s", PLAIN, "offline.tokens_per_s_per_gpu");
    }
    return at;
}

bool ft__compared_change(char out[FT_COMPARED_CELL], double from, double to) { return put_change(out, MS, from, to); }

/* -- what was asked ---------------------------------------------------------------------------- */

static void add_value(ft_text *out, const json_t *v, const ft_style *style)
{
    ft_text text = {0};
    if (!v)
        ft__text_add(out, ft__dash(style));
    else if (json_is_string(v))
        ft__text_add_plain(out, json_string_value(v));
    else {
        ft__json_add_tree(&text, v);
        ft__text_add_plain(out, text.at ? text.at : "");
        ft__text_drop(&text, out);
    }
}
/* SIZE_MAX: the answers do not say. */
size_t ft__compared_asked_rows(const ft_compared *c, size_t count, const ft_style *style, ft_asked *asked,
                               ft_compared_row *rows)
{
    for (size_t i = 0; i < count; i++)
        if (!c[i].request) return SIZE_MAX;
    size_t found = ft__compare_asked(c, count, asked, FT_COMPARED_ROWS);
    for (size_t at = 0; at < found; at++) {
        rows[at] = (row){.label = asked[at].key};
        for (size_t i = 0; i < count; i++) {
            ft_text t = {0};
            add_value(&t, asked[at].value[i], style);
            if (!put(rows[at].cell[i], &t)) rows[at].failed = true;
            ft__text_free(&t);
        }
    }
    return found;
}

static const json_t *cell_at(const json_t *answer, const char *list, const json_t *like)
{
    size_t i;
    json_t *cell;
    json_array_foreach (json_object_get(answer, list), i, cell) {
        if (json_equal(json_object_get(cell, "batch"), json_object_get(like, "batch")) &&
            json_equal(json_object_get(cell, "seq"), json_object_get(like, "seq")))
            return cell;
    }
    return NULL;
}

size_t ft__compared_cells(const ft_compared *c, size_t count, ft_compared_cell *out, size_t most)
{
    static const char *const lists[] = {"prefill", "decode", "forward"}, *const keys[] = {"ttft_ms", "tpot_ms",
                                                                                          "step_ms"};
    size_t at = 0;
    for (int l = 0; l < 3; l++) {
        size_t n;
        json_t *first;
        json_array_foreach (json_object_get(c[0].answer, lists[l]), n, first) {
            ft_compared_cell cell = {.task = lists[l],
                                     .batch = ft__compared_figure(first, "batch"),
                                     .seq = ft__compared_figure(first, "seq")};
            bool everywhere = at < most;
            for (size_t i = 0; i < count; i++) {
                const json_t *found = cell_at(c[i].answer, lists[l], first);
                cell.ms[i] = ft__compared_figure(found, keys[l]);
                if (!(cell.ms[i] > 0)) cell.ms[i] = ft__compared_figure(found, "ms");
                everywhere = everywhere && cell.ms[i] > 0;
            }
            if (everywhere) out[at++] = cell;
        }
    }
    return at;
}

/* swept.c: the answers of a sweep as a table with a curve, as comma-separated values, or as rows of a page.
 *
 * What is worth a column, by task; the first is the curve's. A column that no answer fills is left out, and on a
 * narrow terminal those on the right.
 */
#include "report/text/swept.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "report/text/columns.h"
#include "report/text/lines.h"
#include "report/text/screen.h"
#include "request/keys.h"

enum { MOST_COLUMNS = FT_SWEPT_COLUMNS, PLOT_WIDTH = 100, PLOT_HEIGHT = 12 };

typedef enum unit { FIGURE, SHARE, GIB, COUNT, WORD } unit;

typedef struct column {
    const char *head, *path; /* "decode.first.tpot_ms" */
    unit u;
    const char *curve; /* what its axis says in few letters, where it comes first */
} column;

static const column of_train[] = {{"step ms", "step_ms", FIGURE, "ms"},
                                  {"low", "low_ms", FIGURE, ""},
                                  {"high", "high_ms", FIGURE, ""},
                                  {"tokens/s GPU", "tokens_per_s_per_gpu", FIGURE, ""},
                                  {"MFU", "mfu", SHARE, ""},
                                  {"peak GiB", "memory.peak_bytes", GIB, ""},
                                  {"fits", "memory.fits", WORD, ""},
                                  {"bound by", "regime.bound", WORD, ""},
                                  {"idle ms", "idle_ms", FIGURE, ""},
                                  {"exposed ms", "comm_exposed_ms", FIGURE, ""},
                                  {"bubble ms", "bubble_ms", FIGURE, ""},
                                  {"GPUs", "ranks", FIGURE, ""},
                                  {"days", "training.days", FIGURE, ""},
                                  {NULL, NULL, FIGURE, ""}};
static const column of_infer[] = {{"TPOT ms", "decode.first.tpot_ms", FIGURE, "ms"},
                                  {"low", "decode.first.low_ms", FIGURE, ""},
                                  {"high", "decode.first.high_ms", FIGURE, ""},
                                  {"tokens/s GPU", "decode.first.tokens_per_s_per_gpu", FIGURE, ""},
                                  {"TTFT ms", "prefill.first.ttft_ms", FIGURE, ""},
                                  {"forward ms", "forward.first.step_ms", FIGURE, "ms"},
                                  {"fits", "decode.first.fits", WORD, ""},
                                  {"cache tokens", "capacity.tokens", FIGURE, ""},
                                  {"offline tok/s", "offline.tokens_per_s_per_gpu", FIGURE, ""},
                                  {"at batch", "offline.batch", FIGURE, ""},
                                  {"image s", "generation.seconds", FIGURE, "s"},
                                  {NULL, NULL, FIGURE, ""}};
static const column of_scale[] = {{"tokens/s GPU", "strong.last.tokens_per_s_per_gpu", FIGURE, "t/s"},
                                  {"step ms", "strong.last.step_ms", FIGURE, ""},
                                  {"low", "strong.last.low_ms", FIGURE, ""},
                                  {"high", "strong.last.high_ms", FIGURE, ""},
                                  {"GPUs", "gpus", FIGURE, ""},
                                  {"efficiency", "strong.last.efficiency", SHARE, ""},
                                  {"MFU", "strong.last.mfu", SHARE, ""},
                                  {"exposed ms", "strong.last.comm_exposed_ms", FIGURE, ""},
                                  {"FSDP tokens", "data.fsdp_tokens_per_gpu", FIGURE, ""},
                                  {"TP ways", "tensor.limit_ways", FIGURE, ""},
                                  {"fits", "strong.last.fits", WORD, ""},
                                  {NULL, NULL, FIGURE, ""}};
static const column of_largest[] = {{"parameters", "parameters", COUNT, "B"},
                                    {"layers", "layers", FIGURE, ""},
                                    {"hidden", "hidden", FIGURE, ""},
                                    {"step ms", "step_ms", FIGURE, ""},
                                    {"low", "low_ms", FIGURE, ""},
                                    {"high", "high_ms", FIGURE, ""},
                                    {"tokens/s GPU", "tokens_per_s_per_gpu", FIGURE, ""},
                                    {"MFU", "mfu", SHARE, ""},
                                    {"days", "training.days", FIGURE, ""},
                                    {NULL, NULL, FIGURE, ""}};

static const column of_serve[] = {{"TPOT ms", "tpot_ms", FIGURE, "ms"},
                                  {"low", "tpot_low_ms", FIGURE, ""},
                                  {"high", "tpot_high_ms", FIGURE, ""},
                                  {"TTFT ms", "ttft_ms", FIGURE, ""},
                                  {"TTFT p99", "ttft_ms_p99", FIGURE, ""},
                                  {"requests/s", "requests_per_s", FIGURE, ""},
                                  {"tokens/s GPU", "tokens_per_s_per_gpu", FIGURE, ""},
                                  {"client", "tokens_per_s_per_user", FIGURE, ""},
                                  {"good", "slo_share", SHARE, ""},
                                  {"bound by", "bound", WORD, ""},
                                  {"stable", "stable", WORD, ""},
                                  {NULL, NULL, FIGURE, ""}};

static const column *columns_of(const char *task)
{
    return !strcmp(task, "infer")     ? of_infer
           : !strcmp(task, "serve")   ? of_serve
           : !strcmp(task, "scale")   ? of_scale
           : !strcmp(task, "largest") ? of_largest
                                      : of_train;
}

/* "first" and "last" go into a list. */
static const json_t *value_at(const json_t *answer, const char *path)
{
    while (answer && *path) {
        char key[48];
        size_t length = strcspn(path, ".");
        if (length >= sizeof key) return NULL;
        memcpy(key, path, length);
        key[length] = '\0';
        path += length + (path[length] == '.');
        size_t last = json_array_size(answer);
        if (json_is_array(answer))
            answer = json_array_get(answer, !strcmp(key, "last") && last ? last - 1 : 0);
        else
            answer = json_object_get(answer, key);
    }
    return answer;
}

/* As people read it: what fits, and hardly, is tight, as a step by itself says. */
static const json_t *read_at(const json_t *answer, const column *c)
{
    const json_t *v = value_at(answer, c->path);
    if (!json_is_true(v) || strcmp(c->path, "memory.fits") != 0) return v;
    const json_t *verdict = value_at(answer, "memory.verdict");
    return verdict && !strcmp(json_string_value(verdict), "tight") ? verdict : v;
}

/* GPUs that are the range stand before the row. */
static bool moves(const ft_swept *sweep, const column *c)
{
    return !strcmp(sweep->key, "gpus") && !strcmp(c->head, "GPUs");
}

static bool filled(const column *c, json_t *const *answers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const json_t *v = value_at(answers[i], c->path);
        if (json_number_value(v) > 0 || json_is_boolean(v) || json_is_string(v)) return true;
    }
    return false;
}

static void add_cell(ft_text *out, const column *c, const json_t *v)
{
    double number = json_number_value(v);
    if (json_is_boolean(v))
        ft__text_add(out, json_is_true(v) ? "yes" : "no");
    else if (json_is_string(v))
        ft__text_add_plain(out, json_string_value(v));
    else if (!json_is_number(v))
        ft__text_add(out, strcmp(c->path, "ranks") ? "" : "1"); /* an answer without ranks is one GPU's */
    else if (c->u == SHARE)
        ft__add_percent(out, number);
    else if (c->u == GIB)
        ft__add_gib(out, number);
    else if (c->u == COUNT)
        ft__add_parameters(out, number);
    else if (json_is_integer(v))
        ft__text_addf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
    else
        ft__add_figure(out, number, 4);
}

static int width_of(const column *c, json_t *const *answers, size_t count)
{
    int widest = (int)strlen(c->head);
    for (size_t i = 0; i < count; i++) {
        ft_text t = {0};
        add_cell(&t, c, read_at(answers[i], c));
        int width = ft__text_width(t.at ? t.at : "");
        if (width > widest) widest = width;
        ft__text_free(&t);
    }
    return widest;
}

/* The columns that have something to say and fit beside each other; always the first of them, and the days, which are
 * there because somebody asked. */
static size_t choose(const column *all, const ft_style *style, const ft_swept *sweep, json_t *const *answers,
                     const column **out)
{
    size_t count = 0;
    int room = style->width - 2 - (int)strlen(sweep->key);
    const column *days = NULL;
    for (const column *c = all; c->head; c++)
        if (!strcmp(c->path, "training.days") && filled(c, answers, sweep->count)) days = c;
    if (days) room -= 2 + width_of(days, answers, sweep->count);
    for (const column *c = all; c->head && count + 1 < MOST_COLUMNS; c++) {
        if (c == days || moves(sweep, c) || !filled(c, answers, sweep->count)) continue;
        room -= 2 + width_of(c, answers, sweep->count);
        if (room < 0 && count > 0) break;
        out[count++] = c;
    }
    if (days) out[count++] = days;
    return count;
}

/* Sweeping what a request has no use for (gpus_per_node of one GPU) is no mistake, but equal rows want a word. */
static bool nothing_changes(const column *all, const ft_swept *sweep, json_t *const *answers)
{
    for (const column *c = all; c->head; c++)
        for (size_t i = 1; i < sweep->count; i++) {
            const json_t *first = value_at(answers[0], c->path), *v = value_at(answers[i], c->path);
            if (!first != !v || (v && !json_equal(first, v))) return false;
        }
    return sweep->count > 1;
}

/* What a GPU makes against what a client gets, of loads that no other beats in both: a client that wants so much may
 * have the best point to its right, so the steps of the curve are what can be had. */
static bool draw_front(ft_text *out, const ft_style *style, const ft_swept *sweep, json_t *const *answers, int width)
{
    double *x = calloc(sweep->count, sizeof *x), *y = calloc(sweep->count, sizeof *y);
    bool made = x && y;
    size_t points = 0;
    for (size_t i = 0; made && i < sweep->count; i++) {
        double client = json_number_value(value_at(answers[i], "tokens_per_s_per_user"));
        double gpu = json_number_value(value_at(answers[i], "tokens_per_s_per_gpu"));
        bool beaten = !(client > 0 && gpu > 0);
        for (size_t k = 0; k < points && !beaten; k++) beaten = x[k] >= client && y[k] >= gpu;
        if (beaten) continue;
        size_t kept = 0, at = 0;
        for (size_t k = 0; k < points; k++)
            if (x[k] > client || y[k] > gpu) x[kept] = x[k], y[kept++] = y[k];
        while (at < kept && x[at] < client) at++;
        for (size_t k = kept; k > at; k--) x[k] = x[k - 1], y[k] = y[k - 1];
        x[at] = client, y[at] = gpu;
        points = kept + 1;
    }
    if (points > 1) {
        ft__text_addf(out, "\n  Tokens/s of a GPU over tokens/s of a client: %zu of %zu loads are beaten by none\n\n",
                      points, sweep->count);
        ft__plot(out, style, &(ft_plot){x, y, points, width, PLOT_HEIGHT, "a client", "t/s"});
    }
    free(x);
    free(y);
    return made && !out->failed;
}

bool ft__screen_swept(ft_text *out, const ft_style *style, const ft_swept *sweep, json_t *const *answers)
{
    const column *shown[MOST_COLUMNS];
    size_t columns = choose(columns_of(sweep->task), style, sweep, answers, shown);
    char align[MOST_COLUMNS + 2] = "r";
    for (size_t k = 0; k < columns; k++) strcat(align, shown[k]->u == WORD ? "l" : "r");
    ft_columns t;
    ft__columns_init(&t, align);
    ft__cell_add(&t, sweep->key);
    for (size_t k = 0; k < columns; k++) ft__cell_add(&t, shown[k]->head);
    bool plain = ft__points_plain(sweep->x, sweep->count);
    for (size_t i = 0; i < sweep->count; i++) {
        ft__add_point(ft__cell(&t), sweep->x[i], plain);
        for (size_t k = 0; k < columns; k++) add_cell(ft__cell(&t), shown[k], read_at(answers[i], shown[k]));
    }
    bool printed = ft__columns_print(&t, out, style, 2, true);
    ft__columns_free(&t);
    int width = style->width - 14;
    if (width > PLOT_WIDTH) width = PLOT_WIDTH;
    if (nothing_changes(columns_of(sweep->task), sweep, answers)) {
        ft__text_addf(out, "\n  %s changes nothing here.\n", sweep->key);
        return printed && !out->failed;
    }
    if (!printed || columns == 0 || sweep->count < 2 || width < 20) return printed;
    double *x = calloc(sweep->count, sizeof *x), *y = calloc(sweep->count, sizeof *y);
    size_t points = 0; /* where the answer was no, there is nothing to draw */
    for (size_t i = 0; x && y && i < sweep->count; i++) {
        const json_t *v = value_at(answers[i], shown[0]->path);
        if (!json_is_number(v)) continue;
        x[points] = sweep->x[i];
        y[points++] = json_number_value(v) / (shown[0]->u == COUNT ? 1e9 : 1);
    }
    ft__text_add(out, "\n");
    if (points > 1) ft__plot(out, style, &(ft_plot){x, y, points, width, PLOT_HEIGHT, sweep->key, shown[0]->curve});
    printed = x && y && !out->failed;
    free(x);
    free(y);
    return printed && (strcmp(sweep->task, "serve") || draw_front(out, style, sweep, answers, width));
}

bool ft__csv_swept(ft_text *out, const ft_swept *sweep, const char *gpu, bool header, json_t *const *answers)
{
    const column *all = columns_of(sweep->task);
    if (header) {
        ft__text_addf(out, "gpu,%s", sweep->key);
        for (const column *c = all; c->head; c++) {
            const char *dot = strrchr(c->path, '.');
            bool offline = !strncmp(c->path, "offline.", 8); /* has the names of decode */
            ft__text_addf(out, ",%s%s", offline ? "offline_" : "", dot ? dot + 1 : c->path);
        }
        ft__text_add(out, "\n");
    }
    for (size_t i = 0; i < sweep->count; i++) {
        ft__text_add_csv(out, gpu);
        ft__text_addf(out, ",%.15g", sweep->x[i]);
        for (const column *c = all; c->head; c++) {
            const json_t *v = value_at(answers[i], c->path);
            ft__text_add(out, ",");
            if (json_is_string(v)) ft__text_add(out, json_string_value(v));
            if (json_is_boolean(v)) ft__text_add(out, json_is_true(v) ? "true" : "false");
            if (json_is_integer(v)) ft__text_addf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
            if (json_is_real(v)) ft__text_add_number(out, json_real_value(v), 6);
        }
        ft__text_add(out, "\n");
    }
    return !out->failed;
}

double ft__swept_length(const ft_swept *sweep, const json_t *answer)
{
    const json_t *asked = ft__key_get(json_object_get(answer, "request"), FT_KEY_ID_SEQ);
    double tokens = json_number_value(json_object_get(answer, "tokens_per_s_per_gpu"));
    double samples = json_number_value(json_object_get(answer, "samples_per_s_per_gpu"));
    if (strcmp(sweep->task, "train") || asked || !(samples > 0)) return 0;
    return tokens / samples > 1.5 ? tokens / samples : 0; /* an image is one sample */
}

/* -- as a page --------------------------------------------------------------------------------- */

static double figure_at(const json_t *answer, const column *c)
{
    const json_t *v = value_at(answer, c->path);
    return json_is_number(v) ? json_number_value(v) / (c->u == COUNT ? 1e9 : 1) : NAN;
}

/* What a curve is called in words. */
static const char *heading_of(const column *c)
{
    static const char *const names[][2] = {
        {"step_ms", "Step"},
        {"decode.first.tpot_ms", "Time per output token"},
        {"tpot_ms", "Time per output token"},
        {"ttft_ms", "Time to the first token"},
        {"prefill.first.ttft_ms", "Time to the first token"},
        {"forward.first.step_ms", "Forward pass"},
        {"strong.last.tokens_per_s_per_gpu", "Throughput"},
        {"parameters", "Parameters"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(c->path, names[i][0])) return names[i][1];
    return c->head;
}

static const char *words_of(const char *bound)
{
    for (int i = 0; bound && i < 4; i++)
        if (!strcmp(bound, ft_bound_name((ft_bound)i))) return ft__bound_words((ft_bound)i);
    return bound ? bound : "";
}

bool ft__swept_rows(const ft_swept *sweep, size_t rows, json_t *const *answers, ft_swept_rows *d)
{
    const column *shown[MOST_COLUMNS];
    *d = (ft_swept_rows){.rows = rows};
    for (const column *c = columns_of(sweep->task); c->head && d->columns < MOST_COLUMNS; c++)
        if (filled(c, answers, d->rows) && !moves(sweep, c)) {
            d->align[d->columns] = c->u == WORD ? 'l' : 'r';
            d->head[d->columns] = c->head;
            shown[d->columns++] = c;
        }
    d->cells = calloc(d->rows * d->columns + 1, sizeof *d->cells);
    d->figures = calloc(3 * d->rows + 1, sizeof *d->figures);
    if (!d->cells || !d->figures) return false;
    if (d->columns == 0) return true;
    d->heading = heading_of(shown[0]);
    d->figure = shown[0]->u == COUNT ? "billions" : shown[0]->head;
    bool interval = d->columns > 2 && !strcmp(d->head[1], "low") && !strcmp(d->head[2], "high");
    for (size_t i = 0; i < d->rows; i++) {
        d->figures[i] = figure_at(answers[i], shown[0]);
        for (size_t k = 1; k <= 2; k++) d->figures[k * d->rows + i] = interval ? figure_at(answers[i], shown[k]) : NAN;
        for (size_t k = 0; k < d->columns; k++) {
            ft_text t = {0};
            const json_t *v = read_at(answers[i], shown[k]);
            if (!strcmp(shown[k]->path, "regime.bound"))
                ft__text_add(&t, words_of(json_string_value(v))); /* as pages say it */
            else
                add_cell(&t, shown[k], v);
            d->cells[i * d->columns + k] = t.at; /* NULL where it is empty */
            if (t.failed) return false;
        }
    }
    d->low = interval ? d->figures + d->rows : NULL;
    d->high = interval ? d->figures + 2 * d->rows : NULL;
    return true;
}

void ft__swept_rows_free(ft_swept_rows *d)
{
    for (size_t i = 0; d->cells && i < d->rows * d->columns; i++) free((void *)(uintptr_t)d->cells[i]);
    free(d->cells);
    free(d->figures);
    d->cells = NULL;
    d->figures = NULL;
}

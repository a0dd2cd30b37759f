/* accuracy_screen.c: errors by family, variant and GPU, and the budget. */
#include "report/text/accuracy_screen.h"

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/json_write.h"
#include "report/text/columns.h"

static void add_error(ft_columns *c, double share, const char *format)
{
    if (isfinite(share))
        ft__text_addf(ft__cell(c), format, 100 * share);
    else
        ft__cell_add(c, "-");
}

static bool same(const ft_accuracy *a, const ft_accuracy *b)
{
    return !strcmp(a->family, b->family) && !strcmp(a->variant, b->variant) && !strcmp(a->gpu, b->gpu) &&
           !strcmp(a->kind, b->kind);
}

static const ft_accuracy *find(const ft_accuracy_table *table, const ft_accuracy *like)
{
    for (size_t i = 0; i < table->count; i++)
        if (same(&table->lines[i], like)) return &table->lines[i];
    return NULL;
}

bool ft__screen_accuracy(ft_text *out, const ft_style *style, const ft_accuracy_table *table,
                         const ft_baseline_table *beside, size_t beside_count)
{
    static const char *const head[] = {"family", "variant", "gpu", "kind", "rows",
                                       "mean",   "median",  "p90", "bias", "inside"};
    if (table->count == 0) {
        ft__text_add(out, "no measurements\n");
        return !out->failed;
    }
    ft_columns c;
    if (beside_count > 4) beside_count = 4;
    char align[FT_MOST_COLUMNS + 1] = "llllrrrrrr";
    for (size_t i = 0; i < beside_count; i++) strcat(align, "r");
    ft__columns_init(&c, align);
    for (int i = 0; i < 10; i++) ft__cell_add(&c, head[i]);
    for (size_t i = 0; i < beside_count; i++) ft__cell_add(&c, beside[i].name);
    for (size_t i = 0; i < table->count; i++) {
        const ft_accuracy *a = &table->lines[i];
        ft__cell_add(&c, a->family);
        ft__cell_add(&c, a->variant);
        ft__cell_add(&c, a->gpu);
        ft__cell_add(&c, a->kind);
        ft__cell_addf(&c, "%zu", a->rows);
        add_error(&c, a->mean, "%.1f %%");
        add_error(&c, a->median, "%.1f %%");
        add_error(&c, a->p90, "%.1f %%");
        add_error(&c, a->bias, "%+.1f %%");
        add_error(&c, a->inside, "%.1f %%");
        for (size_t k = 0; k < beside_count; k++) {
            const ft_accuracy *other = find(beside[k].table, a);
            if (other)
                add_error(&c, other->mean, "%.1f %%");
            else
                ft__cell_add(&c, "-");
        }
    }
    bool printed = ft__columns_print(&c, out, style, 0, true);
    ft__columns_free(&c);
    return printed;
}

static void add_share(ft_text *out, const char *key, double value)
{
    ft__json_member_number(out, key, value, 6); /* null where there is none */
}

void ft__answer_accuracy(ft_text *out, const ft_accuracy_table *table)
{
    ft__json_open_list(out);
    for (size_t i = 0; i < table->count; i++) {
        const ft_accuracy *a = &table->lines[i];
        ft__json_line(out);
        ft__json_open(out);
        ft__json_member_text(out, "family", a->family);
        ft__json_member_text(out, "variant", a->variant);
        ft__json_member_text(out, "gpu", a->gpu);
        ft__json_member_text(out, "kind", a->kind);
        ft__json_member_whole(out, "rows", (int64_t)a->rows);
        if (a->left_out) ft__json_member_whole(out, "left_out", (int64_t)a->left_out);
        if (a->left_out) add_share(out, "left_out_mean", a->left_out_mean);
        add_share(out, "mean", a->mean);
        add_share(out, "median", a->median);
        add_share(out, "p90", a->p90);
        add_share(out, "bias", a->bias);
        add_share(out, "inside", a->inside);
        ft__json_close(out);
    }
    ft__text_add(out, "\n");
    ft__json_close_list(out);
}

/* -- the budget -------------------------------------------------------------------------------- */

typedef struct bounds {
    double max_mean, min_inside, max_inside;
} bounds;

typedef struct allowance {
    const char *family, *variant, *gpu; /* variant and gpu NULL: any */
    bounds of_all, of_held_out;         /* where the line says nothing of held-out rows, the same */
} allowance;

static ft_status read_bounds(const json_t *object, const char *where, bounds *out, ft_error *err)
{
    *out = (bounds){.max_mean = INFINITY, .min_inside = 0, .max_inside = 1};
    FT_TRY(ft__json_number(object, "max_mean", FT_REQUIRED, 0, 100, &out->max_mean, where, err));
    FT_TRY(ft__json_number(object, "min_inside", FT_OPTIONAL, 0, 1, &out->min_inside, where, err));
    return ft__json_number(object, "max_inside", FT_OPTIONAL, 0, 1, &out->max_inside, where, err);
}

static ft_status read_allowance(const json_t *line, const char *where, allowance *out, ft_error *err)
{
    static const char *const keys[] = {"max_mean", "min_inside", "max_inside", "family", "variant", "gpu", "held_out"};
    enum { BOUNDS = 3 };
    *out = (allowance){0};
    FT_TRY(ft__json_known_keys(line, keys, sizeof keys / sizeof *keys, where, err));
    FT_TRY(ft__json_string(line, "family", FT_REQUIRED, &out->family, where, err));
    FT_TRY(ft__json_string(line, "variant", FT_OPTIONAL, &out->variant, where, err));
    FT_TRY(ft__json_string(line, "gpu", FT_OPTIONAL, &out->gpu, where, err));
    FT_TRY(read_bounds(line, where, &out->of_all, err));
    out->of_held_out = out->of_all;
    const json_t *held_out = json_object_get(line, "held_out");
    if (!held_out) return FT_OK;
    FT_TRY(ft__json_known_keys(held_out, keys, BOUNDS, where, err));
    return read_bounds(held_out, where, &out->of_held_out, err);
}

static void add_name(ft_text *out, const char *family, const char *variant, const char *gpu)
{
    ft__text_add_plain(out, family);
    if (variant && *variant) ft__text_addf(out, " %s", variant);
    if (gpu && *gpu) ft__text_addf(out, " %s", gpu);
}

static void hold_against(const bounds *b, const ft_accuracy *a, ft_text *complaints)
{
    if (!(a->mean <= b->max_mean)) {
        add_name(complaints, a->family, a->variant, a->gpu);
        ft__text_addf(complaints, ": mean error %.2f %% exceeds the budget of %.2f %%\n", 100 * a->mean,
                      100 * b->max_mean);
    }
    bool asked = b->min_inside > 0 || b->max_inside < 1; /* memory has no interval, and nobody asks for one */
    if ((asked || !isnan(a->inside)) && !(a->inside >= b->min_inside && a->inside <= b->max_inside)) {
        add_name(complaints, a->family, a->variant, a->gpu);
        ft__text_addf(complaints,
                      ": %.1f %% of the truth lies inside the interval; the budget asks for %.1f to %.1f %%\n",
                      100 * a->inside, 100 * b->min_inside, 100 * b->max_inside);
    }
}

static ft_status check_lines(const json_t *document, const char *path, const ft_accuracy_table *table, bool all,
                             ft_text *complaints, size_t *checked, ft_error *err)
{
    static const char *const keys[] = {"lines", "about"};
    FT_TRY(ft__json_known_keys(document, keys, 2, path, err));
    const json_t *lines = json_object_get(document, "lines");
    if (!json_is_array(lines))
        return ft__fail_at(err, FT_E_MISSING, path, 0, 0, "\"lines\" must be an array of budgets");
    for (size_t i = 0; i < json_array_size(lines); i++) {
        allowance b;
        FT_TRY(read_allowance(json_array_get(lines, i), path, &b, err));
        bool met = false;
        for (size_t k = 0; k < table->count; k++) {
            const ft_accuracy *a = &table->lines[k];
            if (strcmp(a->family, b.family) || (b.variant && strcmp(a->variant, b.variant)) ||
                (b.gpu && strcmp(a->gpu, b.gpu)))
                continue;
            met = true;
            ++*checked;
            hold_against(strcmp(a->kind, "held-out") ? &b.of_all : &b.of_held_out, a, complaints);
        }
        if (met || !all) continue;
        add_name(complaints, b.family, b.variant, b.gpu);
        ft__text_add(complaints, ": the budget names it, and nothing was measured\n");
    }
    return complaints->failed ? ft__no_memory(err) : FT_OK;
}

ft_status ft__budget_check(const char *path, const ft_accuracy_table *table, bool all, ft_text *complaints,
                           size_t *checked, ft_error *err)
{
    json_t *document;
    *checked = 0;
    FT_TRY(ft__json_load(path, &document, err));
    ft_status status = check_lines(document, path, table, all, complaints, checked, err);
    json_decref(document);
    return status;
}

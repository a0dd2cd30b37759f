/* measured_cases.c: measured cases beside their forecasts, one by one. */
#include "report/text/measured_cases.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_write.h"
#include "report/text/describe.h"

static const char cases_align[] = "llllrrrrrl";
static const char *const cases_head[] = {"family",   "variant", "gpu",  "case",  "measured ms",
                                         "forecast", "low",     "high", "error", ""};

static void add_object(ft_text *out, const char *family, const char *variant, const char *gpu, const char *description,
                       double measured_ms, const ft_forecast *f)
{
    const char *const words[] = {"family", family, "variant", variant, "gpu", gpu, "case", description};
    ft__json_open(out);
    for (int i = 0; i < 8; i += 2) ft__json_member_text(out, words[i], words[i + 1]);
    const double times[] = {measured_ms, f->ms, f->low_ms, f->high_ms, f->ms / measured_ms - 1};
    static const char *const names[] = {"measured_ms", "ms", "low_ms", "high_ms", "error"};
    for (int i = 0; i < 5; i++) ft__json_member_number(out, names[i], times[i], 6);
    ft__json_close(out);
}

static void add_cells(ft_columns *c, const char *family, const char *variant, const char *gpu, const char *description,
                      double measured_ms, const ft_forecast *f)
{
    ft__cell_add(c, family);
    ft__cell_add(c, variant);
    ft__cell_add(c, gpu);
    ft__cell_add(c, description);
    ft__add_figure(ft__cell(c), measured_ms, 4);
    ft__add_figure(ft__cell(c), f->ms, 4);
    ft__add_figure(ft__cell(c), f->low_ms, 4);
    ft__add_figure(ft__cell(c), f->high_ms, 4);
    ft__text_addf(ft__cell(c), "%+.1f %%", 100 * (f->ms / measured_ms - 1));
    ft__cell_add(c, measured_ms < f->low_ms || measured_ms > f->high_ms ? "outside" : "");
}

static void keep_worst(ft_measured_cases *c, double miss, char *text)
{
    size_t at = c->kept;
    while (at > 0 && c->list[at - 1].miss < miss) at--;
    if (at == c->worst) {
        free(text);
        return;
    }
    if (c->kept == c->worst) free(c->list[--c->kept].text);
    memmove(&c->list[at + 1], &c->list[at], (c->kept - at) * sizeof *c->list);
    c->list[at] = (ft_measured_row){miss, text};
    c->kept++;
}

/* Cells travel through the list of the worst as one text with tabs: descriptions hold none. */
static void add_case(ft_measured_cases *c, const char *family, const char *variant, const char *gpu, const char *text,
                     double measured_ms, const ft_forecast *f)
{
    if (c->every && c->json) {
        if (c->object_count++) ft__text_add(&c->objects, ",\n");
        add_object(&c->objects, family, variant, gpu, text, measured_ms, f);
    } else if (c->every) {
        add_cells(&c->table, family, variant, gpu, text, measured_ms, f);
    } else if (c->worst) {
        double miss = fabs(log(f->ms / measured_ms));
        if (c->kept < c->worst || miss > c->list[c->kept - 1].miss) {
            ft_text row = {0};
            ft_columns cells;
            ft__columns_init(&cells, cases_align);
            if (c->json)
                add_object(&row, family, variant, gpu, text, measured_ms, f);
            else
                add_cells(&cells, family, variant, gpu, text, measured_ms, f);
            if (!c->json) {
                for (size_t i = 0; i < cells.text.length; i++)
                    if (cells.text.at[i] == '\0') cells.text.at[i] = '\t';
                ft__text_add(&row, cells.text.at ? cells.text.at : "");
            }
            ft__columns_free(&cells);
            if (row.at && !row.failed)
                keep_worst(c, miss, row.at);
            else
                c->failed = true;
        }
    }
    c->failed = c->failed || c->objects.failed || c->table.text.failed;
}

void ft__measured_kernel(void *context, const char *family, const char *variant, const ft_device *device,
                         const ft_op *op, double measured_ms, const ft_forecast *f)
{
    ft_measured_cases *c = context;
    ft_text description = {0};
    ft__describe_op(&description, op);
    add_case(c, family, variant, device->name, description.at ? description.at : "", measured_ms, f);
    c->failed = c->failed || description.failed;
    ft__text_free(&description);
}

/* Memory is no time: its cases count in the table of errors alone. */
void ft__measured_model(void *context, const char *variant, const char *gpu, const char *description, double measured,
                        const ft_forecast *f, bool memory)
{
    if (!memory) add_case(context, "models", variant, gpu, description, measured, f);
}

void ft__measured_print(ft_measured_cases *c, ft_text *out, const ft_style *style)
{
    if (c->every && !c->json && !ft__columns_print(&c->table, out, style, 0, true)) c->failed = true;
    if (c->every || c->kept == 0) return;
    if (c->json) {
        for (size_t i = 0; i < c->kept; i++) {
            if (c->object_count++) ft__text_add(&c->objects, ",\n");
            ft__text_add(&c->objects, c->list[i].text);
        }
        return;
    }
    for (size_t i = 0; i < c->kept; i++)
        for (char *at = c->list[i].text; at;) {
            char *tab = strchr(at, '\t');
            if (tab) *tab++ = '\0';
            ft__cell_add(&c->table, at);
            at = tab;
        }
    if (!ft__columns_print(&c->table, out, style, 0, true)) c->failed = true;
}

bool ft__measured_begin(ft_measured_cases *c, bool json, bool every, size_t worst)
{
    *c = (ft_measured_cases){.json = json, .every = every, .worst = worst};
    ft__columns_init(&c->table, cases_align);
    for (int i = 0; i < 10; i++) ft__cell_add(&c->table, cases_head[i]);
    c->list = calloc(worst + 1, sizeof *c->list);
    return c->list != NULL;
}

void ft__measured_end(ft_measured_cases *c)
{
    for (size_t i = 0; i < c->kept; i++) free(c->list[i].text);
    free(c->list);
    ft__columns_free(&c->table);
    ft__text_free(&c->objects);
}

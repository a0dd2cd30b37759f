/* calibrate.c: from points of one GPU to a calibration file: dealt to cells, fitted side by side, laid out, judged. */
#include "fit/calibrate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_write.h"
#include "base/parallel.h"
#include "fit/calibrate_inherit.h"
#include "kernel/kernel.h"

typedef struct fitting {
    const ft_calibrate_options *options;
    ft_calibrate_cell *cells;
    size_t cell_count;
    size_t done;
} fitting;

void ft__calibration_table_free(ft_calibration_table *t)
{
    free(t->lines);
    memset(t, 0, sizeof *t);
}

static void tell(const fitting *f, const char *stage, double done)
{
    if (f->options->progress) f->options->progress(f->options->progress_context, stage, done);
}

static ft_calibrate_cell *cell_of(fitting *f, const ft_family *family, int variant)
{
    for (size_t i = 0; i < f->cell_count; i++)
        if (f->cells[i].family == family && f->cells[i].variant == variant) return &f->cells[i];
    ft_calibrate_cell *more = realloc(f->cells, (f->cell_count + 1) * sizeof *more);
    if (!more) return NULL;
    f->cells = more;
    f->cells[f->cell_count] =
        (ft_calibrate_cell){.base = f->options->base, .rows = f->options->rows, .family = family, .variant = variant};
    return &f->cells[f->cell_count++];
}

static ft_status deal(fitting *f, ft_error *err)
{
    const ft_rows *rows = f->options->rows;
    for (uint32_t i = 0; i < rows->count; i++) {
        int variant;
        const ft_row *row = &rows->at[i];
        const ft_family *family = ft__family_of(&row->op, &variant);
        if (!family || row->held_out || row->op.timing == FT_TIMING_OP) continue;
        ft_calibrate_cell *c = cell_of(f, family, variant);
        if (!c) return ft__no_memory(err);
        if (c->count == c->room) {
            size_t room = c->room ? 2 * c->room : 64;
            uint32_t *more = realloc(c->index, room * sizeof *more);
            if (!more) return ft__no_memory(err);
            c->index = more;
            c->room = room;
        }
        c->index[c->count++] = i;
    }
    size_t kept = 0;
    for (size_t i = 0; i < f->cell_count; i++) {
        if (f->cells[i].count >= FT_CALIBRATE_LEAST)
            f->cells[kept++] = f->cells[i];
        else
            ft__calibrate_cell_free(&f->cells[i]);
    }
    f->cell_count = kept;
    return FT_OK;
}

static void fit_one(void *context, size_t i)
{
    fitting *f = context;
    f->cells[i].status = ft__calibrate_cell(&f->cells[i], &f->cells[i].error);
    size_t done = __atomic_add_fetch(&f->done, 1, __ATOMIC_RELAXED);
    tell(f, "variants", (2 + 93 * ((double)done / (double)f->cell_count)) / 100);
}

/* The largest first, so that no core idles at the end; ties in the order of the points. */
static int by_size(const void *a, const void *b)
{
    const ft_calibrate_cell *x = a, *y = b;
    return x->count != y->count ? (x->count < y->count) - (x->count > y->count)
                                : (x->index[0] > y->index[0]) - (x->index[0] < y->index[0]);
}

/* -- the file ---------------------------------------------------------------------------------- */

static ft_status lay_out(const fitting *f, const ft_calibrated *inherited, size_t inherited_count, const char *meta,
                         void **file, size_t *length, ft_error *err)
{
    size_t trees = 0, values = 0, nt = 0, nv = 0, experts = f->cell_count + inherited_count;
    for (size_t i = 0; i < f->cell_count; i++) {
        const ft_calibrate_cell *c = &f->cells[i];
        trees += c->out.expert.tree_count + c->out.expert.sigma_count;
        values += ft__process_values(&c->out.process);
    }
    ft_calibrated *e = calloc(experts + 1, sizeof *e);
    ft_tree *t = calloc(trees + 1, sizeof *t);
    float *v = calloc(values + 1, sizeof *v);
    ft_status s = e && t && v ? FT_OK : ft__fail(err, FT_E_MEMORY, "out of memory laying out the calibration");
    for (size_t i = 0; i < f->cell_count && s == FT_OK; i++) {
        const ft_calibrate_cell *c = &f->cells[i];
        e[i] = c->out;
        e[i].expert.tree_first = (uint32_t)nt;
        memcpy(t + nt, c->trees, c->out.expert.tree_count * sizeof *t);
        nt += c->out.expert.tree_count;
        e[i].expert.sigma_first = (uint32_t)nt;
        memcpy(t + nt, c->sigma, c->out.expert.sigma_count * sizeof *t);
        nt += c->out.expert.sigma_count;
        e[i].process.first = (uint32_t)nv;
        size_t count = ft__process_values(&c->out.process);
        if (count) memcpy(v + nv, c->values, count * sizeof *v);
        nv += count;
    }
    if (s == FT_OK && inherited_count) memcpy(e + f->cell_count, inherited, inherited_count * sizeof *e);
    const ft_calibration_records records = {f->options->base->identity, e, experts, t, nt, v, nv, meta, strlen(meta)};
    if (s == FT_OK) s = ft__calibration_write(&records, file, length, err);
    free(e);
    free(t);
    free(v);
    return s;
}

/* -- judging ----------------------------------------------------------------------------------- */

static ft_calibration_line *line_of(ft_calibration_table *t, const char *family, const char *variant)
{
    for (size_t i = 0; i < t->count; i++)
        if (!strcmp(t->lines[i].family, family) && !strcmp(t->lines[i].variant, variant)) return &t->lines[i];
    ft_calibration_line *more = realloc(t->lines, (t->count + 1) * sizeof *more);
    if (!more) return NULL;
    t->lines = more;
    ft_calibration_line *line = &t->lines[t->count++];
    *line = (ft_calibration_line){.tried = NAN, .learned = ""};
    strncpy(line->family, family, sizeof line->family - 1);
    strncpy(line->variant, variant, sizeof line->variant - 1);
    return line;
}

static double error_of(const ft_predictor *p, const ft_row *row, const ft_device *device, bool *inside)
{
    ft_forecast f;
    if (ft__kernel_forecast(p, device, &row->op, 0.9, &f, NULL) != FT_OK) return NAN;
    *inside = row->ms >= f.low_ms && row->ms <= f.high_ms;
    return fabs(f.ms / row->ms - 1);
}

static ft_status judge_row(const fitting *f, const ft_predictor *after, const ft_row *row, ft_calibration_table *t,
                           ft_error *err)
{
    int variant;
    bool was = false, inside = false;
    const ft_family *family = ft__family_of(&row->op, &variant);
    if (!family) return FT_OK;
    double old = NAN, new = NAN;
    if (row->held_out) {
        old = error_of(f->options->base, row, &f->options->rows->gpus[row->gpu], &was);
        new = error_of(after, row, &f->options->rows->gpus[row->gpu], &inside);
    }
    for (int whole = 0; whole < 2; whole++) {
        ft_calibration_line *line = line_of(t, family->name, whole ? "" : family->variant_name(variant));
        if (!line) return ft__no_memory(err);
        if (!row->held_out) {
            line->points++;
        } else if (isfinite(old) && isfinite(new)) {
            line->held_out++;
            line->before += old;
            line->after += new;
            line->inside += inside;
        }
    }
    return FT_OK;
}

/* Families in their usual order, each as a whole and then its variants in theirs. */
static int by_name(const void *a, const void *b)
{
    const ft_calibration_line *x = a, *y = b;
    int fx = ft__family_find(x->family), fy = ft__family_find(y->family), vx = -1, vy = -1;
    if (fx != fy) return fx - fy;
    for (int v = 0; v < ft__families[fx]->variant_count; v++) {
        if (!strcmp(ft__families[fx]->variant_name(v), x->variant)) vx = v;
        if (!strcmp(ft__families[fx]->variant_name(v), y->variant)) vy = v;
    }
    return vx - vy;
}

static ft_status judge(const fitting *f, const void *file, size_t length, ft_calibration_table *t, ft_error *err)
{
    ft_calibration c;
    FT_TRY(ft__calibration_read(file, length, "calibration", &c, err));
    ft_predictor after = *f->options->base;
    after.calibration = &c;
    for (size_t i = 0; i < f->options->rows->count; i++) FT_TRY(judge_row(f, &after, &f->options->rows->at[i], t, err));
    for (size_t i = 0; i < f->cell_count; i++) {
        const ft_calibrate_cell *cell = &f->cells[i];
        ft_calibration_line *line = line_of(t, cell->family->name, cell->family->variant_name(cell->variant));
        if (!line) return ft__no_memory(err);
        line->tried = cell->tried;
        line->refitted = cell->refitted;
        line->learned = cell->learned;
    }
    for (size_t i = 0; i < t->count; i++) {
        double n = t->lines[i].held_out ? (double)t->lines[i].held_out : NAN;
        t->lines[i].before /= n;
        t->lines[i].after /= n;
        t->lines[i].inside /= n;
    }
    if (t->count) qsort(t->lines, t->count, sizeof *t->lines, by_name);
    return FT_OK;
}

static void add_figure(ft_text *out, const char *key, double value)
{
    ft__json_member_number(out, key, value, 4); /* null where there is none */
}

static void describe(const fitting *f, const ft_calibration_table *t, ft_text *meta)
{
    const ft_rows *rows = f->options->rows;
    size_t held = 0;
    for (size_t i = 0; i < rows->count; i++) held += rows->at[i].held_out;
    ft__json_open(meta);
    ft__json_member_text(meta, "made_by", "foretell " FT_VERSION " fit --calibrate");
    ft__json_member_text(meta, "gpu", rows->gpus[0].name);
    ft__json_member_whole(meta, "points", (int64_t)(rows->count - held));
    ft__json_member_whole(meta, "held_out", (int64_t)held);
    add_figure(meta, "minutes", f->options->minutes);
    ft__json_member_written(meta, "machine", f->options->machine ? f->options->machine : "{}");
    ft__json_member_list(meta, "errors");
    for (size_t i = 0; i < t->count; i++) {
        const ft_calibration_line *l = &t->lines[i];
        ft__json_line(meta);
        ft__json_open(meta);
        ft__json_member_text(meta, "family", l->family);
        ft__json_member_text(meta, "variant", l->variant);
        ft__json_member_whole(meta, "points", (int64_t)l->points);
        ft__json_member_whole(meta, "held_out", (int64_t)l->held_out);
        add_figure(meta, "before", l->before);
        add_figure(meta, "after", l->after);
        add_figure(meta, "inside", l->inside);
        add_figure(meta, "tried", l->tried);
        ft__json_member_text(meta, "constants", l->refitted ? "refitted" : "kept");
        ft__json_member_text(meta, "learned", l->learned);
        ft__json_close(meta);
    }
    ft__json_close_list(meta);
    ft__json_close(meta);
    ft__text_add(meta, "\n");
}

static ft_status run(fitting *f, void **file, size_t *length, ft_calibration_table *table, ft_error *err)
{
    FT_TRY(deal(f, err));
    if (f->cell_count > 1) qsort(f->cells, f->cell_count, sizeof *f->cells, by_size);
    ft__parallel(f->options->threads, f->cell_count, fit_one, f);
    for (size_t i = 0; i < f->cell_count; i++)
        if (f->cells[i].status != FT_OK) {
            if (err) *err = f->cells[i].error;
            return f->cells[i].status;
        }
    ft_calibrated *inherited = calloc(ft__inherit_most() + 1, sizeof *inherited);
    size_t count = 0;
    if (!inherited) return ft__no_memory(err);
    ft_text meta = {0};
    void *first = NULL;
    ft_status s = ft__inherit(f->options->base, f->options->rows, f->cells, f->cell_count, inherited, &count, err);
    if (s == FT_OK && !f->cell_count && !count)
        s = ft__fail(err, FT_E_RANGE,
                     "too few points: no variant of any family has %d of them that are not held out; measure longer",
                     FT_CALIBRATE_LEAST);
    if (s == FT_OK) s = lay_out(f, inherited, count, "{}", &first, length, err);
    tell(f, "judging", (double)95 / 100);
    if (s == FT_OK) s = judge(f, first, *length, table, err);
    if (s == FT_OK) {
        describe(f, table, &meta);
        s = meta.failed ? ft__fail(err, FT_E_MEMORY, "out of memory describing the calibration")
                        : lay_out(f, inherited, count, meta.at, file, length, err);
    }
    ft__text_free(&meta);
    free(first);
    free(inherited);
    return s;
}

ft_status ft__calibrate(const ft_calibrate_options *options, void **file, size_t *length, ft_calibration_table *table,
                        ft_error *err)
{
    fitting f = {.options = options};
    memset(table, 0, sizeof *table);
    *file = NULL;
    *length = 0;
    if (options->base->mode != FT_PREDICT_LEARNED)
        return ft__fail(err, FT_E_UNSUPPORTED,
                        "a calibration adapts a fitted predictor; roofline, linear and scaling have nothing to adapt");
    tell(&f, "points", 0);
    ft_status s = run(&f, file, length, table, err);
    if (s != FT_OK) ft__calibration_table_free(table);
    for (size_t i = 0; i < f.cell_count; i++) ft__calibrate_cell_free(&f.cells[i]);
    free(f.cells);
    tell(&f, "done", 1);
    return s;
}

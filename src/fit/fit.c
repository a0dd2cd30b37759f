/* Measurements -> predictor file: rows are dealt into cells, cells are fitted in parallel, experts and trees are
 * laid out one after the other, and a JSON record says what all of it came from.
 *
 * The order of cells, GPUs and rows is that of the files, and no step depends on the thread count: same data, same
 * bytes. */
#include "fit/fit.h"

#include <stdlib.h>
#include <string.h>

#include "base/json_write.h"
#include "base/parallel.h"
#include "fit/baseline.h"
#include "fit/cell.h"
#include "fit/tidy.h"

void ft__accuracy_free(ft_accuracy_table *t)
{
    free(t->lines);
    memset(t, 0, sizeof *t);
}

typedef struct job {
    ft_cell *cell;
    int gpu; /* index inside the cell */
    ft_status status;
    ft_error error;
} job;

typedef struct fitting {
    const ft_fit_options *options;
    ft_rows rows;
    ft_cell *cells;
    ft_cell **order; /* the longest first, so that no core idles at the end */
    size_t cell_count;
    job *jobs;
    size_t job_count;
    size_t done, steps;
} fitting;

/* All rows of a family are read, whichever of its variants is fitted: they are numbered together. */
static bool family_wanted(void *context, const ft_op *op)
{
    const ft_fit_options *o = context;
    int variant;
    const ft_family *f = ft__family_of(op, &variant);
    for (size_t i = 0; f && i < o->family_count; i++) {
        size_t length = strcspn(o->families[i], "/");
        if (strlen(f->name) == length && !strncmp(f->name, o->families[i], length)) return true;
    }
    return f && o->family_count == 0;
}

static bool cell_wanted(const ft_fit_options *o, const ft_family *family, int variant)
{
    for (size_t i = 0; i < o->family_count; i++)
        if (ft__cell_named(o->families[i], family, variant)) return true;
    return o->family_count == 0;
}

/* Of the whole, where one stage goes from so many to so many hundredths. */
static double between(int from, int to, size_t done, size_t count)
{
    return (from + (to - from) * ((double)done / (double)count)) / 100;
}

static void tell(fitting *f, const char *stage, double done)
{
    if (f->options->progress) f->options->progress(f->options->progress_context, stage, done);
}

static ft_cell_gpu *gpu_in(ft_cell *cell, int gpu)
{
    for (int g = 0; g < cell->gpu_count; g++)
        if (cell->gpus[g].gpu == gpu) return &cell->gpus[g];
    ft_cell_gpu *more = realloc(cell->gpus, (size_t)(cell->gpu_count + 1) * sizeof *more);
    if (!more) return NULL;
    cell->gpus = more;
    memset(&more[cell->gpu_count], 0, sizeof *more);
    more[cell->gpu_count].gpu = gpu;
    return &more[cell->gpu_count++];
}

/* A cell of a family's variant behind the others; NULL: out of memory. */
static ft_cell *add_cell(fitting *f, size_t *room, const ft_family *family, int variant)
{
    if (f->cell_count == *room) {
        *room = *room ? 2 * *room : 32;
        ft_cell *more = realloc(f->cells, *room * sizeof *more);
        if (!more) return NULL;
        f->cells = more;
    }
    ft_cell *cell = &f->cells[f->cell_count++];
    memset(cell, 0, sizeof *cell);
    cell->family = family;
    cell->variant = variant;
    cell->rows = &f->rows;
    return cell;
}

/* False: out of memory. */
static bool add_row(ft_cell_gpu *g, const ft_row *row, uint32_t at)
{
    if ((g->count & (g->count - 1)) == 0) { /* grows at powers of two */
        uint32_t *more = realloc(g->index, (g->count ? 2 * g->count : 1) * sizeof *more);
        if (!more) return false;
        g->index = more;
    }
    g->index[g->count++] = at;
    g->bare = g->bare || (row->op.kind == FT_OP_GEMM && row->op.u.gemm.quantized == 1);
    g->eager = g->eager || row->op.timing == FT_TIMING_OP;
    g->older = g->older || row->older;
    g->timed = g->timed || row->op.timing == FT_TIMING_DEVICE;
    g->calibrated = g->calibrated || row->source == FT_ROWS_POINTS;
    g->drawn = g->drawn || row->source == FT_ROWS_DRAWN;
    return true;
}

/* Every row that is fitted into its cell, and its GPU there. */
static ft_status deal_rows(fitting *f, ft_error *err)
{
    size_t room = 0;
    uint32_t numbers[FT_MAX_FAMILIES] = {0};
    int *cell_at = malloc((size_t)ft__family_count * FT_MAX_VARIANTS * sizeof *cell_at);
    if (!cell_at) return ft__no_memory(err);
    for (int i = 0; i < ft__family_count * FT_MAX_VARIANTS; i++) cell_at[i] = -1;
    bool dealt = true;
    for (uint32_t i = 0; i < f->rows.count && dealt; i++) {
        ft_row *row = &f->rows.at[i];
        int variant;
        const ft_family *family = ft__family_of(&row->op, &variant);
        if (!family) continue;
        int which = ft__family_find(family->name);
        row->number = numbers[which]++;
        if (row->held_out || !cell_wanted(f->options, family, variant)) continue;
        int *at = &cell_at[which * FT_MAX_VARIANTS + variant];
        ft_cell *cell = *at < 0 ? add_cell(f, &room, family, variant) : &f->cells[*at];
        if (cell) *at = (int)(cell - f->cells);
        ft_cell_gpu *g = cell ? gpu_in(cell, row->gpu) : NULL;
        dealt = g && add_row(g, row, i);
    }
    free(cell_at);
    return dealt ? FT_OK : ft__no_memory(err);
}

static ft_status deal(fitting *f, ft_error *err)
{
    FT_TRY(deal_rows(f, err));
    FT_TRY(ft__cells_keep(f->cells, &f->cell_count, f->options->shard, f->options->shards, err));
    for (size_t c = 0; c < f->cell_count; c++) {
        FT_TRY(ft__cell_weigh(&f->cells[c], &f->rows, err));
        f->job_count += (size_t)f->cells[c].gpu_count;
    }
    return f->cell_count
               ? FT_OK
               : ft__fail(err, FT_E_FILE, "no rows to fit: every measured row is held out or of another family");
}

static void world_step(void *context, size_t i)
{
    fitting *f = context;
    f->order[i]->status = ft__cell_fit_world(f->order[i], &f->order[i]->error);
    size_t done = __atomic_add_fetch(&f->done, 1, __ATOMIC_RELAXED);
    tell(f, "constants", between(0, 15, done, f->cell_count));
}

static void gpu_step(void *context, size_t i)
{
    fitting *f = context;
    job *j = &f->jobs[i];
    j->status = ft__cell_fit_gpu(j->cell, &j->cell->gpus[j->gpu], &j->error);
    size_t done = __atomic_add_fetch(&f->done, 1, __ATOMIC_RELAXED);
    tell(f, "experts", between(15, 80, done, f->job_count));
}

static void kin_step(void *context, size_t i)
{
    fitting *f = context;
    f->order[i]->status = ft__cell_fit_kin(f->order[i], f->options->cross_validate, &f->order[i]->error);
    size_t done = __atomic_add_fetch(&f->done, 1, __ATOMIC_RELAXED);
    tell(f, "kinship", between(80, 100, done, f->cell_count));
}

static ft_status cells_status(const fitting *f, ft_error *err)
{
    for (size_t c = 0; c < f->cell_count; c++)
        if (f->cells[c].status != FT_OK) {
            if (err) *err = f->cells[c].error;
            return f->cells[c].status;
        }
    return FT_OK;
}

static int by_size(const void *a, const void *b)
{
    const job *x = a, *y = b;
    size_t nx = x->cell->gpus[x->gpu].count, ny = y->cell->gpus[y->gpu].count;
    return nx != ny             ? (nx < ny) - (nx > ny)
           : x->cell != y->cell ? (x->cell > y->cell) - (x->cell < y->cell)
                                : x->gpu - y->gpu;
}

/* Constants are searched for over all GPUs' rows at once, a forecast for each of them at every step. */
static size_t work_of(const ft_cell *c) { return (size_t)c->gpu_count * (size_t)c->family->parameter_count; }

static int by_work(const void *a, const void *b)
{
    const ft_cell *x = *(ft_cell *const *)a, *y = *(ft_cell *const *)b;
    size_t nx = work_of(x), ny = work_of(y);
    return nx != ny ? (nx < ny) - (nx > ny) : (x > y) - (x < y);
}

static ft_status run(fitting *f, ft_error *err)
{
    int threads = f->options->threads;
    f->jobs = malloc((f->job_count + 1) * sizeof *f->jobs);
    f->order = malloc((f->cell_count + 1) * sizeof *f->order);
    if (!f->jobs || !f->order) return ft__no_memory(err);
    for (size_t c = 0; c < f->cell_count; c++) f->order[c] = &f->cells[c];
    qsort(f->order, f->cell_count, sizeof *f->order, by_work);
    size_t n = 0;
    for (size_t c = 0; c < f->cell_count; c++)
        for (int g = 0; g < f->cells[c].gpu_count; g++) f->jobs[n++] = (job){.cell = &f->cells[c], .gpu = g};
    qsort(f->jobs, n, sizeof *f->jobs, by_size);
    ft__parallel(threads, f->cell_count, world_step, f);
    FT_TRY(cells_status(f, err));
    f->done = 0;
    ft__parallel(threads, f->job_count, gpu_step, f);
    for (size_t i = 0; i < f->job_count; i++)
        if (f->jobs[i].status != FT_OK) {
            if (err) *err = f->jobs[i].error;
            return f->jobs[i].status;
        }
    f->done = 0;
    ft__parallel(threads, f->cell_count, kin_step, f);
    return cells_status(f, err);
}

static void describe_line(ft_text *meta, const ft_accuracy *a)
{
    const struct {
        const char *key;
        double value;
    } figures[] = {{"mean", a->mean}, {"median", a->median}, {"p90", a->p90}, {"bias", a->bias}, {"inside", a->inside}};
    ft__json_line(meta);
    ft__json_open(meta);
    ft__json_member_text(meta, "family", a->family);
    ft__json_member_text(meta, "variant", a->variant);
    ft__json_member_text(meta, "gpu", a->gpu);
    ft__json_member_text(meta, "kind", a->kind);
    ft__json_member_whole(meta, "rows", (int64_t)a->rows);
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        ft__json_member_number(meta, figures[i].key, figures[i].value, 4);
    ft__json_close(meta);
}

/* What the predictor was fitted from and how wrong it was on what it had not seen. */
static void describe(const fitting *f, const ft_accuracy_table *accuracy, ft_text *meta)
{
    ft__json_open(meta);
    ft__json_member_text(meta, "made_by", "foretell " FT_VERSION " fit");
    ft__json_member_list(meta, "excluded_gpus");
    for (size_t i = 0; i < f->options->exclude_count; i++) ft__json_add_text(meta, f->options->exclude_gpus[i]);
    ft__json_close_list(meta);
    ft__json_member_list(meta, "errors");
    for (size_t i = 0; i < accuracy->count; i++) describe_line(meta, &accuracy->lines[i]);
    ft__json_close_list(meta);
    ft__json_close(meta);
    ft__text_add(meta, "\n");
}

/* One forest behind those that are laid out. */
static uint32_t lay_trees(const ft_tree *trees, uint32_t count, ft_tree *all, size_t *laid)
{
    size_t first = *laid;
    if (count) memcpy(all + first, trees, count * sizeof *all);
    ft__trees_tidy(all + first, count);
    *laid += count;
    return (uint32_t)first;
}

/* Experts and trees of all cells, one after the other. */
static ft_status lay_out(fitting *f, const ft_accuracy_table *accuracy, void **file, size_t *length, ft_error *err)
{
    size_t experts = 0, trees = 0;
    for (size_t c = 0; c < f->cell_count; c++) {
        experts += 1 + 2 * (size_t)f->cells[c].gpu_count + 1;
        trees += f->cells[c].world.tree_count;
        for (int g = 0; g < f->cells[c].gpu_count; g++)
            trees += f->cells[c].gpus[g].expert.tree_count + f->cells[c].gpus[g].expert.sigma_count;
    }
    ft_expert *e = calloc(experts + 1, sizeof *e);
    ft_tree *t = calloc(trees + 1, sizeof *t);
    ft_text meta = {0};
    size_t ne = 0, nt = 0;
    ft_status s = e && t ? FT_OK : ft__fail(err, FT_E_MEMORY, "out of memory laying out the predictor");
    for (size_t c = 0; c < f->cell_count && s == FT_OK; c++) {
        ft_cell *cell = &f->cells[c];
        for (int g = 0; g < cell->gpu_count; g++) {
            ft_cell_gpu *cg = &cell->gpus[g];
            cg->expert.tree_first = lay_trees(cg->trees, cg->expert.tree_count, t, &nt);
            cg->expert.sigma_first = lay_trees(cg->sigma, cg->expert.sigma_count, t, &nt);
            e[ne++] = cg->expert;
            ft__baseline_linear(cell, cg, &e[ne++]);
        }
        cell->world.tree_first = lay_trees(cell->world_trees, cell->world.tree_count, t, &nt);
        e[ne++] = cell->world;
        ft__baseline_linear(cell, NULL, &e[ne++]);
    }
    if (s == FT_OK) {
        describe(f, accuracy, &meta);
        s = meta.failed ? ft__fail(err, FT_E_MEMORY, "out of memory describing the predictor")
                        : ft__predictor_write(e, ne, t, nt, meta.at, file, length, err);
    }
    ft__text_free(&meta);
    free(e);
    free(t);
    return s;
}

static ft_status collect(const fitting *f, ft_accuracy_table *out, ft_error *err)
{
    size_t n = 0, at = 0;
    for (size_t c = 0; c < f->cell_count; c++) n += f->cells[c].line_count + (size_t)f->cells[c].gpu_count;
    out->lines = malloc((n + 1) * sizeof *out->lines);
    if (!out->lines) return ft__no_memory(err);
    for (size_t c = 0; c < f->cell_count; c++) {
        for (int g = 0; g < f->cells[c].gpu_count; g++) out->lines[at++] = f->cells[c].gpus[g].known;
        for (size_t i = 0; i < f->cells[c].line_count; i++) out->lines[at++] = f->cells[c].lines[i];
    }
    out->count = at;
    return FT_OK;
}

ft_status ft__fit(const ft_fit_options *options, void **file, size_t *length, ft_accuracy_table *accuracy,
                  ft_error *err)
{
    fitting f = {.options = options};
    ft_row_filter filter = {.exclude_gpus = options->exclude_gpus,
                            .exclude_count = options->exclude_count,
                            .wanted = family_wanted,
                            .wanted_context = (void *)(uintptr_t)options,
                            .to_fit = true};
    memset(accuracy, 0, sizeof *accuracy);
    for (size_t i = 0; i < options->family_count; i++) FT_TRY(ft__cell_known(options->families[i], err));
    tell(&f, "reading", 0);
    ft_status s = ft__rows_load(options->data, options->data_count, &filter, &f.rows, err);
    if (s == FT_OK) s = deal(&f, err);
    if (s == FT_OK) s = run(&f, err);
    if (s == FT_OK) s = collect(&f, accuracy, err);
    if (s == FT_OK) s = lay_out(&f, accuracy, file, length, err);
    if (s != FT_OK) ft__accuracy_free(accuracy);
    for (size_t c = 0; c < f.cell_count; c++) ft__cell_free(&f.cells[c]);
    free(f.cells);
    free(f.jobs);
    free(f.order);
    ft__rows_free(&f.rows);
    tell(&f, "done", 1);
    return s;
}

/* The store of measured rows and the walk over a data folder.
 *
 * A data folder holds any of
 *   h200/       our own measurements: device time, inputs cold in L2 (also the form `calibrate` writes)
 *   neusight/   fp32 operators as one eager PyTorch call, the launch gap inside; operators inside whole models
 *   silicon/    kernel tables of serving engines: graph replays, warm L2 */
#include "fit/measurements.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "device/gpu.h"
#include "graph/operator.h"
#include "kernel/kernel.h"

uint32_t ft__group3(int64_t a, int64_t b, int64_t c)
{
    int64_t v[3] = {a, b, c};
    uint64_t h = ft__hash(v, sizeof v, 1);
    return (uint32_t)(h ^ (h >> 32));
}

bool ft__rows_gpu_wanted(const ft_row_filter *filter, const char *gpu)
{
    if (!filter) return true;
    for (size_t i = 0; i < filter->exclude_count; i++)
        if (!strcmp(filter->exclude_gpus[i], gpu)) return false;
    bool wanted = filter->only_count == 0;
    for (size_t i = 0; i < filter->only_count; i++) wanted = wanted || !strcmp(filter->only_gpus[i], gpu);
    return wanted;
}

static ft_status gpu_index(ft_rows *rows, const char *gpu, uint16_t *out, ft_error *err)
{
    for (int i = rows->gpu_count - 1; i >= 0; i--)
        if (!strcmp(rows->gpus[i].name, gpu)) return *out = (uint16_t)i, FT_OK;
    if (rows->gpu_count == FT_MAX_MEASURED_GPUS)
        return ft__fail(err, FT_E_RANGE, "more than %d GPUs in one data folder", FT_MAX_MEASURED_GPUS);
    FT_TRY(ft__catalogue_find(gpu, &rows->gpus[rows->gpu_count], err));
    *out = (uint16_t)rows->gpu_count++;
    return FT_OK;
}

ft_status ft__row_device(const char *gpu, ft_device *last, ft_error *err)
{
    if (!strcmp(last->name, gpu)) return FT_OK;
    ft_status s = ft__catalogue_find(gpu, last, err);
    if (s != FT_OK) last->name[0] = '\0';
    return s;
}

ft_status ft__row_size(const ft_table *table, const char *column, int64_t *out, ft_error *err)
{
    int at;
    FT_TRY(ft__table_column(table, column, &at, err));
    FT_TRY(ft__table_whole(table, at, out, err));
    if (*out >= 0 && *out <= INT64_C(1) << 40) return FT_OK;
    return ft__fail_at(err, FT_E_RANGE, ft__table_path(table), ft__table_line(table), 0,
                       "column \"%s\" must hold a whole number from 0 to 2^40, got %lld", column, (long long)*out);
}

ft_status ft__rows_add(ft_rows *rows, const ft_row_filter *filter, const char *gpu, ft_row *row, const ft_table *table,
                       ft_error *err)
{
    if (filter && filter->to_fit && row->excluded) return FT_OK;
    if (filter && filter->wanted && !filter->wanted(filter->wanted_context, &row->op)) return FT_OK;
    ft_error why;
    ft_status s = gpu_index(rows, gpu, &row->gpu, &why);
    if (s == FT_OK) s = ft__op_check(&row->op, &rows->gpus[row->gpu], &why);
    if (s != FT_OK) return ft__fail_at(err, s, ft__table_path(table), ft__table_line(table), 0, "%s", why.message);
    if (rows->count == rows->room) {
        size_t room = rows->room ? 2 * rows->room : 4096;
        ft_row *more = realloc(rows->at, room * sizeof *more);
        if (!more) return ft__fail(err, FT_E_MEMORY, "out of memory for %zu measured rows", room);
        rows->at = more;
        rows->room = room;
    }
    if (row->weight <= 0) row->weight = 1;
    rows->at[rows->count++] = *row;
    return FT_OK;
}

void ft__rows_free(ft_rows *rows)
{
    free(rows->at);
    memset(rows, 0, sizeof *rows);
}

static ft_status load_folder(const char *folder, const ft_row_filter *filter, ft_rows *out, ft_error *err)
{
    char path[4096];
    const char *own, *gpu;
    for (int i = 0; (own = ft__own_folder(i, &gpu)) != NULL; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, own);
        if (ft__file_exists(path) && ft__rows_gpu_wanted(filter, gpu))
            FT_TRY(ft__read_own(path, gpu, filter, out, err));
    }
    snprintf(path, sizeof path, "%s/neusight", folder);
    if (ft__file_exists(path)) {
        FT_TRY(ft__read_neusight(path, filter, out, err));
        FT_TRY(ft__read_in_models(path, filter, out, err));
    }
    snprintf(path, sizeof path, "%s/silicon", folder);
    if (ft__file_exists(path)) {
        FT_TRY(ft__read_silicon(path, filter, out, err));
        FT_TRY(ft__read_collective(path, filter, out, err));
    }
    return FT_OK;
}

/* The same measurement: the same time to the last digit of the same work. */
static bool same_row(const ft_row *a, const ft_row *b)
{
    const double x[] = {a->ms, ft__op_flops(&a->op), ft__op_bytes(&a->op)};
    const double y[] = {b->ms, ft__op_flops(&b->op), ft__op_bytes(&b->op)};
    bool same = a->gpu == b->gpu && a->group == b->group && a->op.kind == b->op.kind && a->op.dtype == b->op.dtype &&
                a->op.pass == b->op.pass && !strcmp(a->op.name, b->op.name);
    for (size_t i = 0; i < sizeof x / sizeof *x; i++) same = same && !(x[i] < y[i]) && !(x[i] > y[i]);
    return same;
}

static ft_status drop_repeats(ft_rows *rows, ft_error *err)
{
    size_t room = 1024, kept = 0;
    while (room < 2 * rows->count) room *= 2;
    uint32_t *slot = calloc(room, sizeof *slot); /* row number + 1 */
    if (!slot) return ft__fail(err, FT_E_MEMORY, "out of memory for %zu measured rows", rows->count);
    for (size_t i = 0; i < rows->count; i++) {
        const ft_row row = rows->at[i];
        bool repeated = false;
        if (row.source == FT_ROWS_OWN) {
            size_t at = (size_t)ft__hash(&row.ms, sizeof row.ms, row.group) & (room - 1);
            while (slot[at] && !repeated) {
                repeated = same_row(&rows->at[slot[at] - 1], &row);
                at = (at + 1) & (room - 1);
            }
            if (!repeated) slot[at] = (uint32_t)kept + 1;
        }
        if (!repeated) rows->at[kept++] = row;
    }
    rows->count = kept;
    free(slot);
    return FT_OK;
}

ft_status ft__rows_load(const char *const *folders, size_t count, const ft_row_filter *filter, ft_rows *out,
                        ft_error *err)
{
    memset(out, 0, sizeof *out);
    ft_status s = FT_OK;
    for (size_t i = 0; i < count && s == FT_OK; i++) s = load_folder(folders[i], filter, out, err);
    if (s == FT_OK && count > 1) s = drop_repeats(out, err);
    if (s == FT_OK && out->count == 0)
        s = ft__fail_at(err, FT_E_FILE, count ? folders[0] : "", 0, 0,
                        "no measurements here: expected a folder with h200/, neusight/ or silicon/ in it, "
                        "and at least one row of the families and GPUs asked for");
    if (s != FT_OK) ft__rows_free(out);
    return s;
}

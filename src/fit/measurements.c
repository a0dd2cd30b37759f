/* The store of measured rows and the walk over a data folder.
 *
 * A data folder holds any of
 *   h200/       our own measurements: device time, inputs cold in L2 (also the form `calibrate` writes)
 *   neusight/   fp32 operators as one eager PyTorch call, the launch gap inside
 *   silicon/    kernel tables of serving engines: graph replays, warm L2 */
#include "fit/measurements.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "device/gpu.h"

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

ft_status ft__rows_add(ft_rows *rows, const ft_row_filter *filter, const char *gpu, ft_row *row, ft_error *err)
{
    if (filter && filter->wanted && !filter->wanted(filter->wanted_context, &row->op)) return FT_OK;
    FT_TRY(gpu_index(rows, gpu, &row->gpu, err));
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

ft_status ft__rows_load(const char *folder, const ft_row_filter *filter, ft_rows *out, ft_error *err)
{
    static const struct {
        const char *name, *gpu;
    } own[] = {{"h200", "h200_sxm"}};
    char path[4096];
    memset(out, 0, sizeof *out);
    ft_status s = FT_OK;
    for (size_t i = 0; i < sizeof own / sizeof *own && s == FT_OK; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, own[i].name);
        if (ft__file_exists(path) && ft__rows_gpu_wanted(filter, own[i].gpu))
            s = ft__read_own(path, own[i].gpu, filter, out, err);
    }
    snprintf(path, sizeof path, "%s/neusight", folder);
    if (s == FT_OK && ft__file_exists(path)) s = ft__read_neusight(path, filter, out, err);
    snprintf(path, sizeof path, "%s/silicon", folder);
    if (s == FT_OK && ft__file_exists(path)) s = ft__read_silicon(path, filter, out, err);
    if (s == FT_OK && out->count == 0)
        s = ft__fail_at(err, FT_E_FILE, folder, 0, 0,
                        "no measurements here: expected a folder with h200/, neusight/ or silicon/ in it, "
                        "and at least one row of the families and GPUs asked for");
    if (s != FT_OK) ft__rows_free(out);
    return s;
}

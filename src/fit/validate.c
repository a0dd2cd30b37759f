/* Forecast against measurement, row by row. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/parallel.h"
#include "fit/cell.h"
#include "kernel/kernel.h"

typedef struct validation {
    const ft_predictor *predictor;
    const ft_validate_options *options;
    const ft_rows *rows;
    const uint32_t *index;
    size_t count;
    ft_forecast *forecast;
    ft_status *status;
} validation;

static bool wanted(void *context, const ft_op *op)
{
    const ft_validate_options *o = context;
    int variant;
    const ft_family *f = ft__family_of(op, &variant);
    for (size_t i = 0; i < o->family_count; i++)
        if (f && ft__cell_named(o->families[i], f, variant)) return true;
    return f && o->family_count == 0;
}

enum { BLOCK = 4096 };

static void forecast_block(void *context, size_t block)
{
    validation *v = context;
    for (size_t i = block * BLOCK; i < v->count && i < (block + 1) * BLOCK; i++) {
        const ft_row *row = &v->rows->at[v->index[i]];
        v->status[i] = ft__kernel_forecast(v->predictor, &v->rows->gpus[row->gpu], &row->op, v->options->quantile,
                                           &v->forecast[i], NULL);
    }
}

/* Lines by family, variant and GPU, plus one per family and variant over its GPUs. */
static ft_status tabulate(const validation *v, ft_accuracy_table *out, ft_error *err)
{
    typedef struct key {
        const ft_family *family;
        int variant, gpu;
        size_t left_out;
        double left_error; /* added up over those */
        ft_errors errors;
    } key;
    key *keys = NULL;
    size_t count = 0;
    ft_status s = FT_OK;
    for (size_t i = 0; i < v->count && s == FT_OK; i++) {
        const ft_row *row = &v->rows->at[v->index[i]];
        int variant;
        const ft_family *family = ft__family_of(&row->op, &variant);
        size_t k = 0;
        while (k < count && (keys[k].family != family || keys[k].variant != variant || keys[k].gpu != row->gpu)) k++;
        if (k == count) {
            key *more = realloc(keys, (count + 1) * sizeof *more);
            if (!more) {
                s = ft__no_memory(err);
                break;
            }
            keys = more;
            keys[count++] = (key){.family = family, .variant = variant, .gpu = row->gpu};
        }
        keys[k].left_out += row->excluded;
        const ft_forecast *f = &v->forecast[i];
        if (v->status[i] == FT_OK && row->excluded) keys[k].left_error += fabs(f->ms / row->ms - 1);
        if (v->status[i] == FT_OK &&
            !ft__errors_add(&keys[k].errors, log(row->ms / f->ms), log(f->ms / f->low_ms), log(f->high_ms / f->ms)))
            s = ft__no_memory(err);
    }
    out->lines = calloc(count + 1, sizeof *out->lines);
    if (!out->lines) s = ft__no_memory(err);
    for (size_t k = 0; k < count; k++) {
        if (s == FT_OK) {
            ft_accuracy *line = &out->lines[out->count++];
            strncpy(line->family, keys[k].family->name, sizeof line->family - 1);
            strncpy(line->variant, keys[k].family->variant_name(keys[k].variant), sizeof line->variant - 1);
            strncpy(line->gpu, v->rows->gpus[keys[k].gpu].name, sizeof line->gpu - 1);
            strcpy(line->kind, v->options->held_out_only ? "held-out" : "all");
            line->left_out = keys[k].left_out;
            line->left_out_mean = keys[k].left_out ? keys[k].left_error / (double)keys[k].left_out : 0;
            if (!ft__errors_summary(&keys[k].errors, line)) s = ft__no_memory(err);
        }
        ft__errors_free(&keys[k].errors);
    }
    free(keys);
    return s;
}

ft_status ft__validate(const ft_predictor *predictor, const ft_validate_options *options, ft_accuracy_table *accuracy,
                       ft_error *err)
{
    ft_rows rows;
    ft_row_filter filter = {.only_gpus = options->gpus,
                            .only_count = options->gpu_count,
                            .wanted = wanted,
                            .wanted_context = (void *)(uintptr_t)options};
    memset(accuracy, 0, sizeof *accuracy);
    if (options->progress) options->progress(options->progress_context, "reading", 0);
    FT_TRY(ft__rows_load(&options->data, 1, &filter, &rows, err));
    uint32_t *index = malloc((rows.count + 1) * sizeof *index);
    validation v = {.predictor = predictor, .options = options, .rows = &rows, .index = index};
    for (uint32_t i = 0; index && i < rows.count; i++)
        if (!options->held_out_only || rows.at[i].held_out) index[v.count++] = i;
    v.forecast = malloc((v.count + 1) * sizeof *v.forecast);
    v.status = malloc((v.count + 1) * sizeof *v.status);
    ft_status s = index && v.forecast && v.status
                      ? FT_OK
                      : ft__fail(err, FT_E_MEMORY, "out of memory for %zu rows", rows.count);
    if (s == FT_OK && v.count == 0) s = ft__fail_at(err, FT_E_FILE, options->data, 0, 0, "no measured row matches");
    if (s == FT_OK) {
        if (options->progress) options->progress(options->progress_context, "forecasting", 0.5);
        ft__parallel(options->threads, (v.count + BLOCK - 1) / BLOCK, forecast_block, &v);
        /* A row that cannot be forecast (scaling from a GPU nobody has) must not pass for one without error. */
        for (size_t i = 0; i < v.count && s == FT_OK; i++)
            if (v.status[i] != FT_OK)
                s = ft__kernel_forecast(predictor, &rows.gpus[rows.at[index[i]].gpu], &rows.at[index[i]].op,
                                        options->quantile, &v.forecast[i], err);
        for (size_t i = 0; i < v.count && options->each && s == FT_OK; i++) {
            const ft_row *row = &rows.at[index[i]];
            int variant;
            const ft_family *family = ft__family_of(&row->op, &variant);
            options->each(options->each_context, family->name, family->variant_name(variant), &rows.gpus[row->gpu],
                          &row->op, row->ms, &v.forecast[i]);
        }
        if (s == FT_OK) s = tabulate(&v, accuracy, err);
    }
    if (s != FT_OK) ft__accuracy_free(accuracy);
    if (options->progress) options->progress(options->progress_context, "done", 1);
    free(v.forecast);
    free(v.status);
    free(index);
    ft__rows_free(&rows);
    return s;
}

/* NeuSight's fp32 operators (sitar-lab/NeuSight, MIT): one eager call, the launch gap inside.
 *
 * The authors' train split is fitted; their test split is not, except for GPUs without a train split of that operator,
 * where every other test row (by hash) is; a train split whose rows are all left out of fits (exclude.c) is none. */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/table.h"
#include "fit/exclude.h"
#include "fit/measurements.h"
#include "graph/operator.h"

enum { LINEAR, BMM, ELEMENTWISE, SOFTMAX, LAYERNORM, CONV, FORMS };
static const char *const tables[FORMS] = {"neusight/linear",  "neusight/bmm",       "neusight/elementwise",
                                          "neusight/softmax", "neusight/layernorm", "neusight/conv"};

static ft_status read_op(ft_table *t, int form, ft_row *row, bool *take, ft_error *err)
{
    ft_op *op = &row->op;
    int64_t b = 1, h = 1;
    *take = true;
    switch (form) {
    case LINEAR:
    case BMM:
        ft__op_init(form == BMM ? "bmm" : "linear", op);
        if (form == BMM) FT_TRY(ft__row_size(t, "b", &op->u.gemm.b, err));
        FT_TRY(ft__row_size(t, "m", &op->u.gemm.m, err));
        FT_TRY(ft__row_size(t, "n_out", &op->u.gemm.n, err));
        FT_TRY(ft__row_size(t, "k_red", &op->u.gemm.k, err));
        row->group = ft__group3(op->u.gemm.n, op->u.gemm.k, form == BMM ? op->u.gemm.m : 0);
        break;
    case CONV: {
        int64_t size, filter;
        ft__op_init("conv2d", op);
        op->u.conv.nhwc = false;
        FT_TRY(ft__row_size(t, "b", &op->u.conv.n, err));
        FT_TRY(ft__row_size(t, "c_in", &op->u.conv.c, err));
        FT_TRY(ft__row_size(t, "c_out", &op->u.conv.k, err));
        FT_TRY(ft__row_size(t, "ksize", &filter, err));
        FT_TRY(ft__row_size(t, "in_size", &size, err));
        FT_TRY(ft__row_size(t, "stride", &op->u.conv.stride, err));
        FT_TRY(ft__row_size(t, "pad", &op->u.conv.pad, err));
        op->u.conv.h = op->u.conv.w = size;
        op->u.conv.r = op->u.conv.s = filter;
        row->group = ft__group3(op->u.conv.c, op->u.conv.k, size);
        break;
    }
    case ELEMENTWISE: {
        int at = ft__pointwise_op_find(ft__table_cell(t, ft__table_find(t, "op")));
        *take = at >= 0;
        if (!*take) return FT_OK;
        ft__op_init(ft__pointwise_ops[at].name, op);
        FT_TRY(ft__row_size(t, "b", &b, err));
        FT_TRY(ft__row_size(t, "h", &h, err));
        if (__builtin_mul_overflow(b, h, &op->u.elementwise.numel)) op->u.elementwise.numel = INT64_MAX;
        const char *inputs = ft__table_cell(t, ft__table_find(t, "n_inputs"));
        op->u.elementwise.inputs = inputs[0] == '2' ? 2 : 1;
        row->group = ft__group3(b, h, 0);
        break;
    }
    default:
        ft__op_init(form == SOFTMAX ? "softmax" : "layernorm", op);
        FT_TRY(ft__row_size(t, "b", &op->u.row.rows, err));
        FT_TRY(ft__row_size(t, "h", &op->u.row.cols, err));
        row->group = ft__group3(op->u.row.rows, op->u.row.cols, 0);
    }
    op->dtype = op->kv_dtype = FT_FP32;
    op->timing = FT_TIMING_OP;
    return FT_OK;
}

static ft_status read_file(const char *path, int form, const ft_row_filter *filter, ft_rows *rows, ft_error *err)
{
    ft_table *t;
    size_t first = rows->count;
    int gpu, split, latency, pass;
    bool has_train[FT_MAX_MEASURED_GPUS] = {false};
    FT_TRY(ft__table_open(path, &t, err));
    ft_status s = ft__table_column(t, "gpu", &gpu, err);
    if (s == FT_OK) s = ft__table_column(t, "split", &split, err);
    if (s == FT_OK) s = ft__table_column(t, "latency_ms", &latency, err);
    pass = ft__table_find(t, "pass");
    for (bool more = true; s == FT_OK;) {
        s = ft__table_next(t, &more, err);
        if (s != FT_OK || !more) break;
        const char *name = ft__their_gpu("neusight", ft__table_cell(t, gpu));
        if (!name || !ft__rows_gpu_wanted(filter, name)) continue;
        if (pass >= 0 && strcmp(ft__table_cell(t, pass), "fw")) continue;
        ft_row_use use = ft__row_use(t, tables[form], name);
        if (use == FT_ROW_UNREAD) continue;
        ft_row row;
        bool take = false;
        memset(&row, 0, sizeof row);
        s = read_op(t, form, &row, &take, err);
        if (s == FT_OK) s = ft__table_number(t, latency, &row.ms, err);
        if (s != FT_OK || !take || row.ms <= 0) continue;
        row.source = FT_ROWS_EAGER;
        row.older = form == SOFTMAX; /* of 2024: as it was before PyTorch 2.7 */
        row.excluded = use == FT_ROW_JUDGED;
        row.held_out = strcmp(ft__table_cell(t, split), "train") != 0;
        size_t before = rows->count;
        s = ft__rows_add(rows, filter, name, &row, t, err);
        if (s == FT_OK && rows->count > before && !row.held_out && !row.excluded)
            has_train[rows->at[before].gpu] = true;
    }
    for (size_t i = first; s == FT_OK && i < rows->count; i++) {
        ft_row *row = &rows->at[i];
        if (row->held_out && !has_train[row->gpu] && row->group % 2 == 0) row->held_out = false;
    }
    ft__table_close(t);
    return s;
}

ft_status ft__read_neusight(const char *folder, const ft_row_filter *filter, ft_rows *rows, ft_error *err)
{
    char path[4096];
    for (int form = 0; form < FORMS; form++) {
        snprintf(path, sizeof path, "%s%s.csv.gz", folder, strchr(tables[form], '/'));
        if (ft__file_exists(path)) FT_TRY(read_file(path, form, filter, rows, err));
    }
    return FT_OK;
}

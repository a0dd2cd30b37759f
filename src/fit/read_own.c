/* Our own measurements: one CSV per family, device time in ms, columns as data/measurements/README.md lists them.
 *
 * One row in ten, picked by a hash of its shape, is held out of every fit, so that `validate` can show errors on rows
 * the predictor never saw. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/table.h"
#include "fit/measurements.h"
#include "graph/convolution.h"
#include "graph/operator.h"

typedef struct reader {
    ft_table *table;
    const ft_row_filter *filter;
    ft_rows *rows;
    const char *gpu;
    ft_error *err;
} reader;

typedef ft_status (*row_reader)(reader *r, ft_row *row, bool *take);

static ft_status whole(reader *r, const char *column, int64_t *out)
{
    return ft__row_size(r->table, column, out, r->err);
}

static const char *cell(reader *r, const char *column)
{
    return ft__table_cell(r->table, ft__table_find(r->table, column));
}

static ft_status dtype(reader *r, ft_dtype *out)
{
    int at;
    FT_TRY(ft__table_column(r->table, "dtype", &at, r->err));
    if (ft_dtype_parse(ft__table_cell(r->table, at), out)) return FT_OK;
    return ft__fail_at(r->err, FT_E_NAME, ft__table_path(r->table), ft__table_line(r->table), 0, "unknown dtype \"%s\"",
                       ft__table_cell(r->table, at));
}

static void layout(reader *r, char out[4])
{
    const char *text = cell(r, "layout");
    if (strlen(text) == 2) memcpy(out, text, 3);
}

static bool held_out(const ft_row *row) { return row->group % 10 == 3; }

static ft_status gemm_row(reader *r, ft_row *row, bool *take)
{
    bool batched = ft__table_find(r->table, "b") >= 0;
    ft__op_init(batched ? "bmm" : "gemm", &row->op);
    FT_TRY(dtype(r, &row->op.dtype));
    if (batched) FT_TRY(whole(r, "b", &row->op.u.gemm.b));
    FT_TRY(whole(r, "m", &row->op.u.gemm.m));
    FT_TRY(whole(r, "n", &row->op.u.gemm.n));
    FT_TRY(whole(r, "k", &row->op.u.gemm.k));
    layout(r, row->op.u.gemm.layout);
    row->op.u.gemm.quantized = 1;
    row->group = ft__group3(row->op.u.gemm.n, row->op.u.gemm.k, batched ? row->op.u.gemm.m : 0);
    *take = true;
    return FT_OK;
}

static ft_pass pass_of(const char *text)
{
    return !strcmp(text, "bwd") ? FT_PASS_BWD : !strcmp(text, "fwd_bwd") ? FT_PASS_FWD_BWD : FT_PASS_FWD;
}

static ft_status attention_row(reader *r, ft_row *row, bool *take)
{
    int64_t causal = 0;
    ft__op_init("attention", &row->op);
    FT_TRY(dtype(r, &row->op.dtype));
    row->op.kv_dtype = row->op.dtype;
    row->op.pass = pass_of(cell(r, "pass"));
    row->op.engine = FT_ENGINE_BARE;
    FT_TRY(whole(r, "batch", &row->op.u.attention.batch));
    FT_TRY(whole(r, "heads", &row->op.u.attention.heads));
    FT_TRY(whole(r, "kv_heads", &row->op.u.attention.kv_heads));
    FT_TRY(whole(r, "q_len", &row->op.u.attention.q_len));
    FT_TRY(whole(r, "kv_len", &row->op.u.attention.kv_len));
    FT_TRY(whole(r, "head_dim", &row->op.u.attention.head_dim));
    FT_TRY(whole(r, "causal", &causal));
    row->op.u.attention.causal = causal != 0;
    row->group = ft__group3(row->op.u.attention.q_len, row->op.u.attention.heads, row->op.u.attention.batch);
    *take = true;
    return FT_OK;
}

/* Of few tokens: the kernel that a framework picks, without a mask. */
static ft_status attention_short_row(reader *r, ft_row *row, bool *take)
{
    FT_TRY(attention_row(r, row, take));
    *take = !strcmp(cell(r, "mask"), "none") && !strcmp(cell(r, "backend"), "picked");
    return FT_OK;
}

static ft_status elementwise_row(reader *r, ft_row *row, bool *take)
{
    int64_t inputs = 1;
    int at = ft__pointwise_op_find(cell(r, "op"));
    *take = at >= 0;
    if (!*take) return FT_OK;
    ft__op_init(ft__pointwise_ops[at].name, &row->op);
    FT_TRY(dtype(r, &row->op.dtype));
    FT_TRY(whole(r, "numel", &row->op.u.elementwise.numel));
    FT_TRY(whole(r, "inputs", &inputs));
    row->op.u.elementwise.inputs = (int)inputs;
    row->group = ft__group3(row->op.u.elementwise.numel, 0, 0);
    return FT_OK;
}

static ft_status row_row(reader *r, ft_row *row, bool *take)
{
    const char *name = cell(r, "op"), *back = strstr(name, "_backward");
    char base[64];
    size_t length = back ? (size_t)(back - name) : strlen(name);
    *take = false;
    if (length >= sizeof base) return FT_OK;
    memcpy(base, name, length);
    base[length] = 0;
    int at = ft__row_op_find(base);
    if (at < 0) return FT_OK;
    ft__op_init(ft__row_ops[at].name, &row->op);
    row->op.pass = back ? FT_PASS_BWD : FT_PASS_FWD;
    FT_TRY(dtype(r, &row->op.dtype));
    FT_TRY(whole(r, "rows", &row->op.u.row.rows));
    FT_TRY(whole(r, "cols", &row->op.u.row.cols));
    row->group = ft__group3(row->op.u.row.rows, row->op.u.row.cols, 0);
    *take = true;
    return FT_OK;
}

static ft_status conv_row(reader *r, ft_row *row, bool *take)
{
    ft__op_init("conv2d", &row->op);
    FT_TRY(dtype(r, &row->op.dtype));
    row->op.pass = pass_of(cell(r, "pass"));
    row->op.u.conv.nhwc = !strcmp(cell(r, "layout"), "nhwc");
    FT_TRY(whole(r, "n", &row->op.u.conv.n));
    FT_TRY(whole(r, "c", &row->op.u.conv.c));
    FT_TRY(whole(r, "h", &row->op.u.conv.h));
    FT_TRY(whole(r, "w", &row->op.u.conv.w));
    FT_TRY(whole(r, "k", &row->op.u.conv.k));
    FT_TRY(whole(r, "r", &row->op.u.conv.r));
    FT_TRY(whole(r, "s", &row->op.u.conv.s));
    FT_TRY(whole(r, "stride", &row->op.u.conv.stride));
    FT_TRY(whole(r, "pad", &row->op.u.conv.pad));
    row->group = ft__group3(row->op.u.conv.c * 4096 + row->op.u.conv.k, row->op.u.conv.h, row->op.u.conv.n);
    *take = true;
    return FT_OK;
}

/* "3x3", "128" or "5x60x104": as many sizes as the image has axes, one for all of them where one is said. */
static ft_status sizes(reader *r, const char *column, int axes, int64_t *out)
{
    const char *text = cell(r, column);
    int count = 0;
    for (const char *at = text; count < FT_CONV_AXES; at++) {
        char *end;
        long long value = strtoll(at, &end, 10);
        if (end == at || value < 0 || value > (1LL << 40)) break;
        out[count++] = value;
        at = end;
        if (*at != 'x') break;
    }
    if (count == 1)
        for (; count < axes; count++) out[count] = out[0];
    if (count == axes || (axes == 0 && count)) return FT_OK;
    return ft__fail_at(r->err, FT_E_RANGE, ft__table_path(r->table), ft__table_line(r->table), 0,
                       "%s: expected %d sizes with x between them, got \"%s\"", column, axes, text);
}

/* Convolutions of networks, each gradient alone or both: as the one that stands for them. Benchmark mode takes other
 * kernels, and filters of one channel wider than 16 bits have figures of their own. */
static ft_status convolution_row(reader *r, ft_row *row, bool *take)
{
    ft_convolution f = {.transposed = !strcmp(cell(r, "kind"), "transposed"), .space = 1};
    const char *pass = cell(r, "pass");
    int64_t benchmark;
    ft__op_init("conv2d", &row->op);
    FT_TRY(dtype(r, &row->op.dtype));
    FT_TRY(whole(r, "benchmark", &benchmark));
    FT_TRY(whole(r, "n", &f.n));
    FT_TRY(whole(r, "c", &f.c));
    FT_TRY(whole(r, "k", &f.k));
    FT_TRY(whole(r, "groups", &f.groups));
    for (const char *at = cell(r, "size"); *at; at++) f.space += *at == 'x';
    if (f.space > FT_CONV_AXES) f.space = FT_CONV_AXES;
    FT_TRY(sizes(r, "size", f.space, f.in));
    FT_TRY(sizes(r, "filter", f.space, f.filter));
    FT_TRY(sizes(r, "stride", f.space, f.stride));
    FT_TRY(sizes(r, "pad", f.space, f.pad));
    FT_TRY(sizes(r, "dilation", f.space, f.dilation));
    if (ft__convolution_result(&f) >= 0)
        return ft__fail_at(r->err, FT_E_RANGE, ft__table_path(r->table), ft__table_line(r->table), 0,
                           "a filter of %s does not fit %s", cell(r, "filter"), cell(r, "size"));
    ft_conv_shape s = ft__convolution_shape(&f);
    bool back = f.transposed, input = !strcmp(pass, "input") || !strcmp(pass, "bwd"),
         filter = !strcmp(pass, "filter") || !strcmp(pass, "bwd");
    row->op.pass = input || filter ? FT_PASS_BWD : FT_PASS_FWD;
    row->op.u.conv.parts = input || filter
                               ? (input ? back ? FT_CONV_RESULT : FT_CONV_INPUT : 0) | (filter ? FT_CONV_FILTER : 0)
                               : s.parts;
    if (row->op.u.conv.parts == (FT_CONV_INPUT | FT_CONV_FILTER)) row->op.u.conv.parts = 0;
    row->op.u.conv.nhwc = !strcmp(cell(r, "layout"), "nhwc");
    row->op.u.conv.n = s.n;
    row->op.u.conv.c = s.c;
    row->op.u.conv.h = s.h;
    row->op.u.conv.w = s.w;
    row->op.u.conv.k = s.k;
    row->op.u.conv.r = s.r;
    row->op.u.conv.s = s.s;
    row->op.u.conv.stride = s.stride;
    row->op.u.conv.pad = s.pad;
    row->op.u.conv.groups = s.groups;
    row->op.u.conv.dilated = s.dilated;
    row->op.u.conv.space = (signed char)(s.space == 2 ? 0 : s.space);
    row->op.u.conv.depth = (signed char)(s.depth > 1 ? s.depth : 0);
    row->group = ft__group3(f.c * 4096 + f.k, f.in[f.space - 1], f.n);
    bool single = f.groups > 1 && f.groups == f.c;
    *take = !benchmark && !(single && ft_dtype_bytes(row->op.dtype) > 2);
    return FT_OK;
}

/* Layers and products whose kernels the profiler timed and points of a calibration: to learn from, never to judge by,
 * so that those of shapes that are held out are not read at all. What they teach is which kernels the library takes;
 * constants are the other tables'. */
static bool teaches(const reader *r, const ft_row *row) { return r->filter && r->filter->to_fit && !held_out(row); }

static ft_status optimizer_row(reader *r, ft_row *row, bool *take)
{
    static const char *const known[] = {"adamw_fused", "adamw_foreach", "sgd_momentum_foreach", "sgd_momentum_fused",
                                        "sgd_foreach", "sgd_fused",     "clip_grad_norm",       "adamw",
                                        "sgd",         "sgd_momentum"};
    const char *name = cell(r, "op");
    *take = false;
    ft__op_init("optimizer", &row->op);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(known[i], name)) row->op.name = known[i], *take = true;
    if (!*take) return FT_OK;
    FT_TRY(dtype(r, &row->op.dtype));
    FT_TRY(whole(r, "params", &row->op.u.optimizer.params));
    FT_TRY(whole(r, "tensors", &row->op.u.optimizer.tensors));
    row->group = ft__group3(row->op.u.optimizer.params, row->op.u.optimizer.tensors, 0);
    return FT_OK;
}

static ft_status quantize_row(reader *r, ft_row *row, bool *take)
{
    static const struct {
        const char *theirs, *ours;
    } names[] = {{"cast", "quantize_cast"},
                 {"tensor_static", "quantize_static"},
                 {"tensor_dynamic", "quantize"},
                 {"row_dynamic", "quantize_rows"}};
    const char *name = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(names[i].theirs, cell(r, "op"))) name = names[i].ours;
    *take = name != NULL;
    if (!name) return FT_OK;
    ft__op_init(name, &row->op); /* to fp8; the column dtype is the operand's */
    FT_TRY(whole(r, "rows", &row->op.u.quantize.rows));
    FT_TRY(whole(r, "cols", &row->op.u.quantize.cols));
    row->group = ft__group3(row->op.u.quantize.rows, row->op.u.quantize.cols, 0);
    return FT_OK;
}

/* The grouped products and the activation between them, without gathering and combining. */
static ft_status moe_row(reader *r, ft_row *row, bool *take)
{
    ft__op_init("moe", &row->op);
    FT_TRY(dtype(r, &row->op.dtype));
    row->op.engine = FT_ENGINE_BARE;
    FT_TRY(whole(r, "tokens", &row->op.u.moe.tokens));
    FT_TRY(whole(r, "topk", &row->op.u.moe.topk));
    FT_TRY(whole(r, "experts", &row->op.u.moe.experts));
    FT_TRY(whole(r, "hidden", &row->op.u.moe.hidden));
    FT_TRY(whole(r, "inter", &row->op.u.moe.inter));
    row->group = ft__group3(row->op.u.moe.hidden, row->op.u.moe.inter, row->op.u.moe.experts * 64 + row->op.u.moe.topk);
    *take = true;
    return FT_OK;
}

static ft_status read_file(const char *folder, const char *name, row_reader each, ft_row_source source, reader *r)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (!ft__file_exists(path)) return FT_OK;
    FT_TRY(ft__table_open(path, &r->table, r->err));
    int ms;
    ft_status s = ft__table_column(r->table, "ms", &ms, r->err);
    for (bool more = true; s == FT_OK;) {
        s = ft__table_next(r->table, &more, r->err);
        if (s != FT_OK || !more) break;
        ft_row row;
        bool take = false;
        memset(&row, 0, sizeof row);
        s = each(r, &row, &take);
        if (s == FT_OK) s = ft__table_number(r->table, ms, &row.ms, r->err);
        if (s == FT_OK && take && row.ms <= 0)
            s = ft__fail_at(r->err, FT_E_RANGE, path, ft__table_line(r->table), 0, "a time of %g ms", row.ms);
        if (s != FT_OK || !take || (source != FT_ROWS_OWN && !teaches(r, &row))) continue;
        row.source = (uint8_t)source;
        row.held_out = held_out(&row);
        s = ft__rows_add(r->rows, r->filter, r->gpu, &row, r->table, r->err);
    }
    ft__table_close(r->table);
    return s;
}

ft_status ft__read_own(const char *folder, const char *gpu, const ft_row_filter *filter, ft_rows *rows, ft_error *err)
{
    static const struct {
        const char *file;
        row_reader each;
        ft_row_source source;
    } files[] = {{"gemm.csv.gz", gemm_row, FT_ROWS_OWN},
                 {"bmm.csv.gz", gemm_row, FT_ROWS_OWN},
                 {"attention.csv.gz", attention_row, FT_ROWS_OWN},
                 {"elementwise.csv.gz", elementwise_row, FT_ROWS_OWN},
                 {"rowwise.csv.gz", row_row, FT_ROWS_OWN},
                 {"conv.csv.gz", conv_row, FT_ROWS_OWN},
                 {"convolution.csv.gz", convolution_row, FT_ROWS_OWN},
                 {"layers.csv.gz", convolution_row, FT_ROWS_PROFILED},
                 {"optimizer.csv", optimizer_row, FT_ROWS_OWN},
                 {"quantize.csv.gz", quantize_row, FT_ROWS_OWN},
                 {"moe.csv.gz", moe_row, FT_ROWS_OWN},
                 {"calibrated_gemm.csv.gz", gemm_row, FT_ROWS_POINTS},
                 {"calibrated_bmm.csv.gz", gemm_row, FT_ROWS_POINTS},
                 {"profiled_gemm.csv.gz", gemm_row, FT_ROWS_DRAWN},
                 /* last: numbers of the others stay */
                 {"layers_wide.csv.gz", convolution_row, FT_ROWS_PROFILED},
                 {"layers_half.csv.gz", convolution_row, FT_ROWS_PROFILED},
                 {"layers_points.csv.gz", convolution_row, FT_ROWS_PROFILED},
                 {"rowwise_models.csv.gz", row_row, FT_ROWS_OWN},
                 {"attention_short.csv.gz", attention_short_row, FT_ROWS_OWN}};
    reader r = {.filter = filter, .rows = rows, .gpu = gpu, .err = err};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        FT_TRY(read_file(folder, files[i].file, files[i].each, files[i].source, &r));
    return FT_OK;
}

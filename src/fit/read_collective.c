/* nccl-tests and engines' own all-reduces inside one node (ai-dynamo/aiconfigurator, Apache-2.0).
 *
 * NCCL's rows are of several versions and two number formats, which an operator tells apart where they matter (old and
 * new versions; sums of one byte and of more). What still was measured several times is answered best, in relative
 * error, by the median of its times weighted by their inverses: all rows are kept, as intervals must cover them, but
 * those far from it count little in the fit. Of the engines' all-reduces those inside CUDA graphs are kept: eager rows
 * measure the host. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "comm/cluster.h"
#include "comm/nccl.h"
#include "device/gpu.h"
#include "fit/measurements.h"
#include "fit/rows_constants.h"
#include "graph/operator.h"
#include "kernel/collective.h"

static const char *gpu_name(const char *theirs)
{
    const char *ours = ft__their_gpu("silicon", theirs);
    return ours ? ours : theirs;
}

static ft_status links_of(const char *gpu, ft_device *last, ft_op *op, ft_error *err)
{
    ft_tier tier;
    FT_TRY(ft__row_device(gpu, last, err));
    ft__tier_inside(last, op->u.collective.ranks > 8 ? op->u.collective.ranks : 8, &tier);
    ft_engine engine = op->engine;
    ft__tier_op(&tier, (ft_collective)op->u.collective.op, op->u.collective.bytes, op->u.collective.ranks, op);
    op->engine = engine;
    return FT_OK;
}

/* Where custom all-reduce's rows belong; false: not kept. */
static bool engine_of(const ft_table *t, int source, ft_engine *out)
{
    const char *s = source >= 0 ? ft__table_cell(t, source) : "";
    if (strstr(s, "eager")) return false;
    *out = strstr(s, "vLLM") ? FT_ENGINE_VLLM : strstr(s, "SGLang") ? FT_ENGINE_SGLANG : FT_ENGINE_TRTLLM;
    return true;
}

static ft_status read_rows(ft_table *t, bool custom, const ft_row_filter *filter, ft_rows *rows, ft_error *err)
{
    int gpu, latency, dtype, name = -1, version = custom ? -1 : ft__table_find(t, "version");
    int source = ft__table_find(t, "kernel_source");
    ft_device last = {0};
    FT_TRY(ft__table_column(t, "gpu", &gpu, err));
    FT_TRY(ft__table_column(t, "latency_ms", &latency, err));
    FT_TRY(ft__table_column(t, "dtype", &dtype, err));
    if (!custom) FT_TRY(ft__table_column(t, "op_name", &name, err));
    for (;;) {
        bool more;
        FT_TRY(ft__table_next(t, &more, err));
        if (!more) return FT_OK;
        ft_row row;
        memset(&row, 0, sizeof row);
        ft_engine engine = FT_ENGINE_ANY;
        if (custom && !engine_of(t, source, &engine)) continue;
        const char *on = gpu_name(ft__table_cell(t, gpu)), *called = custom ? "all_reduce" : ft__table_cell(t, name);
        if (!ft__rows_gpu_wanted(filter, on)) continue;
        int kind = ft__collective_find(strcmp(called, "alltoall") ? called : "all_to_all");
        if (kind < 0) continue;
        ft_op *op = &row.op;
        ft__op_init(ft__collective_names[kind], op);
        op->engine = engine;
        int64_t elements;
        FT_TRY(ft__row_size(t, "num_gpus", &op->u.collective.ranks, err));
        FT_TRY(ft__row_size(t, "message_elems", &elements, err));
        bool wide = strcmp(ft__table_cell(t, dtype), "int8") != 0;
        op->u.collective.bytes = (double)elements * (wide ? 2 : 1);
        FT_TRY(links_of(on, &last, op, err));
        op->dtype = wide ? FT_BF16 : FT_INT8;
        if (version >= 0) ft__nccl_parse(ft__table_cell(t, version), &op->u.collective.nccl);
        FT_TRY(ft__table_number(t, latency, &row.ms, err));
        if (row.ms <= 0 || elements == 0 || op->u.collective.ranks < 2) continue;
        row.source = FT_ROWS_ENGINE;
        row.group = ft__group3((int64_t)op->u.collective.bytes, 0, 0);
        FT_TRY(ft__rows_add(rows, filter, on, &row, t, err));
    }
}

/* -- repeated requests ------------------------------------------------------------------------- */

/* What tells two requests of the same size apart. */
static int sort_of(const ft_op *op) { return 2 * ft__collective_old(op) + ft__collective_eight_bit(op); }

static int by_request(const void *a, const void *b)
{
    const ft_row *x = *(const ft_row *const *)a, *y = *(const ft_row *const *)b;
    int p_sort = sort_of(&x->op), q_sort = sort_of(&y->op);
    if (p_sort != q_sort) return p_sort < q_sort ? -1 : 1;
    if (x->gpu != y->gpu) return x->gpu < y->gpu ? -1 : 1;
    if (x->op.engine != y->op.engine) return x->op.engine < y->op.engine ? -1 : 1;
    if (x->op.u.collective.op != y->op.u.collective.op) return x->op.u.collective.op < y->op.u.collective.op ? -1 : 1;
    if (x->op.u.collective.ranks != y->op.u.collective.ranks)
        return x->op.u.collective.ranks < y->op.u.collective.ranks ? -1 : 1;
    double p = x->op.u.collective.bytes, q = y->op.u.collective.bytes;
    if (p < q || p > q) return p < q ? -1 : 1;
    return (x->ms > y->ms) - (x->ms < y->ms);
}

static bool same_request(const ft_row *x, const ft_row *y)
{
    return x->gpu == y->gpu && x->op.engine == y->op.engine && sort_of(&x->op) == sort_of(&y->op) &&
           x->op.u.collective.op == y->op.u.collective.op && x->op.u.collective.ranks == y->op.u.collective.ranks &&
           !(x->op.u.collective.bytes < y->op.u.collective.bytes) &&
           !(x->op.u.collective.bytes > y->op.u.collective.bytes);
}

static ft_status weigh(ft_rows *rows, size_t first, ft_error *err)
{
    size_t count = rows->count - first;
    ft_row **at = malloc((count + 1) * sizeof *at);
    if (!at) return ft__fail(err, FT_E_MEMORY, "out of memory for %zu measured rows", count);
    for (size_t i = 0; i < count; i++) at[i] = &rows->at[first + i];
    qsort(at, count, sizeof *at, by_request);
    for (size_t i = 0, end; i < count; i = end) {
        double all = 0, below = 0, middle = at[i]->ms;
        for (end = i; end < count && same_request(at[i], at[end]); end++) all += 1 / at[end]->ms;
        for (size_t k = i; k < end && 2 * below < all; k++) middle = at[k]->ms, below += 1 / at[k]->ms;
        for (size_t k = i; k < end; k++) {
            double off = log(at[k]->ms / middle) / FT_K_ROWS_REPEATS_AGREE;
            at[k]->weight = (float)(1 / (1 + off * off));
        }
    }
    free(at);
    return FT_OK;
}

ft_status ft__read_collective(const char *folder, const ft_row_filter *filter, ft_rows *rows, ft_error *err)
{
    size_t first = rows->count;
    static const char *const files[] = {"nccl.csv.gz", "custom_allreduce.csv.gz"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[4400];
        ft_table *t;
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        if (!ft__file_exists(path)) continue;
        FT_TRY(ft__table_open(path, &t, err));
        ft_status s = read_rows(t, i == 1, filter, rows, err);
        ft__table_close(t);
        FT_TRY(s);
    }
    return rows->count > first ? weigh(rows, first, err) : FT_OK;
}

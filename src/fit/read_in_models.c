/* NeuSight's operators inside whole fp32 models (labels_ops.csv.gz): one layer of each model, every operator between
 * two events. They are taken as device time, less the 10 us by which an event pair comes late; fits take them only from
 * 0.15 ms up (products 0.6), where that hardly counts. Where a model took longer than its operators together, up to
 * 15 %, its products are stretched: power and heat act on the whole.
 *
 * Why beside the tables of single operators: boards of 70 W run them at other clocks than their own sweeps (T4 1.3, L4
 * 1.3 to 1.9 times as fast, P4 1.4 to 1.8 times as slow), and the sweeps hold hardly any of the large regular sizes
 * that models are made of. Left out of fits: inference whose operators took 6 % longer together than the model did
 * (clocks that had yet to rise; in training, of small batches, it is launches that the model hides). Not read:
 * operators that are several kernels. A product whose operands are copied first loses the time of such a copy in the
 * same model, twice that where the copy also transposes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/table.h"
#include "fit/exclude_constants.h"
#include "fit/measurements.h"
#include "fit/rows_constants.h"
#include "graph/operator.h"

enum { MAX_MODELS = 256, MAX_PENDING = 64, KEY = 160 };
static const double late_ms = FT_K_ROWS_LATE_MS;

typedef struct columns {
    int gpu, name, shapes, contiguous, output, forward, backward, kernels;
} columns;

typedef struct pending {
    ft_row row;
    double copies; /* in times of a plain copy of the same tensor */
    char gpu[48];
} pending;

typedef struct reading {
    ft_table *t;
    columns at;
    const ft_row_filter *filter;
    ft_rows *rows;
    struct {
        uint64_t key;
        double stretch;
        bool cold; /* left out of fits */
    } models[MAX_MODELS];
    int model_count;
    double stretch; /* of the model at hand */
    bool cold;
    pending held[MAX_PENDING];
    int held_count;
    double copy_ms; /* of this model's heads, 0: none seen */
} reading;

static uint64_t model_key(const ft_table *t)
{
    static const char *const parts[] = {"gpu", "model", "mode", "seq", "batch", "options"};
    char key[KEY] = "";
    size_t used = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts && used < sizeof key; i++)
        used += (size_t)snprintf(key + used, sizeof key - used, "%s|", ft__table_cell(t, ft__table_find(t, parts[i])));
    return ft__hash(key, strlen(key), 1);
}

static ft_status read_models(const char *path, reading *r, ft_error *err)
{
    ft_table *t;
    if (!ft__file_exists(path)) return FT_OK;
    FT_TRY(ft__table_open(path, &t, err));
    ft_status s = FT_OK;
    for (bool more = true; s == FT_OK;) {
        s = ft__table_next(t, &more, err);
        if (s != FT_OK || !more) break;
        double sum = strtod(ft__table_cell(t, ft__table_find(t, "opsum_fw_over_fw")), NULL);
        bool training = !strcmp(ft__table_cell(t, ft__table_find(t, "mode")), "train");
        if (r->model_count == MAX_MODELS) break;
        r->models[r->model_count].key = model_key(t);
        r->models[r->model_count].cold = sum > FT_K_EXCLUDE_IN_MODEL_COLD && !training;
        r->models[r->model_count++].stretch = sum > FT_K_ROWS_STRETCH_FROM && sum < 1 ? 1 / sum : 1;
    }
    ft__table_close(t);
    return s;
}

/* Up to `most` whole numbers that follow `text`. */
static int sizes_in(const char *text, int64_t *out, int most)
{
    int n = 0;
    while (*text && n < most) {
        if (*text >= '0' && *text <= '9') {
            char *end;
            long long v = strtoll(text, &end, 10);
            out[n++] = v > INT64_C(1) << 40 ? INT64_C(1) << 40 : v;
            text = end;
        } else {
            text++;
        }
    }
    return n;
}

/* "[['Linear', (8192, 1024, 4096)]]": the name and the sizes; false unless it is one kernel. */
static bool one_kernel(const char *text, char name[24], int64_t size[4], int *count)
{
    const char *from = strstr(text, "['"), *to = from ? strchr(from + 2, '\'') : NULL;
    if (!to || strstr(to, "['") || to - from - 2 > 23) return false;
    memcpy(name, from + 2, (size_t)(to - from - 2));
    name[to - from - 2] = 0;
    *count = sizes_in(to, size, 4);
    return true;
}

/* The product of the whole numbers up to the first closing bracket. */
static double product_of(const char *shape)
{
    double n = 1;
    while (*shape && *shape != ']' && *shape != ')') {
        if (*shape < '0' || *shape > '9') {
            shape++;
            continue;
        }
        char *after;
        n *= (double)strtoll(shape, &after, 10);
        shape = after;
    }
    return n;
}

/* Elements of the operands of "[[16, 512], [1, 512]]"; how many there are. */
static int operands(const char *shapes, double out[2])
{
    int n = 0;
    for (const char *p = shapes; (p = strchr(p, '[')) != NULL; p++) {
        if (p[1] == '[') continue;
        if (n < 2) out[n] = product_of(p);
        n++;
    }
    return n;
}

static ft_status keep(reading *r, const char *gpu, ft_row *row, double ms, ft_error *err)
{
    bool product = row->op.kind == FT_OP_GEMM;
    double least = product ? FT_K_EXCLUDE_IN_MODEL_PRODUCT_MS : FT_K_EXCLUDE_IN_MODEL_MS;
    row->ms = ms * (product ? r->stretch : 1);
    row->excluded = row->excluded || r->cold || ms < least - late_ms;
    row->source = FT_ROWS_MODEL;
    row->older = row->op.kind == FT_OP_ROW; /* as the tables of single operators */
    row->op.dtype = row->op.kv_dtype = FT_FP32;
    row->op.timing = FT_TIMING_DEVICE;
    return ms > late_ms ? ft__rows_add(r->rows, r->filter, gpu, row, r->t, err) : FT_OK;
}

static ft_row product_row(const char *op, const int64_t *bmnk, const char *layout)
{
    ft_row row;
    memset(&row, 0, sizeof row);
    ft__op_init(op, &row.op);
    row.op.u.gemm.b = bmnk[0], row.op.u.gemm.m = bmnk[1], row.op.u.gemm.n = bmnk[2], row.op.u.gemm.k = bmnk[3];
    memcpy(row.op.u.gemm.layout, layout, 3);
    row.group = ft__group3(bmnk[2], bmnk[3], bmnk[0] > 1 ? bmnk[1] : 0);
    return row;
}

/* A linear and, in training, its two gradients: as many flops each, so that each gets half of their time. */
static ft_status linear(reading *r, const char *gpu, const int64_t *mkn, double forward, double backward, ft_error *err)
{
    int64_t m = mkn[0], k = mkn[1], n = mkn[2];
    const char *name = ft__table_cell(r->t, r->at.name);
    bool across = !strncmp(name, "addmm", 5); /* GPT-2's weights are stored [in, out] */
    ft_row row = product_row("linear", (int64_t[]){1, m, n, k}, across ? "nn" : "nt");
    row.op.u.gemm.bias = strcmp(name, "lm_head") != 0;
    FT_TRY(keep(r, gpu, &row, forward - late_ms, err));
    double each = (backward - late_ms) / 2;
    bool brief = backward < 2 * FT_K_EXCLUDE_IN_MODEL_PRODUCT_MS;
    row = product_row("gemm", (int64_t[]){1, m, k, n}, across ? "nt" : "nn");
    row.excluded = brief;
    FT_TRY(keep(r, gpu, &row, each, err));
    row = product_row("gemm", (int64_t[]){1, across ? k : n, across ? n : k, m}, "tn");
    row.excluded = brief;
    return keep(r, gpu, &row, each, err);
}

static ft_status batched(reading *r, const char *gpu, const int64_t *bmkn, double forward, ft_error *err)
{
    const char *contiguous = ft__table_cell(r->t, r->at.contiguous);
    bool matmul = !strncmp(ft__table_cell(r->t, r->at.name), "matmul", 6), scores = !strncmp(contiguous, "[False", 6);
    bool turned = !matmul && strstr(contiguous, "False");
    ft_row row = product_row("bmm", (int64_t[]){bmkn[0], bmkn[1], bmkn[3], bmkn[2]}, turned ? "nt" : "nn");
    if (!matmul) return keep(r, gpu, &row, forward - late_ms, err);
    if (r->held_count == MAX_PENDING || strlen(gpu) >= sizeof r->held->gpu) return FT_OK;
    pending *p = &r->held[r->held_count++];
    p->row = row;
    p->row.ms = forward;
    p->copies = scores ? 3 : 1; /* queries and, transposed, keys; values */
    strcpy(p->gpu, gpu);
    return FT_OK;
}

static ft_status end_model(reading *r, ft_error *err)
{
    for (int i = 0; i < r->held_count; i++) {
        pending *p = &r->held[i];
        if (r->copy_ms <= 0) break;
        FT_TRY(keep(r, p->gpu, &p->row, p->row.ms - late_ms - p->copies * (r->copy_ms - late_ms), err));
    }
    r->held_count = 0;
    r->copy_ms = 0;
    return FT_OK;
}

/* What every element goes through alone: contiguous operands, or one that is spread over the other. */
static ft_status pointwise(reading *r, const char *gpu, const char *name, double forward, ft_error *err)
{
    ft_row row;
    double in[2] = {0, 0}, numel = product_of(ft__table_cell(r->t, r->at.output));
    int count = operands(ft__table_cell(r->t, r->at.shapes), in), at = ft__pointwise_op_find(name);
    const char *contiguous = ft__table_cell(r->t, r->at.contiguous);
    if (at < 0 || count < 1 || count > 2 || strstr(contiguous, "False") || in[0] < numel || !(numel < 1e12))
        return FT_OK;
    bool spread = count == 2 && in[1] < numel;
    if (spread && (in[1] < 2 || strcmp(name, "add"))) return FT_OK;
    memset(&row, 0, sizeof row);
    ft__op_init(name, &row.op);
    row.op.u.elementwise.numel = (int64_t)numel;
    row.op.u.elementwise.inputs = count;
    if (spread) {
        row.op.u.elementwise.pattern = FT_PATTERN_SPREAD;
        row.op.u.elementwise.bytes = 4 * (2 * numel + in[1]);
    }
    row.group = ft__group3((int64_t)numel, (int64_t)in[1], 0);
    return keep(r, gpu, &row, forward - late_ms, err);
}

static ft_status strided_copy(reading *r, const char *gpu, double forward, ft_error *err)
{
    ft_row row;
    double numel = product_of(ft__table_cell(r->t, r->at.output));
    if (strncmp(ft__table_cell(r->t, r->at.contiguous), "[False", 6) || !(numel < 1e12)) return FT_OK;
    if (forward > 3 * late_ms) r->copy_ms = forward;
    memset(&row, 0, sizeof row);
    ft__op_init("copy", &row.op);
    row.op.u.elementwise.numel = (int64_t)numel;
    row.op.u.elementwise.pattern = FT_PATTERN_STRIDED;
    row.group = ft__group3((int64_t)numel, 0, 1);
    return keep(r, gpu, &row, forward - late_ms, err);
}

static ft_status rowwise(reading *r, const char *gpu, const char *name, const int64_t *size, double forward,
                         double backward, ft_error *err)
{
    ft_row row;
    memset(&row, 0, sizeof row);
    ft__op_init(name, &row.op);
    row.op.u.row.rows = size[0];
    row.op.u.row.cols = size[1];
    row.group = ft__group3(size[0], size[1], 0);
    FT_TRY(keep(r, gpu, &row, forward - late_ms, err));
    row.op.pass = FT_PASS_BWD;
    row.excluded = false;
    return keep(r, gpu, &row, backward - late_ms, err);
}

static ft_status read_row(reading *r, const char *gpu, ft_error *err)
{
    char kernel[24];
    int64_t size[4];
    int count = 0;
    double forward, backward = 0;
    FT_TRY(ft__table_number(r->t, r->at.forward, &forward, err));
    if (*ft__table_cell(r->t, r->at.backward)) FT_TRY(ft__table_number(r->t, r->at.backward, &backward, err));
    if (!strncmp(ft__table_cell(r->t, r->at.name), "contiguous", 10)) return strided_copy(r, gpu, forward, err);
    if (!one_kernel(ft__table_cell(r->t, r->at.kernels), kernel, size, &count)) return FT_OK;
    if (!strcmp(kernel, "Linear") && count == 3) return linear(r, gpu, size, forward, backward, err);
    if (!strcmp(kernel, "BMM") && count == 4) return batched(r, gpu, size, forward, err);
    if (!strcmp(kernel, "VECsoftmax") && count == 2) return rowwise(r, gpu, "softmax", size, forward, backward, err);
    if (!strcmp(kernel, "VECln") && count == 2) return rowwise(r, gpu, "layernorm", size, forward, backward, err);
    return strncmp(kernel, "VEC", 3) ? FT_OK : pointwise(r, gpu, kernel + 3, forward, err);
}

static ft_status read_rows(reading *r, ft_error *err)
{
    const struct {
        const char *name;
        int *at;
    } wanted[] = {{"gpu", &r->at.gpu},
                  {"Name", &r->at.name},
                  {"input_shapes", &r->at.shapes},
                  {"input_contiguous", &r->at.contiguous},
                  {"output_shape", &r->at.output},
                  {"fw_ms", &r->at.forward},
                  {"bw_ms", &r->at.backward},
                  {"FwOps", &r->at.kernels}};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        FT_TRY(ft__table_column(r->t, wanted[i].name, wanted[i].at, err));
    uint64_t model = 0;
    for (;;) {
        bool more;
        FT_TRY(ft__table_next(r->t, &more, err));
        uint64_t key = more ? model_key(r->t) : 0;
        if (key != model || !more) FT_TRY(end_model(r, err));
        if (!more) return FT_OK;
        if (key != model) r->stretch = 1, r->cold = false;
        for (int i = 0; i < r->model_count && key != model; i++)
            if (r->models[i].key == key) r->stretch = r->models[i].stretch, r->cold = r->models[i].cold;
        model = key;
        const char *gpu = ft__their_gpu("neusight", ft__table_cell(r->t, r->at.gpu));
        if (gpu && ft__rows_gpu_wanted(r->filter, gpu)) FT_TRY(read_row(r, gpu, err));
    }
}

ft_status ft__read_in_models(const char *folder, const ft_row_filter *filter, ft_rows *rows, ft_error *err)
{
    char path[4400];
    snprintf(path, sizeof path, "%s/labels_ops.csv.gz", folder);
    if (!ft__file_exists(path)) return FT_OK;
    reading *r = calloc(1, sizeof *r);
    if (!r) return ft__no_memory(err);
    r->filter = filter;
    r->rows = rows;
    ft_status s = ft__table_open(path, &r->t, err);
    if (s == FT_OK) {
        snprintf(path, sizeof path, "%s/labels.csv", folder);
        s = read_models(path, r, err);
        if (s == FT_OK) s = read_rows(r, err);
        ft__table_close(r->t);
    }
    free(r);
    return s;
}

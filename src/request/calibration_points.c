/* calibration_points.c: reading measured points.
 *
 * A line is an object: a header ("foretell_calibration"), a point ("request" and "ms") or a remark ("note" alone). What
 * is wrong in one is said with file, line and key; only the very last line may be broken, since measuring may have been
 * interrupted while it was written. */
#include "request/calibration_points.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/json_write.h"
#include "base/unzip.h"
#include "device/gpu.h"
#include "graph/operator.h"
#include "kernel/kernel.h"
#include "request/collective.h"
#include "request/keys.h"
#include "request/request.h"

enum { MOST_BYTES = 256 << 20, MOST_MACHINE = 16 << 10 };
#define COUNT(array) (sizeof(array) / sizeof *(array))

typedef struct reader {
    const char *path;
    int line;
    double minutes;
    json_t *gpu; /* the header's value; NULL: no header yet */
    json_t *machine;
    ft_points *out;
    double last_s;
} reader;

void ft__points_free(ft_points *p)
{
    ft__rows_free(&p->rows);
    ft__arena_free(p->arena);
    ft__text_free(&p->machine);
    ft__text_free(&p->warnings);
    memset(p, 0, sizeof *p);
}

/* An error of a request's reader, at this line of the file; its key path moves into the message. */
static ft_status at_line(const reader *r, const ft_error *why, const char *inside, ft_error *err)
{
    return ft__fail_at(err, why->code, r->path, r->line, 0, "%s%s%s%.480s", inside, why->where[0] ? why->where : "",
                       inside[0] || why->where[0] ? ": " : "", why->message);
}

/* -- the header -------------------------------------------------------------------------------- */

static ft_status read_gpu(reader *r, const json_t *gpu, ft_error *err)
{
    ft_rows *rows = &r->out->rows;
    ft_error why = {0};
    const char *name = json_string_value(gpu);
    if (!name && !json_is_object(gpu))
        return ft__fail_at(err, FT_E_MISSING, r->path, r->line, 0,
                           "the header needs \"gpu\": a catalogue name (h100_sxm) or a spec object with a \"name\"");
    ft_status s = name ? ft__catalogue_find(name, &rows->gpus[0], &why)
                       : ft__device_read(gpu, "gpu", &rows->gpus[0], &r->out->warnings, &why);
    if (s == FT_OK && !name && !json_is_string(json_object_get(gpu, "name")))
        return ft__fail_at(err, FT_E_MISSING, r->path, r->line, 0, "gpu: a spec object needs a \"name\" here");
    if (s != FT_OK) return at_line(r, &why, "", err);
    if (strlen(rows->gpus[0].name) >= sizeof((ft_expert *)0)->gpu)
        return ft__fail_at(err, FT_E_RANGE, r->path, r->line, 0, "gpu: a name has at most %zu characters",
                           sizeof((ft_expert *)0)->gpu - 1);
    rows->gpu_count = 1;
    return FT_OK;
}

static ft_status read_header(reader *r, const json_t *line, ft_error *err)
{
    int64_t version = 0;
    ft_error why = {0};
    const json_t *gpu = json_object_get(line, "gpu");
    if (ft__json_whole(line, "foretell_calibration", FT_REQUIRED, 0, 1000, &version, "", &why) != FT_OK)
        return at_line(r, &why, "", err);
    if (version != 1)
        return ft__fail_at(err, FT_E_FORMAT, r->path, r->line, 0,
                           "measurements of format %d, this program reads format 1: use the program that wrote them",
                           (int)version);
    if (!r->gpu) {
        FT_TRY(read_gpu(r, gpu, err));
        r->gpu = json_incref((json_t *)(uintptr_t)gpu);
    } else if (!json_equal(r->gpu, gpu)) {
        return ft__fail_at(err, FT_E_NAME, r->path, r->line, 0,
                           "a different GPU from the first header's: a calibration covers one GPU, keep a file "
                           "for each");
    }
    json_decref(r->machine); /* what a resumed run says replaces what the first one said */
    r->machine = json_copy((json_t *)(uintptr_t)line);
    if (!r->machine) return ft__no_memory(err);
    json_object_del(r->machine, "foretell_calibration");
    json_object_del(r->machine, "gpu");
    return FT_OK;
}

static ft_status keep_machine(reader *r, ft_error *err)
{
    ft_text text = {0};
    ft__json_add_sorted(&text, r->machine);
    if (text.failed) {
        ft__text_free(&text);
        return ft__no_memory(err);
    }
    bool small = text.length <= MOST_MACHINE;
    if (!small)
        ft__text_addf(&r->out->warnings, "the header describes the machine in more than %d KiB: not kept\n",
                      MOST_MACHINE >> 10);
    ft__text_add(&r->out->machine, small ? text.at : "{}");
    ft__text_free(&text);
    return FT_OK;
}

/* -- points ------------------------------------------------------------------------------------ */

static ft_status this_gpu(void *source, const json_t *gpu, const ft_device **out, ft_error *err)
{
    (void)gpu, (void)err;
    *out = &((reader *)source)->out->rows.gpus[0];
    return FT_OK;
}

/* Which points are alike enough to be left out together in cross-validation: those of one weight matrix, one sequence,
 * one image, as the tables of `fit` have it. */
static uint32_t group_of(const ft_op *op)
{
    switch (op->kind) {
    case FT_OP_GEMM: return ft__group3(op->u.gemm.n, op->u.gemm.k, op->u.gemm.b > 1 ? op->u.gemm.m : 0);
    case FT_OP_ATTENTION: return ft__group3(op->u.attention.q_len, op->u.attention.heads, op->u.attention.batch);
    case FT_OP_MLA: return ft__group3(op->u.mla.q_len, op->u.mla.heads, op->u.mla.batch);
    case FT_OP_ELEMENTWISE: return ft__group3(op->u.elementwise.numel, 0, 0);
    case FT_OP_ROW: return ft__group3(op->u.row.rows, op->u.row.cols, 0);
    case FT_OP_CONV2D: return ft__group3(op->u.conv.c * 4096 + op->u.conv.k, op->u.conv.h, op->u.conv.n);
    case FT_OP_MOE: return ft__group3(op->u.moe.hidden, op->u.moe.inter, op->u.moe.experts * 64 + op->u.moe.topk);
    case FT_OP_OPTIMIZER: return ft__group3(op->u.optimizer.params, op->u.optimizer.tensors, 0);
    case FT_OP_QUANTIZE: return ft__group3(op->u.quantize.rows, op->u.quantize.cols, 0);
    case FT_OP_COLLECTIVE: return ft__group3((int64_t)op->u.collective.bytes, op->u.collective.ranks, 0);
    default: return 0;
    }
}

static ft_status read_collective(reader *r, const json_t *request, ft_op *op, ft_error *err)
{
    ft_collective_request c;
    FT_TRY(ft__collective_request_read(request, this_gpu, r, &c, err));
    if (c.group.stride != 1 || c.cluster.tiers < 1 || c.group.size > c.cluster.tier[0].gpus)
        return ft__fail_at(err, FT_E_UNSUPPORTED, "ranks", 0, 0,
                           "only exchanges inside one node can be calibrated: with all ranks in one NVLink, xGMI or "
                           "PCIe domain");
    ft__tier_op(&c.cluster.tier[0], c.op, c.bytes, c.group.size, op);
    if (c.group.narrow > 0) op->dtype = FT_INT8;
    if (c.op == FT_COLLECTIVE_ALL_REDUCE && c.group.engine >= FT_ENGINE_TRTLLM) op->engine = c.group.engine;
    return ft__op_check(op, c.device, err);
}

static ft_status read_kernel(reader *r, json_t *request, ft_op *op, ft_error *err)
{
    ft_request k;
    if (!ft__key_get(request, FT_KEY_ID_TASK) && !ft__key_set(request, FT_KEY_ID_TASK, json_string("kernel")))
        return ft__no_memory(err);
    FT_TRY(ft__request_read(request, this_gpu, r, &k, err));
    *op = k.op;
    bool parts = op->kind == FT_OP_GEMM || op->kind == FT_OP_ROW || op->kind == FT_OP_CONV2D;
    if (parts && (op->pass == FT_PASS_FWD_BWD || (op->pass == FT_PASS_BWD && op->kind == FT_OP_GEMM)))
        return ft__fail_at(err, FT_E_UNSUPPORTED, "pass", 0, 0,
                           "several kernels in one point say nothing about each of them: write every product or pass "
                           "as its own point");
    /* As measured here: operands that arrive quantised, attention without an engine around it. */
    if (op->kind == FT_OP_GEMM && op->u.gemm.quantized < 0) op->u.gemm.quantized = 1;
    if ((op->kind == FT_OP_ATTENTION || op->kind == FT_OP_MOE) && op->engine == FT_ENGINE_ANY)
        op->engine = FT_ENGINE_BARE;
    op->name = ft__arena_copy(r->out->arena, op->name, strlen(op->name));
    return op->name ? FT_OK : ft__no_memory(err);
}

static ft_status add_row(reader *r, const ft_row *row, ft_error *err)
{
    ft_rows *rows = &r->out->rows;
    if (rows->count == rows->room) {
        size_t room = rows->room ? 2 * rows->room : 1024;
        ft_row *more = realloc(rows->at, room * sizeof *more);
        if (!more) return ft__fail(err, FT_E_MEMORY, "out of memory for %zu points", room);
        rows->at = more;
        rows->room = room;
    }
    rows->at[rows->count++] = *row;
    return FT_OK;
}

static ft_status read_point(reader *r, const json_t *line, ft_error *err)
{
    static const char *const known[] = {"request",   "ms",      "at_s",          "held_out", "spread", "repeats",
                                        "clock_mhz", "power_w", "temperature_c", "kernel",   "note",   "id"};
    ft_error why = {0};
    ft_row row = {.weight = 1, .source = FT_ROWS_OWN};
    double at_s = 0, spread = 0;
    json_t *request = json_object_get(line, "request");
    if (!json_is_object(request))
        return ft__fail_at(err, FT_E_MISSING, r->path, r->line, 0,
                           "a point needs \"request\", an object as `foretell batch` takes it, and \"ms\"");
    ft_status s = ft__json_known_keys(line, known, COUNT(known), "", &why);
    if (s == FT_OK) s = ft__json_number(line, "ms", FT_REQUIRED, 1e-6, 1e7, &row.ms, "", &why);
    if (s == FT_OK) s = ft__json_number(line, "at_s", FT_OPTIONAL, 0, 1e9, &at_s, "", &why);
    if (s == FT_OK) s = ft__json_number(line, "spread", FT_OPTIONAL, 0, 1e6, &spread, "", &why);
    if (s == FT_OK) s = ft__json_bool(line, "held_out", FT_OPTIONAL, &row.held_out, "", &why);
    if (s != FT_OK) return at_line(r, &why, "", err);
    if (r->minutes > 0 && at_s > 60 * r->minutes) {
        r->out->left_out++;
        return FT_OK;
    }
    if (json_object_get(request, "gpu") && !json_equal(json_object_get(request, "gpu"), r->gpu))
        return ft__fail_at(err, FT_E_NAME, r->path, r->line, 0,
                           "request.gpu: a different GPU from the header's; a calibration covers one GPU");
    const char *task = json_string_value(json_object_get(request, "task"));
    s = !ft__key_set(request, FT_KEY_ID_GPU, json_incref(r->gpu)) ? ft__no_memory(&why)
        : task && !strcmp(task, "collective")                     ? read_collective(r, request, &row.op, &why)
                                                                  : read_kernel(r, request, &row.op, &why);
    if (s != FT_OK) return at_line(r, &why, why.where[0] ? "request." : "request", err);
    row.group = group_of(&row.op);
    /* A point that scattered by more than a tenth says less. */
    row.weight = (float)(1 / (1 + 100 * spread * spread));
    r->last_s = fmax(r->last_s, at_s);
    return add_row(r, &row, err);
}

static ft_status read_line(reader *r, const json_t *line, ft_error *err)
{
    if (!json_is_object(line))
        return ft__fail_at(err, FT_E_TYPE, r->path, r->line, 0, "every line is a JSON object: a header or a point");
    if (json_object_get(line, "foretell_calibration")) return read_header(r, line, err);
    if (!r->gpu)
        return ft__fail_at(
            err, FT_E_MISSING, r->path, r->line, 0,
            "the first line must be a header: {\"foretell_calibration\": 1, \"gpu\": \"h100_sxm\", ...}");
    if (json_object_get(line, "note") && !json_object_get(line, "request")) return FT_OK;
    return read_point(r, line, err);
}

/* -- the file ---------------------------------------------------------------------------------- */

static ft_status load(const char *path, char **out, size_t *length, ft_error *err)
{
    ft_text text = {.cap = MOST_BYTES};
    if (!ft__file_exists(path)) return ft__fail_at(err, FT_E_FILE, path, 0, 0, "there is no such file");
    ft_unzip *file;
    FT_TRY(ft__unzip_open(path, &file, err));
    unsigned char *buffer = malloc(1 << 16);
    size_t got = 0;
    while (buffer && !text.failed && (got = ft__unzip_read(file, buffer, 1 << 16)) > 0)
        ft__text_add_n(&text, (const char *)buffer, got);
    ft_status status = FT_OK;
    if (!buffer)
        status = ft__no_memory(err);
    else if (text.failed)
        status = ft__fail_at(err, FT_E_FILE, path, 0, 0, "more than %d MiB of measurements", MOST_BYTES >> 20);
    else if (ft__unzip_ended(file, NULL) != FT_UNZIP_WHOLE)
        status = ft__fail_at(err, FT_E_FILE, path, 0, 0, "cannot be read: %s", ft__unzip_broken(file));
    ft__unzip_close(file);
    free(buffer);
    if (status != FT_OK) {
        ft__text_free(&text);
        return status;
    }
    *out = text.at;
    *length = text.length;
    return FT_OK;
}

static ft_status read_lines(reader *r, const char *text, size_t length, ft_error *err)
{
    for (size_t at = 0; at < length;) {
        const char *end = memchr(text + at, '\n', length - at);
        size_t size = end ? (size_t)(end - (text + at)) : length - at;
        const char *line = text + at;
        at += size + 1;
        r->line++;
        if (ft__text_blank(line, size)) continue;
        json_t *document = NULL;
        ft_error why = {0};
        if (ft__json_parse(line, size, "", &document, &why) != FT_OK) {
            if (!end && r->gpu) {
                ft__text_addf(&r->out->warnings, "line %d was cut off and is left out\n", r->line);
                return FT_OK;
            }
            return ft__fail_at(err, why.code, r->path, r->line, why.column, "%.480s", why.message);
        }
        ft_status s = read_line(r, document, err);
        json_decref(document);
        FT_TRY(s);
    }
    return FT_OK;
}

static ft_status check_whole(const reader *r, ft_error *err)
{
    const ft_rows *rows = &r->out->rows;
    size_t held = 0;
    for (size_t i = 0; i < rows->count; i++) held += rows->at[i].held_out;
    if (!r->gpu) return ft__fail_at(err, FT_E_MISSING, r->path, 0, 0, "empty: expected a header and measured points");
    if (!rows->count && r->out->left_out)
        return ft__fail_at(err, FT_E_RANGE, r->path, 0, 0,
                           "no point was measured in the first %g minutes, %zu later: ask for more minutes", r->minutes,
                           r->out->left_out);
    if (!rows->count) return ft__fail_at(err, FT_E_MISSING, r->path, 0, 0, "a header and no points behind it");
    if (held == rows->count)
        return ft__fail_at(err, FT_E_RANGE, r->path, 0, 0, "every point is held out: none is left to learn from");
    return FT_OK;
}

ft_status ft__points_read(const char *path, double minutes, ft_points *out, ft_error *err)
{
    memset(out, 0, sizeof *out);
    char *text = NULL;
    size_t length = 0;
    FT_TRY(load(path, &text, &length, err));
    reader r = {.path = path, .minutes = minutes, .out = out};
    out->arena = ft__arena_new(0);
    ft_status s = out->arena ? read_lines(&r, text ? text : "", length, err) : ft__no_memory(err);
    free(text);
    if (s == FT_OK) s = check_whole(&r, err);
    if (s == FT_OK) s = keep_machine(&r, err);
    if (s == FT_OK && (out->warnings.failed || out->machine.failed)) s = ft__no_memory(err);
    out->minutes = r.last_s / 60;
    json_decref(r.gpu);
    json_decref(r.machine);
    if (s != FT_OK) ft__points_free(out);
    return s;
}

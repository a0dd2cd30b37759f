/* Kernel tables of serving engines (ai-dynamo/aiconfigurator, Apache-2.0): graph replays, warm L2, random operands.
 *
 * fp8 and fp4 GEMMs include the dynamic quantisation of the activations. Attention writes the cache and, in some
 * engines, applies rotary embeddings first: each engine is an operator of its own. Which engine's rows of the others
 * are fitted, and which rows are accidents, exclude.c says. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/table.h"
#include "fit/exclude.h"
#include "fit/measurements.h"
#include "fit/rows_constants.h"
#include "graph/operator.h"

static bool dtype_of(const char *theirs, ft_dtype *out)
{
    static const struct {
        const char *theirs;
        ft_dtype dtype;
    } names[] = {{"bfloat16", FT_BF16}, {"bf16", FT_BF16}, {"float16", FT_FP16}, {"fp8", FT_FP8}, {"nvfp4", FT_FP4}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(names[i].theirs, theirs)) return *out = names[i].dtype, true;
    return false;
}

static ft_engine engine_of(const char *theirs)
{
    return !strcmp(theirs, "trtllm") ? FT_ENGINE_TRTLLM : !strcmp(theirs, "vllm") ? FT_ENGINE_VLLM : FT_ENGINE_SGLANG;
}

typedef struct reader {
    ft_table *t;
    ft_error *err;
} reader;

static const char *cell(reader *r, const char *column) { return ft__table_cell(r->t, ft__table_find(r->t, column)); }
static bool cell_is(reader *r, const char *column, const char *value) { return !strcmp(cell(r, column), value); }
static bool zero(reader *r, const char *column) { return cell(r, column)[0] == 0 || cell_is(r, column, "0"); }

static ft_status whole(reader *r, const char *column, int64_t *out) { return ft__row_size(r->t, column, out, r->err); }

static ft_status gemm_row(reader *r, ft_row *row, bool *take)
{
    ft_op *op = &row->op;
    ft__op_init("gemm", op);
    *take = dtype_of(cell(r, "dtype"), &op->dtype);
    if (!*take) return FT_OK;
    FT_TRY(whole(r, "m", &op->u.gemm.m));
    FT_TRY(whole(r, "n", &op->u.gemm.n));
    FT_TRY(whole(r, "k", &op->u.gemm.k));
    op->u.gemm.quantized = 0;
    row->group = ft__group3(op->u.gemm.n, op->u.gemm.k, 0);
    return FT_OK;
}

static ft_status attention_row(reader *r, ft_row *row, bool *take)
{
    ft_op *op = &row->op;
    ft__op_init("attention", op);
    bool generation = ft__table_find(r->t, "step") >= 0;
    *take = dtype_of(cell(r, "attn_dtype"), &op->dtype) && dtype_of(cell(r, "kv_dtype"), &op->kv_dtype) &&
            zero(r, "window") && zero(r, "prefix");
    if (!*take) return FT_OK;
    int64_t isl, step = 0;
    FT_TRY(whole(r, "batch", &op->u.attention.batch));
    FT_TRY(whole(r, "num_heads", &op->u.attention.heads));
    FT_TRY(whole(r, "num_kv_heads", &op->u.attention.kv_heads));
    FT_TRY(whole(r, "head_dim", &op->u.attention.head_dim));
    FT_TRY(whole(r, "isl", &isl));
    if (generation) FT_TRY(whole(r, "step", &step));
    if (op->u.attention.kv_heads == 0) op->u.attention.kv_heads = op->u.attention.heads;
    op->u.attention.q_len = generation ? 1 : isl;
    op->u.attention.kv_len = isl + step;
    op->u.attention.causal = !generation;
    op->engine = engine_of(cell(r, "backend"));
    row->group = ft__group3(op->u.attention.heads, op->u.attention.kv_heads * 1000 + op->u.attention.head_dim,
                            op->u.attention.batch);
    return FT_OK;
}

/* Formats of the moe tables: what is multiplied over how weights are stored. */
static bool experts_format(const char *theirs, ft_op *op)
{
    static const struct {
        const char *theirs;
        ft_dtype dtype;
        ft_storage weights;
    } names[] = {{"bfloat16", FT_BF16, FT_STORED_AS_COMPUTED}, {"fp8", FT_FP8, FT_STORED_AS_COMPUTED},
                 {"nvfp4", FT_FP4, FT_STORED_AS_COMPUTED},     {"fp8_block", FT_FP8, FT_STORED_FP8_BLOCK},
                 {"int4_wo", FT_BF16, FT_STORED_INT4},         {"w4a16_mxfp4", FT_BF16, FT_STORED_MXFP4},
                 {"w4a8_mxfp4_mxfp8", FT_FP8, FT_STORED_MXFP4}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(names[i].theirs, theirs) != 0) continue;
        op->dtype = names[i].dtype;
        op->weights = names[i].weights;
        return true;
    }
    return false;
}

/* Whose kernels, from what the tables say of their source; the last row is TensorRT-LLM's torch flow. */
static ft_moe_backend experts_backend(const char *source, const ft_op *op)
{
    static const struct {
        const char *part;
        ft_moe_backend backend;
    } names[] = {{"marlin", FT_MOE_MARLIN},
                 {"triton", FT_MOE_TRITON},
                 {"flashinfer_cutlass", FT_MOE_CUTLASS},
                 {"flashinfer_trtllm", FT_MOE_TRTLLM_GEN},
                 {"min_latency", FT_MOE_TRTLLM_GEN},
                 {"deepgemm", FT_MOE_DEEPGEMM},
                 {"vllm_fused_moe", FT_MOE_TRITON}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strstr(source, names[i].part)) return names[i].backend;
    return op->dtype == FT_FP8 && op->weights == FT_STORED_MXFP4 ? FT_MOE_TRTLLM_GEN : FT_MOE_CUTLASS;
}

/* Tensor parallelism cuts `inter`. Expert parallelism deals experts and balanced tokens out evenly; a skewed draw lands
 * on one rank in ways an operator cannot say, so those rows are not read. */
static ft_status moe_row(reader *r, ft_row *row, bool *take)
{
    ft_op *op = &row->op;
    ft__op_init("moe", op);
    const char *law = cell(r, "distribution"), *source = cell(r, "kernel_source");
    bool skewed = !strncmp(law, "power_law_", 10);
    *take = experts_format(cell(r, "dtype"), op) && (!strcmp(law, "balanced") || (skewed && cell_is(r, "moe_ep", "1")));
    if (!*take) return FT_OK;
    int64_t tp;
    FT_TRY(whole(r, "moe_tp", &tp));
    FT_TRY(whole(r, "moe_ep", &op->u.moe.ep));
    FT_TRY(whole(r, "tokens", &op->u.moe.tokens));
    FT_TRY(whole(r, "hidden_size", &op->u.moe.hidden));
    FT_TRY(whole(r, "inter_size", &op->u.moe.inter));
    FT_TRY(whole(r, "topk", &op->u.moe.topk));
    FT_TRY(whole(r, "num_experts", &op->u.moe.experts));
    *take = tp > 0 && op->u.moe.inter % tp == 0 && op->u.moe.ep > 0 && op->u.moe.experts % op->u.moe.ep == 0;
    if (!*take) return FT_OK;
    op->u.moe.inter /= tp;
    op->u.moe.ungated = strstr(source, "nongated") != NULL;
    op->u.moe.backend = (int)experts_backend(source, op);
    op->engine = engine_of(cell(r, "backend"));
    if (skewed) op->u.moe.skew = strtod(law + 10, NULL);
    row->group = ft__group3(op->u.moe.hidden, op->u.moe.inter, op->u.moe.experts * 64 + op->u.moe.topk);
    return FT_OK;
}

/* DeepSeek's geometry, the one the tables were taken with: latent 512, rotary 64, 128 per head. */
static ft_status mla_row(reader *r, ft_row *row, bool *take)
{
    ft_op *op = &row->op;
    ft__op_init("mla", op);
    bool generation = ft__table_find(r->t, "step") >= 0;
    *take = dtype_of(cell(r, "dtype"), &op->dtype) && dtype_of(cell(r, "kv_dtype"), &op->kv_dtype) && zero(r, "prefix");
    if (!*take) return FT_OK;
    int64_t isl, step = 0;
    FT_TRY(whole(r, "batch", &op->u.mla.batch));
    FT_TRY(whole(r, "num_heads", &op->u.mla.heads));
    FT_TRY(whole(r, "isl", &isl));
    if (generation) FT_TRY(whole(r, "step", &step));
    op->u.mla.q_len = generation ? 1 : isl;
    op->u.mla.kv_len = isl + step;
    op->u.mla.causal = !generation;
    op->u.mla.kv_lora = 512;
    op->u.mla.rope_dim = 64;
    op->u.mla.nope_dim = op->u.mla.v_dim = 128;
    row->group = ft__group3(op->u.mla.heads, op->u.mla.batch, generation);
    return FT_OK;
}

/* The pass that applies a scale. The table of the pass that finds it (quant_computescale) is not read: its figures are
 * differences of two timings and jump between 0 and 8 us from one size to the next. */
static ft_status quantize_row(reader *r, ft_row *row, bool *take)
{
    ft_op *op = &row->op;
    ft__op_init("scale_matrix", op);
    *take = dtype_of(cell(r, "dtype"), &op->dtype);
    if (!*take) return FT_OK;
    FT_TRY(whole(r, "m", &op->u.quantize.rows));
    FT_TRY(whole(r, "k", &op->u.quantize.cols));
    row->group = ft__group3(op->u.quantize.rows, op->u.quantize.cols, 0);
    return FT_OK;
}

typedef ft_status (*row_reader)(reader *r, ft_row *row, bool *take);

typedef struct engine_table {
    const char *name;
    row_reader each;
} engine_table;

static ft_status read_file(const char *path, const engine_table *form, const ft_row_filter *filter, ft_rows *rows,
                           ft_error *err)
{
    reader r = {.err = err};
    ft_device last = {0};
    int gpu, latency;
    FT_TRY(ft__table_open(path, &r.t, err));
    ft_status s = ft__table_column(r.t, "gpu", &gpu, err);
    if (s == FT_OK) s = ft__table_column(r.t, "latency_ms", &latency, err);
    for (bool more = true; s == FT_OK;) {
        s = ft__table_next(r.t, &more, err);
        if (s != FT_OK || !more) break;
        const char *theirs = ft__table_cell(r.t, gpu), *ours = ft__their_gpu("silicon", theirs),
                   *name = ours ? ours : theirs;
        ft_row_use use = ft__row_use(r.t, form->name, name);
        if (!ft__rows_gpu_wanted(filter, name) || use == FT_ROW_UNREAD) continue;
        ft_row row;
        bool take = false;
        memset(&row, 0, sizeof row);
        s = form->each(&r, &row, &take);
        if (s != FT_OK || !take) continue;
        s = ft__table_number(r.t, latency, &row.ms, err);
        if (s != FT_OK || row.ms <= 0) continue;
        row.excluded = use == FT_ROW_JUDGED || (row.op.kind == FT_OP_MOE && ft__moe_excluded(name, &row, &last));
        row.source = FT_ROWS_ENGINE;
        s = ft__rows_add(rows, filter, name, &row, r.t, err);
        if (s == FT_OK && row.op.kind == FT_OP_ATTENTION && ft_dtype_bytes(row.op.kv_dtype) >= 2) {
            /* Once more for requests that name no engine. */
            bool slower = row.op.engine == FT_ENGINE_TRTLLM && row.op.u.attention.q_len > 1;
            row.op.engine = FT_ENGINE_ANY;
            row.weight = slower ? (float)FT_K_ROWS_SLOWER_ENGINE_WEIGHT : 1;
            s = ft__rows_add(rows, filter, name, &row, r.t, err);
        }
        if (s == FT_OK && row.op.kind == FT_OP_MOE && row.op.u.moe.ungated && filter && filter->to_fit) {
            /* Once more for requests that say nothing of a gate: no gated model has these shapes. It teaches what such
             * a request means and judges nobody. */
            row.op.u.moe.ungated = false;
            row.source = FT_ROWS_UNSAID;
            s = ft__rows_add(rows, filter, name, &row, r.t, err);
        }
    }
    ft__table_close(r.t);
    return s;
}

ft_status ft__read_silicon(const char *folder, const ft_row_filter *filter, ft_rows *rows, ft_error *err)
{
    static const engine_table forms[] = {{"silicon/gemm", gemm_row},
                                         {"silicon/attention_context", attention_row},
                                         {"silicon/attention_generation", attention_row},
                                         {"silicon/moe", moe_row},
                                         {"silicon/mla_context", mla_row},
                                         {"silicon/mla_generation", mla_row},
                                         {"silicon/quant_scale_matrix", quantize_row}};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        char path[4096], file[4400];
        char **names;
        size_t count;
        snprintf(path, sizeof path, "%s%s", folder, strchr(forms[i].name, '/'));
        FT_TRY(ft__folder_list(path, ".csv.gz", &names, &count, err));
        ft_status s = FT_OK;
        for (size_t f = 0; f < count && s == FT_OK; f++) {
            snprintf(file, sizeof file, "%s/%s", path, names[f]);
            s = read_file(file, &forms[i], filter, rows, err);
        }
        ft__folder_list_free(names, count);
        FT_TRY(s);
    }
    return FT_OK;
}

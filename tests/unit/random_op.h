/* Operators by the thousand, the same ones in every run: sizes spread evenly over their logarithms, half of them round.
 *
 * Shapes are those people run: no attention with more heads than fit a model, no convolution larger than its image.
 * Every operator that comes out passes ft__op_check on the device it was drawn for. */
#ifndef FT_TEST_RANDOM_OP_H
#define FT_TEST_RANDOM_OP_H
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "graph/operator.h"
#include "kernel/kernel.h"

/* Finer than ft_op_kind where one kind is several programs. */
typedef enum random_kind {
    RANDOM_GEMM,
    RANDOM_BMM,
    RANDOM_PREFILL,
    RANDOM_ATTENTION_BACKWARD,
    RANDOM_DECODE,
    RANDOM_MLA_PREFILL,
    RANDOM_MLA_DECODE,
    RANDOM_MOE,
    RANDOM_ELEMENTWISE,
    RANDOM_ROW,
    RANDOM_CONV,
    RANDOM_OPTIMIZER,
    RANDOM_QUANTIZE,
    RANDOM_UNKNOWN,
    RANDOM_KINDS
} random_kind;

typedef struct random_source {
    uint64_t state;
} random_source;

/* splitmix64 (Steele, Lea, Flood 2014). */
static inline uint64_t random_next(random_source *r)
{
    uint64_t z = r->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static inline int random_below(random_source *r, int n) { return (int)(random_next(r) % (uint64_t)n); }
static inline double random_unit(random_source *r) { return (double)(random_next(r) >> 11) * 0x1p-53; }
static inline bool random_bool(random_source *r) { return random_next(r) & 1; }

static inline int64_t random_size(random_source *r, double low, double high)
{
    double x = low * exp2(random_unit(r) * log2(high / low));
    int64_t step = x >= 1024 ? 64 : x >= 64 ? 8 : 1;
    int64_t size = (int64_t)x;
    return random_bool(r) ? (size + step - 1) / step * step : size;
}

static inline void random_attention(random_source *r, random_kind kind, ft_op *op)
{
    static const int64_t dims[] = {40, 64, 80, 96, 128, 256};
    int64_t groups = (int64_t)1 << random_below(r, 4);
    ft__op_init("attention", op);
    op->u.attention.kv_heads = random_size(r, 1, 16);
    op->u.attention.heads = op->u.attention.kv_heads * groups;
    op->u.attention.head_dim = dims[random_below(r, 6)];
    op->u.attention.batch = random_size(r, 1, 64);
    op->u.attention.kv_len = random_size(r, 2, 16384);
    op->u.attention.q_len = kind == RANDOM_DECODE ? 1 : op->u.attention.kv_len;
    op->u.attention.causal = kind != RANDOM_DECODE && random_bool(r);
    if (random_below(r, 8) == 0) op->u.attention.window = random_size(r, 64, 4096);
    if (kind == RANDOM_ATTENTION_BACKWARD)
        op->pass = random_bool(r) ? FT_PASS_BWD : FT_PASS_FWD_BWD;
    else
        op->engine = (ft_engine)random_below(r, FT_ENGINE_COUNT);
}

static inline void random_mla(random_source *r, random_kind kind, ft_op *op)
{
    ft__op_init("mla", op);
    op->u.mla.batch = random_size(r, 1, 64);
    op->u.mla.heads = (int64_t)8 << random_below(r, 5);
    op->u.mla.kv_len = random_size(r, 2, 16384);
    op->u.mla.q_len = kind == RANDOM_MLA_DECODE ? 1 : op->u.mla.kv_len;
    op->u.mla.causal = kind == RANDOM_MLA_PREFILL;
    op->u.mla.kv_lora = 512;
    op->u.mla.rope_dim = 64;
    op->u.mla.nope_dim = op->u.mla.v_dim = 128;
}

static inline void random_conv(random_source *r, ft_op *op)
{
    static const int64_t filters[] = {1, 3, 3, 5, 7};
    ft__op_init("conv2d", op);
    op->pass = (ft_pass)random_below(r, 3);
    op->u.conv.n = random_size(r, 1, 128);
    op->u.conv.h = op->u.conv.w = random_size(r, 7, 224);
    op->u.conv.r = op->u.conv.s = filters[random_below(r, 5)];
    op->u.conv.pad = op->u.conv.r / 2;
    op->u.conv.stride = 1 + random_below(r, 2);
    op->u.conv.nhwc = random_bool(r);
    op->u.conv.c = random_size(r, 3, 1024);
    op->u.conv.k = random_size(r, 8, 1024);
    if (random_below(r, 8) == 0) op->u.conv.groups = op->u.conv.k = op->u.conv.c; /* depthwise */
}

static inline void random_shape(random_source *r, random_kind kind, ft_op *op)
{
    static const char *const layouts[] = {"nn", "nt", "tn", "tt"};
    static const char *const optimizers[] = {"adamw",          "adamw_foreach", "sgd",       "sgd_momentum_fused",
                                             "clip_grad_norm", "adamw_8bit",    "adafactor", "lamb",
                                             "muon",           "somebodys"};
    static const char *const quantizers[] = {"quantize",      "quantize_rows", "quantize_static",
                                             "quantize_cast", "dequantize",    "scale_matrix"};
    switch (kind) {
    case RANDOM_GEMM:
    case RANDOM_BMM:
        ft__op_init(kind == RANDOM_BMM ? "bmm" : random_bool(r) ? "linear" : "gemm", op);
        if (kind == RANDOM_BMM) op->u.gemm.b = random_size(r, 2, 512);
        op->u.gemm.m = random_size(r, 1, kind == RANDOM_BMM ? 4096 : 65536);
        op->u.gemm.n = random_size(r, 1, kind == RANDOM_BMM ? 4096 : 65536);
        op->u.gemm.k = random_size(r, 1, kind == RANDOM_BMM ? 4096 : 32768);
        op->u.gemm.quantized = random_below(r, 3) - 1;
        strcpy(op->u.gemm.layout, layouts[random_below(r, 4)]);
        break;
    case RANDOM_PREFILL:
    case RANDOM_ATTENTION_BACKWARD:
    case RANDOM_DECODE: random_attention(r, kind, op); break;
    case RANDOM_MLA_PREFILL:
    case RANDOM_MLA_DECODE: random_mla(r, kind, op); break;
    case RANDOM_MOE:
        ft__op_init("moe", op);
        op->u.moe.tokens = random_size(r, 1, 32768);
        op->u.moe.hidden = random_size(r, 512, 8192);
        op->u.moe.inter = random_size(r, 128, 16384);
        op->u.moe.experts = (int64_t)4 << random_below(r, 7);
        op->u.moe.topk = (int64_t)1 << random_below(r, 3);
        op->u.moe.skew = random_bool(r) ? 1.2 : 0;
        op->engine = random_bool(r) ? FT_ENGINE_ANY : FT_ENGINE_BARE;
        break;
    case RANDOM_ELEMENTWISE:
        ft__op_init(ft__pointwise_ops[random_below(r, ft__pointwise_op_count)].name, op);
        op->u.elementwise.numel = random_size(r, 1, 1e9);
        break;
    case RANDOM_ROW: {
        const ft_row_op *row = &ft__row_ops[random_below(r, ft__row_op_count)];
        ft__op_init(row->name, op);
        op->u.row.rows = random_size(r, 1, 131072);
        op->u.row.cols = random_size(r, 1, 16384);
        if (row->back_reads + row->back_writes > 0) op->pass = (ft_pass)random_below(r, 3);
        break;
    }
    case RANDOM_CONV: random_conv(r, op); break;
    case RANDOM_OPTIMIZER:
        ft__op_init("optimizer", op);
        op->name = optimizers[random_below(r, 10)];
        op->u.optimizer.params = random_size(r, 1024, 1e9);
        op->u.optimizer.tensors = random_size(r, 1, 512);
        break;
    case RANDOM_QUANTIZE:
        ft__op_init(quantizers[random_below(r, 6)], op);
        op->u.quantize.rows = random_size(r, 1, 65536);
        op->u.quantize.cols = random_size(r, 16, 16384);
        break;
    default:
        ft__op_init("somebodys_kernel", op);
        op->u.other.bytes = (double)random_size(r, 1, 1e10);
        op->u.other.flops = random_bool(r) ? op->u.other.bytes * 100 * random_unit(r) : 0;
    }
}

/* Draws until the device can run it: some lack the dtype. */
static inline ft_op random_op(random_source *r, random_kind kind, const ft_device *device)
{
    ft_op op;
    do {
        random_shape(r, kind, &op);
        if (kind != RANDOM_QUANTIZE) op.dtype = (ft_dtype)random_below(r, FT_DTYPE_COUNT);
        op.kv_dtype = random_below(r, 3) == 0 && device->peak_tflops[FT_FP8] > 0 ? FT_FP8 : op.dtype;
        if (random_below(r, 4) == 0) op.timing = FT_TIMING_OP;
    } while (ft__op_check(&op, device, NULL) != FT_OK);
    return op;
}

/* Sizes whose last bits decide about the kernel (vectorised or not, padded or not) become multiples of 64, so that what
 * a test changes is how much there is to do and not how it is done; attention and experts get a format that is used. */
static inline void random_tame(const ft_device *device, ft_op *op)
{
    int64_t *sizes[4] = {0};
    bool wide = ft_dtype_bytes(op->dtype) > 2;
    if (wide && (op->kind == FT_OP_ATTENTION || op->kind == FT_OP_MLA || op->kind == FT_OP_MOE)) {
        op->dtype = device->peak_tflops[FT_BF16] > 0 ? FT_BF16 : FT_FP16;
        if (ft_dtype_bytes(op->kv_dtype) > 1) op->kv_dtype = op->dtype;
    }
    switch (op->kind) {
    case FT_OP_GEMM:
        sizes[0] = &op->u.gemm.n, sizes[1] = &op->u.gemm.k;
        if (op->u.gemm.layout[0] == 't') sizes[2] = &op->u.gemm.m;
        break;
    case FT_OP_ELEMENTWISE: sizes[0] = &op->u.elementwise.numel; break;
    case FT_OP_ROW:
        sizes[0] = &op->u.row.cols;
        op->u.row.vocab = 32000;
        break;
    case FT_OP_CONV2D:
        if (op->u.conv.groups > 1) op->u.conv.groups = op->u.conv.k = op->u.conv.c = (op->u.conv.c + 63) / 64 * 64;
        sizes[0] = &op->u.conv.c, sizes[1] = &op->u.conv.k;
        break;
    case FT_OP_MOE: sizes[0] = &op->u.moe.hidden, sizes[1] = &op->u.moe.inter; break;
    case FT_OP_OPTIMIZER:
        op->u.optimizer.params = op->u.optimizer.tensors *
                                 ((op->u.optimizer.params / op->u.optimizer.tensors + 63) / 64 * 64);
        break;
    case FT_OP_QUANTIZE: sizes[0] = &op->u.quantize.cols; break;
    default: break;
    }
    for (int i = 0; i < 4 && sizes[i]; i++) *sizes[i] = (*sizes[i] + 63) / 64 * 64;
}

/* The operator with one of its sizes doubled, `which` counting from 0; false when it has no more. Sizes of which more
 * is not always more work (experts at the same tokens, heads that share a cache) are left out. */
static inline bool random_doubled(const ft_op *op, int which, ft_op *out, const char **what)
{
    int64_t *sizes[6] = {0};
    const char *names[6] = {0};
    *out = *op;
    switch (op->kind) {
    case FT_OP_GEMM:
        sizes[0] = &out->u.gemm.m, names[0] = "m";
        sizes[1] = &out->u.gemm.n, names[1] = "n";
        sizes[2] = &out->u.gemm.k, names[2] = "k";
        if (op->u.gemm.b > 1) sizes[3] = &out->u.gemm.b, names[3] = "b";
        break;
    case FT_OP_ATTENTION:
        sizes[0] = &out->u.attention.batch, names[0] = "batch";
        sizes[1] = &out->u.attention.kv_len, names[1] = op->u.attention.q_len > 1 ? "q_len and kv_len" : "kv_len";
        break;
    case FT_OP_MLA:
        sizes[0] = &out->u.mla.batch, names[0] = "batch";
        sizes[1] = &out->u.mla.kv_len, names[1] = op->u.mla.q_len > 1 ? "q_len and kv_len" : "kv_len";
        break;
    case FT_OP_MOE:
        sizes[0] = &out->u.moe.tokens, names[0] = "tokens";
        sizes[1] = &out->u.moe.hidden, names[1] = "hidden";
        sizes[2] = &out->u.moe.inter, names[2] = "inter";
        break;
    case FT_OP_ELEMENTWISE: sizes[0] = &out->u.elementwise.numel, names[0] = "numel"; break;
    case FT_OP_ROW:
        sizes[0] = &out->u.row.rows, names[0] = "rows";
        sizes[1] = &out->u.row.cols, names[1] = "cols";
        break;
    case FT_OP_CONV2D:
        sizes[0] = &out->u.conv.n, names[0] = "n";
        if (op->u.conv.groups == 1) {
            sizes[1] = &out->u.conv.c, names[1] = "c";
            sizes[2] = &out->u.conv.k, names[2] = "k";
        }
        break;
    case FT_OP_OPTIMIZER: sizes[0] = &out->u.optimizer.params, names[0] = "params"; break;
    case FT_OP_QUANTIZE:
        sizes[0] = &out->u.quantize.rows, names[0] = "rows";
        sizes[1] = &out->u.quantize.cols, names[1] = "cols";
        break;
    default:
        if (which > 0) return false;
        out->u.other.bytes *= 2;
        *what = "bytes";
        return true;
    }
    if (which >= 6 || !sizes[which]) return false;
    *sizes[which] *= 2;
    *what = names[which];
    if (op->kind == FT_OP_ATTENTION && which == 1 && op->u.attention.q_len > 1) out->u.attention.q_len *= 2;
    if (op->kind == FT_OP_MLA && which == 1 && op->u.mla.q_len > 1) out->u.mla.q_len *= 2;
    return true;
}
#endif

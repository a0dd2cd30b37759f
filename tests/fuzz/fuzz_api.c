/* The typed door: whatever numbers a program writes into an operator and a device, the answer is a sound forecast or an
 * error with a member's name; never a crash, never a bug of ours. Bytes are consumed eight at a time. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "foretell.h"
#include "fuzz.h"

typedef struct source {
    const uint8_t *at;
    size_t left;
} source;

static uint64_t bits(source *s)
{
    uint64_t x = 0;
    size_t n = s->left < sizeof x ? s->left : sizeof x;
    memcpy(&x, s->at, n);
    s->at += n;
    s->left -= n;
    return x;
}

/* Sizes people use more often than not; now and then anything at all. */
static int64_t size(source *s)
{
    uint64_t x = bits(s);
    return x % 8 ? (int64_t)(x >> 8 & ((UINT64_C(1) << (x >> 3 & 31)) - 1)) : (int64_t)(x << 3 | x >> 61);
}

static double real(source *s)
{
    double x;
    uint64_t b = bits(s);
    if (b % 4) return (double)(b >> 8 & 0xffffff) / (double)(1 + (b >> 2 & 63));
    memcpy(&x, &b, sizeof x);
    return x;
}

static const char *const names[] = {
    "gemm",        "bmm",       "linear",        "attention",    "mla",        "gelu",       "add",
    "softmax",     "layernorm", "cross_entropy", "embedding",    "conv2d",     "moe",        "optimizer",
    "adamw_fused", "muon",      "quantize",      "scale_matrix", "all_reduce", "all_to_all", "something"};

static void fill(ft_op *op, source *s)
{
    int64_t x[10];
    for (int i = 0; i < 10; i++) x[i] = size(s);
    uint64_t flags = bits(s);
    if (flags & 1) {
        int wild = (int)bits(s);
        void *at[] = {&op->kind, &op->dtype, &op->kv_dtype, &op->pass, &op->timing, &op->engine};
        memcpy(at[(flags >> 8) % 6], &wild, sizeof wild);
    } else {
        op->dtype = (ft_dtype)(flags >> 8 & 7);
        op->pass = (ft_pass)((flags >> 12) % 3);
        op->engine = (ft_engine)((flags >> 16) % FT_ENGINE_COUNT);
        op->timing = (ft_timing)(flags >> 20 & 1);
    }
    if ((flags >> 24) % 16 == 0) op->name = NULL;
    switch (op->kind) {
    case FT_OP_GEMM:
        op->u.gemm.b = x[4] % 4 ? 1 : x[0];
        op->u.gemm.m = x[1], op->u.gemm.n = x[2], op->u.gemm.k = x[3];
        op->u.gemm.quantized = (int)(x[5] % 4) - 1;
        if (flags >> 32 & 1) op->u.gemm.layout[0] = (char)x[6];
        break;
    case FT_OP_ATTENTION:
        op->u.attention.batch = x[0], op->u.attention.kv_heads = x[2];
        op->u.attention.heads = x[1] % 4 ? (int64_t)((uint64_t)x[2] << (x[1] & 3)) : x[1];
        op->u.attention.q_len = x[3] % 4 ? x[3] : 1, op->u.attention.kv_len = x[4], op->u.attention.head_dim = x[5];
        op->u.attention.v_dim = x[6] % 2 ? 0 : x[6], op->u.attention.window = x[7] % 2 ? 0 : x[7];
        op->u.attention.causal = flags >> 33 & 1, op->u.attention.library = (ft_attention_library)(flags >> 34 & 7);
        break;
    case FT_OP_MLA:
        op->u.mla.batch = x[0], op->u.mla.heads = x[1], op->u.mla.q_len = x[2] % 2 ? 1 : x[2];
        op->u.mla.kv_len = x[3], op->u.mla.kv_lora = x[4], op->u.mla.rope_dim = x[5];
        op->u.mla.nope_dim = x[6], op->u.mla.v_dim = x[7], op->u.mla.causal = flags >> 33 & 1;
        break;
    case FT_OP_ELEMENTWISE:
        op->u.elementwise.numel = x[0], op->u.elementwise.inputs = (int)x[1];
        op->u.elementwise.ops_per_element = real(s), op->u.elementwise.bytes = real(s);
        op->u.elementwise.pattern = (int)x[2];
        break;
    case FT_OP_ROW: op->u.row.rows = x[0], op->u.row.cols = x[1], op->u.row.vocab = x[2]; break;
    case FT_OP_CONV2D:
        op->u.conv.n = x[0], op->u.conv.c = x[1], op->u.conv.h = x[2], op->u.conv.w = x[3], op->u.conv.k = x[4];
        op->u.conv.r = x[5] % 8, op->u.conv.s = x[6] % 8, op->u.conv.stride = x[7] % 4, op->u.conv.pad = x[8] % 4;
        op->u.conv.groups = x[9] % 2 ? 1 : x[9], op->u.conv.nhwc = flags >> 33 & 1;
        break;
    case FT_OP_MOE:
        op->u.moe.tokens = x[0], op->u.moe.hidden = x[1], op->u.moe.inter = x[2];
        op->u.moe.topk = x[3], op->u.moe.experts = x[4], op->u.moe.skew = real(s);
        break;
    case FT_OP_OPTIMIZER: op->u.optimizer.params = x[0], op->u.optimizer.tensors = x[1]; break;
    case FT_OP_QUANTIZE: op->u.quantize.rows = x[0], op->u.quantize.cols = x[1]; break;
    case FT_OP_COLLECTIVE:
        op->u.collective.op = (int)x[0], op->u.collective.ranks = x[1], op->u.collective.bytes = real(s);
        op->u.collective.link_gbps = real(s), op->u.collective.nccl = (int)x[2];
        op->u.collective.switched = flags >> 33 & 1, op->u.collective.reduces = flags >> 34 & 1;
        op->u.collective.pcie = flags >> 35 & 1;
        break;
    default: op->u.other.bytes = real(s), op->u.other.flops = real(s); break;
    }
}

/* One or two figures of a catalogue device are somebody's own. */
static void bend(ft_device *d, source *s)
{
    uint64_t which = bits(s);
    double *figures[] = {&d->matrix_fma_per_clk_sm,
                         &d->base_mhz,
                         &d->boost_mhz,
                         &d->matrix_mhz,
                         &d->sustained_mhz,
                         &d->tdp_w,
                         &d->process_nm,
                         &d->memory_gib,
                         &d->memory_gbps,
                         &d->l2_mib,
                         &d->l2_bytes_per_clk,
                         &d->smem_kib_per_sm,
                         &d->regs_kib_per_sm,
                         &d->link_gbps_per_direction,
                         &d->pcie_gbps,
                         &d->matrix_pj_per_flop,
                         &d->server_nic_gbit,
                         &d->peak_tflops[which >> 40 & 7],
                         &d->vector_tflops[which >> 40 & 7]};
    int *counts[] = {
        &d->sms,           &d->lanes_per_sm, &d->issue_lanes_per_sm, &d->max_warps_per_sm, &d->link_gpus, &d->dies,
        &d->l2_partitions, &d->year,         &d->exp_per_clk_per_sm};
    if (which & 1) *figures[(which >> 8) % (sizeof figures / sizeof *figures)] = real(s);
    if (which & 2) *counts[(which >> 16) % (sizeof counts / sizeof *counts)] = (int)size(s);
    if (which & 4) d->generation[0] = (char)(which >> 24);
    if ((which >> 3 & 15) == 1) memset(d->link_kind, 'x', sizeof d->link_kind);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    static ft_context *ft;
    source s = {data, length};
    ft_device device;
    ft_forecast f;
    ft_error err = {0};
    ft_op op;
    if (!ft) FUZZ_CHECK(ft_open(&ft, NULL, NULL) == FT_OK);
    uint64_t first = bits(&s);
    FUZZ_CHECK(ft_device_at(ft, (size_t)(first >> 8) % ft_device_count(ft), &device, NULL) == FT_OK);
    ft_op_init(&op, names[first % (sizeof names / sizeof *names)]);
    fill(&op, &s);
    if (first >> 32 & 1) bend(&device, &s);
    ft_status status = ft_kernel(ft, &device, &op, &f, &err);
    FUZZ_CHECK(status == err.code || status == FT_OK);
    if (status == FT_E_BUG) fprintf(stderr, "%s\n", err.message);
    FUZZ_CHECK(status != FT_E_BUG && status < FT_STATUS_COUNT);
    if (status != FT_OK) {
        FUZZ_CHECK(err.message[0]);
        return 0;
    }
    FUZZ_CHECK(isfinite(f.ms) && f.low_ms > 0 && f.low_ms <= f.ms && f.ms <= f.high_ms && isfinite(f.high_ms));
    FUZZ_CHECK(isfinite(f.flops) && isfinite(f.bytes) && isfinite(f.roofline_ms) && isfinite(f.sustained_ms));
    return 0;
}

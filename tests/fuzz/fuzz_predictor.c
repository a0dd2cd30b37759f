/* Predictor files: whatever bytes come, either refused with a reason or forecasts that are finite and ordered.
 *
 * Every input is used twice. As a file, where the checksum stops nearly everything that is not one. And as patches to a
 * sound file with a checksum that fits, so that the checks behind it are reached: the first byte picks a family, then
 * every three bytes are a place in the records and the byte to put there; from 128 on in the file that is made of them,
 * where trees name cuts by their numbers in tables. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "device/gpu.h"
#include "fuzz.h"
#include "graph/operator.h"
#include "kernel/kernel.h"
#include "kernel/predictor_check.h"

enum { EXPERTS = 3, TREES = 4 };

typedef struct records {
    ft_expert experts[EXPERTS];
    ft_tree trees[TREES];
} records;

/* One operator of each family, as `pick` counts them, that the family's first variant answers for. */
static const char *const op_names[] = {"gemm", "gemm",    "attention", "attention", "mla",      "moe",
                                       "gelu", "softmax", "conv2d",    "optimizer", "quantize", "somebodys"};
enum { OPS = sizeof op_names / sizeof *op_names };

static ft_op op_number(int i)
{
    ft_op op;
    ft__op_init(op_names[i], &op);
    switch (op.kind) {
    case FT_OP_GEMM:
        op.dtype = i ? FT_FP32 : FT_BF16;
        op.u.gemm.m = 4096, op.u.gemm.n = 50257, op.u.gemm.k = 768;
        break;
    case FT_OP_ATTENTION:
        op.u.attention.batch = 4, op.u.attention.heads = 32, op.u.attention.kv_heads = 8, op.u.attention.kv_len = 2048;
        op.u.attention.q_len = i == 2 ? 2048 : 1, op.u.attention.head_dim = 128, op.u.attention.causal = i == 2;
        break;
    case FT_OP_MLA:
        op.u.mla.batch = 4, op.u.mla.heads = 128, op.u.mla.q_len = 1, op.u.mla.kv_len = 4096, op.u.mla.kv_lora = 512;
        op.u.mla.rope_dim = 64, op.u.mla.nope_dim = op.u.mla.v_dim = 128;
        break;
    case FT_OP_MOE:
        op.u.moe.tokens = 100, op.u.moe.hidden = 4096, op.u.moe.inter = 1024, op.u.moe.topk = 8, op.u.moe.experts = 64;
        break;
    case FT_OP_ELEMENTWISE: op.u.elementwise.numel = 12345678; break;
    case FT_OP_ROW: op.u.row.rows = 4096, op.u.row.cols = 1000; break;
    case FT_OP_CONV2D:
        op.u.conv.n = 32, op.u.conv.c = 64, op.u.conv.h = op.u.conv.w = 56, op.u.conv.k = 64;
        op.u.conv.r = op.u.conv.s = 3, op.u.conv.pad = 1;
        break;
    case FT_OP_OPTIMIZER:
        op.name = "adamw";
        op.u.optimizer.params = 1000000, op.u.optimizer.tensors = 12;
        break;
    case FT_OP_QUANTIZE: op.u.quantize.rows = 1000, op.u.quantize.cols = 4096; break;
    default: op.u.other.bytes = 1e6;
    }
    return op;
}

static void check_forecast(const ft_predictor *p, int number, int which_device)
{
    static ft_device devices[3];
    static const char *const names[] = {"h200_sxm", "l40s", "mi300x"};
    if (!devices[0].name[0])
        for (int d = 0; d < 3; d++) FUZZ_CHECK(ft__catalogue_find(names[d], &devices[d], NULL) == FT_OK);
    const ft_device *device = &devices[which_device];
    ft_op op = op_number(number);
    op.timing = (number + which_device) % 2 ? FT_TIMING_OP : FT_TIMING_DEVICE;
    ft_forecast f, wider;
    FUZZ_CHECK(ft__kernel_forecast(p, device, &op, 0.6, &f, NULL) == FT_OK);
    FUZZ_CHECK(ft__kernel_forecast(p, device, &op, 0.99, &wider, NULL) == FT_OK);
    FUZZ_CHECK(isfinite(f.ms) && isfinite(wider.high_ms) && isfinite(f.sustained_ms) && isfinite(f.launch_ms));
    FUZZ_CHECK(f.low_ms > 0 && f.low_ms <= f.ms && f.ms <= f.high_ms);
    FUZZ_CHECK(wider.low_ms <= f.low_ms && f.high_ms <= wider.high_ms);
    if (p->mode == FT_PREDICT_LEARNED) FUZZ_CHECK(f.ms >= ft__floor_ms(device, &op) * (1 - 1e-12));
}

/* From a block of its own size, so that a read behind the end is seen; aligned as a mapping is. `number`: the operator
 * to ask about, on one of the devices and, as the linear baseline, on another; -1 for all of them. What the bytes say
 * decides: forecasts took most of the time, and this is about reading. */
static void read_and_ask(const void *bytes, size_t size, int number)
{
    void *file = malloc(size ? size : 1);
    FUZZ_CHECK(file);
    if (size) memcpy(file, bytes, size);
    ft_predictor p;
    ft_error err = {0};
    ft_status status = ft__predictor_read(file, size, "fuzz.ftp", &p, &err);
    if (status == FT_OK) {
        uint64_t choice = ft__hash(bytes, size, 1);
        for (int i = 0; i < OPS; i++)
            for (int d = 0; d < 3; d++)
                if (number < 0 || (i == number && (uint64_t)d == choice % 3)) check_forecast(&p, i, d);
        if (number < 0 || choice / 3 % 4 == 0) check_forecast(&p, (number + 1) % OPS, 0); /* of another family */
        p.mode = FT_PREDICT_LINEAR;
        if (number < 0 || choice / 12 % 4 == 0) check_forecast(&p, number < 0 ? 0 : number, 0);
        if (choice / 48 % 32 == 0) { /* it reads its GPU's sheet, which takes longer than all the rest */
            p.mode = FT_PREDICT_SCALING;
            strcpy(p.scaling_from, "h100_sxm");
            check_forecast(&p, number < 0 ? 0 : number, 1);
        }
    } else {
        FUZZ_CHECK(status == FT_E_FORMAT && err.code == status && err.message[0] && err.where[0]);
    }
    free(file);
}

/* An expert of the device, one of the world, one of the linear baseline, for the first variant of a family. */
static void sound_records(const ft_family *family, int variant, records *out)
{
    static const char *const gpus[EXPERTS] = {"h200_sxm", "*", "*"};
    memset(out, 0, sizeof *out);
    for (int i = 0; i < EXPERTS; i++) {
        ft_expert *e = &out->experts[i];
        e->family[0] = '~';
        strcpy(e->family + (i == 2), family->name);
        strcpy(e->variant, family->variant_name(variant));
        strcpy(e->gpu, gpus[i]);
        if (i == 0) strcpy(e->generation, "hopper");
        e->rows = 100;
        e->tree_count = e->sigma_first = 2;
        e->sigma_count = 2;
        e->sigma_base = -3;
        for (int k = 0; k < FT_KIN_LEVELS; k++) {
            e->weight[k] = 0.5f;
            for (int q = 0; q < FT_QUANTILES; q++) e->spread_low[k][q] = e->spread_high[k][q] = (float)(1 + q);
        }
        for (int t = 0; t < family->parameter_count; t++) e->theta[t] = family->parameters[t].start;
    }
    for (int t = 0; t < TREES; t++)
        for (int d = 0; d < FT_TREE_DEPTH; d++) {
            out->trees[t].feature[d] = (uint8_t)((t + d) % family->feature_count);
            out->trees[t].threshold[d] = ft__feature_key((float)d);
            for (int l = 0; l < FT_TREE_LEAVES; l++) out->trees[t].leaf[l] = (int8_t)(2 * (l - 32));
        }
}

/* `data`: places of two bytes and what to put there, among `bytes`. */
static void patch(unsigned char *bytes, size_t count, const uint8_t *data, size_t size)
{
    for (size_t i = 0; i + 2 < size; i += 3) bytes[((size_t)data[i] << 8 | data[i + 1]) % count] = data[i + 2];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { HEADER = 64, CHECKSUM_AT = 16 };
    read_and_ask(data, size, -1);
    if (size < 1) return 0;
    int number = data[0] % (OPS - 1);
    ft_op op = op_number(number);
    int variant;
    records r;
    const ft_family *family = ft__family_of(&op, &variant);
    FUZZ_CHECK(family);
    sound_records(family, variant, &r);
    if (data[0] < 128) patch((unsigned char *)&r, sizeof r, data + 1, size - 1);
    void *file;
    size_t length;
    FUZZ_CHECK(ft__predictor_write(r.experts, EXPERTS, r.trees, TREES, "{}", &file, &length, NULL) == FT_OK);
    if (data[0] >= 128) {
        unsigned char *behind = (unsigned char *)file + HEADER;
        patch(behind, length - HEADER, data + 1, size - 1);
        uint64_t checksum = ft__records_checksum(behind, length - HEADER);
        memcpy((unsigned char *)file + CHECKSUM_AT, &checksum, sizeof checksum);
    }
    read_and_ask(file, length, number);
    free(file);
    return 0;
}

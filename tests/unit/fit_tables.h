/* Small tables of measurements, and fits to them. */
#ifndef FT_TEST_FIT_TABLES_H
#define FT_TEST_FIT_TABLES_H
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/text.h"
#include "data_folder.h"
#include "device/gpu.h"
#include "failing_alloc.h"
#include "fit/fit.h"
#include "graph/operator.h"
#include "kernel/kernel.h"
#include "random_op.h"

/* What the operator would take on a GPU of this world. */
static double made_up_ms(const ft_device *device, const ft_op *op, random_source *r)
{
    double compute = ft__op_flops(op) / (0.7e9 * ft__peak_tflops(device, op->dtype));
    double memory = ft__op_bytes(op) / (0.8e6 * device->memory_gbps), body = fmax(compute, memory);
    if (op->kind != FT_OP_GEMM) body = memory;
    double ms = 2.5e-3 + body;
    if (op->timing == FT_TIMING_OP) ms = ft__op_time(ms, 30e-3);
    return ms * (1 + 0.06 * (random_unit(r) - 0.5));
}

static ft_device device_named(const char *name)
{
    ft_device device;
    assert_int_equal(FT_OK, ft__catalogue_find(name, &device, NULL));
    return device;
}

static void write_own(const char *folder, int products, int pointwise, int rows)
{
    random_source r = {31};
    ft_text text = {0};
    ft_device h200 = device_named("h200_sxm");
    char name[256];
    ft_op op;
    ft__text_add(&text, "dtype,layout,m,n,k,ms\n");
    ft__op_init("gemm", &op);
    op.u.gemm.quantized = 1;
    for (int i = 0; i < products; i++) {
        op.u.gemm.m = 8 * random_size(&r, 1, 1024), op.u.gemm.n = 8 * random_size(&r, 8, 1024);
        op.u.gemm.k = 8 * random_size(&r, 8, 1024);
        ft__text_addf(&text, "bf16,nt,%lld,%lld,%lld,%.9f\n", (long long)op.u.gemm.m, (long long)op.u.gemm.n,
                      (long long)op.u.gemm.k, made_up_ms(&h200, &op, &r));
    }
    snprintf(name, sizeof name, "%s/h200/gemm.csv.gz", folder);
    if (products) data_table(name, text.at);
    ft__text_clear(&text);
    ft__text_add(&text, "dtype,op,inputs,numel,ms\n");
    for (int i = 0; i < pointwise; i++) {
        ft__op_init(i % 2 ? "gelu" : "add", &op);
        op.u.elementwise.numel = random_size(&r, 4096, 1e9);
        ft__text_addf(&text, "bf16,%s,%d,%lld,%.9f\n", op.name, op.u.elementwise.inputs,
                      (long long)op.u.elementwise.numel, made_up_ms(&h200, &op, &r));
    }
    snprintf(name, sizeof name, "%s/h200/elementwise.csv.gz", folder);
    if (pointwise) data_table(name, text.at);
    ft__text_clear(&text);
    ft__text_add(&text, "dtype,op,rows,cols,ms\n");
    ft__op_init("softmax", &op);
    for (int i = 0; i < rows; i++) {
        op.u.row.rows = random_size(&r, 64, 65536), op.u.row.cols = 8 * random_size(&r, 8, 1024);
        ft__text_addf(&text, "bf16,softmax,%lld,%lld,%.9f\n", (long long)op.u.row.rows, (long long)op.u.row.cols,
                      made_up_ms(&h200, &op, &r));
    }
    snprintf(name, sizeof name, "%s/h200/rowwise.csv.gz", folder);
    if (rows) data_table(name, text.at);
    ft__text_free(&text);
}

/* Softmax as NeuSight timed it, on two siblings and on two GPUs that stand alone. */
static void write_eager(const char *folder, int rows_each)
{
    static const struct {
        const char *theirs, *ours;
    } gpus[] = {{"NVIDIA_A100-PCIE-40GB", "a100_pcie_40gb"},
                {"NVIDIA_A100-SXM4-40GB", "a100_sxm_40gb"},
                {"Tesla_T4", "t4"},
                {"Tesla_V100-PCIE-32GB", "v100_pcie_32gb"}};
    random_source r = {32};
    ft_text text = {0};
    ft_op op;
    char name[256];
    ft__op_init("softmax", &op);
    op.dtype = op.kv_dtype = FT_FP32;
    op.timing = FT_TIMING_OP;
    ft__text_add(&text, "gpu,split,b,h,latency_ms\n");
    for (size_t g = 0; g < sizeof gpus / sizeof *gpus; g++) {
        ft_device device = device_named(gpus[g].ours);
        for (int i = 0; i < rows_each; i++) {
            op.u.row.rows = random_size(&r, 64, 65536), op.u.row.cols = random_size(&r, 64, 8192);
            ft__text_addf(&text, "%s,%s,%lld,%lld,%.9f\n", gpus[g].theirs, i % 5 ? "train" : "test",
                          (long long)op.u.row.rows, (long long)op.u.row.cols, made_up_ms(&device, &op, &r));
        }
    }
    snprintf(name, sizeof name, "%s/neusight/softmax.csv.gz", folder);
    data_table(name, text.at);
    ft__text_free(&text);
}

typedef struct result {
    void *file;
    size_t length;
    ft_accuracy_table accuracy;
    char folder[1024];
    const char *data[1];
    ft_fit_options options;
} result;

static void asks_for(result *out, const char *folder, int threads)
{
    memset(out, 0, sizeof *out);
    snprintf(out->folder, sizeof out->folder, "%s", scratch_path(folder));
    out->data[0] = out->folder;
    out->options = (ft_fit_options){.data = out->data, .data_count = 1, .threads = threads};
}

static void fit(result *out)
{
    ft_error err = {0};
    if (ft__fit(&out->options, &out->file, &out->length, &out->accuracy, &err) != FT_OK) fail_msg("%s", err.message);
}

static void free_result(result *r)
{
    free(r->file);
    ft__accuracy_free(&r->accuracy);
}
#endif

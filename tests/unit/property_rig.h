/* The GPUs and the predictor that properties are tried on. */
#ifndef FT_TEST_PROPERTY_RIG_H
#define FT_TEST_PROPERTY_RIG_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "device/gpu.h"
#include "kernel/kernel.h"
#include "random_op.h"

/* Measured in one way or another, siblings of those, and strangers; every vendor and generation since Pascal. */
static const char *const device_names[] = {
    "h200_sxm",      "h100_sxm", "b200_sxm", "a100_sxm_80gb", "l40s", "l4",    "t4",  "p4",       "v100_pcie_32gb",
    "v100_sxm_32gb", "mi210",    "mi300x",   "rtx_5090",      "b60",  "gb300", "h20", "rtx_4090", "a30"};
enum { NAMED = sizeof device_names / sizeof *device_names, DEVICES = NAMED + 3 };

static const char *const kind_names[RANDOM_KINDS] = {
    "gemm",        "bmm", "prefill", "attention backward", "decode",   "mla prefill", "mla decode", "moe",
    "elementwise", "row", "conv",    "optimizer",          "quantize", "unknown"};

static ft_predictor *predictor;
static ft_device devices[DEVICES];

static int open_all(void **state)
{
    (void)state;
    ft_error err = {0};
    if (ft__predictor_open(NULL, &predictor, &err) != FT_OK) {
        print_error("the library has no predictor of its own: %s\n", err.message);
        return -1;
    }
    for (int d = 0; d < NAMED; d++)
        if (ft__catalogue_find(device_names[d], &devices[d], &err) != FT_OK) return -1;
    ft_device *own = &devices[NAMED]; /* as a user's spec file would change them */
    own[0] = devices[0];
    strcpy(own[0].name, "h200_half");
    own[0].sms = 66;
    own[0].memory_gbps = 2400;
    own[0].tdp_w = 300;
    for (int t = 0; t < FT_DTYPE_COUNT; t++) own[0].peak_tflops[t] *= 0.5, own[0].vector_tflops[t] *= 0.5;
    own[1] = devices[2];
    strcpy(own[1].name, "b200_next");
    strcpy(own[1].generation, "nobody_knows");
    own[1].memory_gbps = 20000;
    own[1].l2_mib = 512;
    for (int t = 0; t < FT_DTYPE_COUNT; t++) own[1].peak_tflops[t] *= 3;
    own[2] = devices[6];
    strcpy(own[2].name, "toy");
    strcpy(own[2].generation, "toy");
    own[2].vendor = FT_VENDOR_OTHER;
    own[2].sms = 4;
    own[2].lanes_per_sm = 16;
    own[2].l2_mib = 0.25;
    own[2].memory_gbps = 10;
    own[2].boost_mhz = 400;
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    ft__predictor_close(predictor);
    return 0;
}

static ft_forecast forecast_at(const ft_device *device, const ft_op *op, double quantile)
{
    ft_forecast f;
    ft_error err = {0};
    if (ft__kernel_forecast(predictor, device, op, quantile, &f, &err) != FT_OK) fail_msg("%s", err.message);
    return f;
}

static double ms_on(const ft_device *device, const ft_op *op) { return forecast_at(device, op, 0.9).ms; }

/* "mla decode fp8 on h100_sxm (1 16 1 1536 ...)" */
static const char *told(random_kind kind, const ft_device *device, const ft_op *op)
{
    static char text[512];
    int64_t sizes[9];
    memcpy(sizes, &op->u, sizeof sizes);
    int n = snprintf(text, sizeof text, "%s %s %s pass %d timing %d engine %d on %s (", kind_names[kind], op->name,
                     ft_dtype_name(op->dtype), op->pass, op->timing, op->engine, device->name);
    for (int i = 0; i < 9; i++) n += snprintf(text + n, sizeof text - (size_t)n, " %lld", (long long)sizes[i]);
    return text;
}
#endif

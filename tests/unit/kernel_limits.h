/* What every family's physics must obey, for the tests of each: constants at their starting values, no predictor. */
#ifndef FT_TEST_KERNEL_LIMITS_H
#define FT_TEST_KERNEL_LIMITS_H
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "device/gpu.h"
#include "graph/operator.h"
#include "kernel/family.h"
#include "kernel/kernel.h"

static const char *const limit_devices[] = {"h200_sxm", "a100_pcie_40gb", "t4", "p4", "l40s", "b200_sxm", "mi210"};
enum { LIMIT_DEVICES = sizeof limit_devices / sizeof *limit_devices };

static inline ft_device limit_device(const char *name)
{
    ft_device device;
    assert_int_equal(FT_OK, ft__catalogue_find(name, &device, NULL));
    return device;
}

/* A part that no catalogue lists: few SMs, little cache, slow memory. */
static inline ft_device limit_stranger(void)
{
    ft_device device = limit_device("t4");
    strcpy(device.name, "stranger");
    strcpy(device.generation, "unknown");
    device.vendor = FT_VENDOR_OTHER;
    device.sms = 6;
    device.lanes_per_sm = 32;
    device.l2_mib = 0.5;
    device.memory_gbps = 30;
    return device;
}

/* Device time of the op, constants as the table starts them; every figure and feature must be a number. */
static inline double limit_ms(const ft_device *device, const ft_op *op)
{
    int variant;
    const ft_family *family = ft__family_of(op, &variant);
    assert_non_null(family);
    assert_true(variant >= 0 && variant < family->variant_count);
    assert_true(family->feature_count <= FT_MAX_FEATURES && family->parameter_count <= FT_MAX_THETA);
    double theta[FT_MAX_THETA] = {0};
    for (int i = 0; i < family->parameter_count; i++) theta[i] = family->parameters[i].start;
    ft_physics ph;
    memset(&ph, 0, sizeof ph);
    for (int i = 0; i < FT_MAX_FEATURES; i++) ph.feature[i] = NAN; /* as many are filled as have names */
    family->physics(device, op, theta, true, &ph);
    if (family->feature_count < FT_MAX_FEATURES && !isnan(ph.feature[family->feature_count]))
        fail_msg("%s fills more features than it names", family->name);
    for (int i = 0; i < family->feature_count; i++)
        if (!isfinite(ph.feature[i])) fail_msg("%s of %s is not a number", family->feature_names[i], op->name);
    double ms = theta[FT_THETA_LAUNCH_US] * 1e-3 * ft__clock_scale(device) + ph.body_ms;
    if (!isfinite(ms) || !(ms > 0)) fail_msg("%s takes %g ms", op->name, ms);
    return op->timing == FT_TIMING_OP ? ft__op_time(ms, theta[FT_THETA_GAP_US] * 1e-3) : ms;
}

static inline void assert_above_floor(const ft_device *device, const ft_op *op)
{
    double ms = limit_ms(device, op), floor_ms = ft__floor_ms(device, op);
    if (ms < floor_ms) fail_msg("%s on %s: %g ms is under the floor of %g", op->name, device->name, ms, floor_ms);
}

/* More of a resource never makes an operator slower, to rounding. */
static inline void assert_not_slower(const char *what, double before_ms, double after_ms)
{
    if (after_ms > before_ms * 1.0001) fail_msg("%s: %g ms became %g", what, before_ms, after_ms);
}

static inline void assert_falls_with_bandwidth(ft_device device, const ft_op *op)
{
    double before = limit_ms(&device, op);
    device.memory_gbps *= 1.5;
    assert_not_slower("half as much bandwidth again", before, limit_ms(&device, op));
}

/* Constants lie inside their bounds, variants have names of their own, fallbacks end. */
static inline void assert_sound_tables(const ft_family *family)
{
    for (int i = 0; i < family->parameter_count; i++) {
        const ft_parameter *p = &family->parameters[i];
        if (!p->name || !(p->low > 0 && p->low <= p->start && p->start <= p->high))
            fail_msg("%s: constant %d starts outside its bounds", family->name, i);
    }
    for (int i = 0; i < family->feature_count; i++) assert_non_null(family->feature_names[i]);
}
#endif

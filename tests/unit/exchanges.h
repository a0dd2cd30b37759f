/* Exchanges on clusters by name. */
#ifndef FT_TEST_EXCHANGES_H
#define FT_TEST_EXCHANGES_H
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "comm/collective.h"
#include "device/gpu.h"

static ft_device device_of(const char *name)
{
    ft_device d;
    assert_int_equal(FT_OK, ft__catalogue_find(name, &d, NULL));
    return d;
}

static ft_cluster cluster_of(const char *gpu, int64_t ranks, const char *interconnect)
{
    ft_device d = device_of(gpu);
    ft_cluster c;
    json_t *object = interconnect ? json_pack("{s:s}", "interconnect", interconnect) : NULL;
    assert_int_equal(FT_OK, ft__cluster_read(object, &d, ranks, &c, NULL));
    json_decref(object);
    return c;
}

/* With the built-in predictor, and with one that holds nothing. */
static ft_predictor *built_in;

static int open_predictor(void **state)
{
    (void)state;
    return ft__predictor_open(NULL, &built_in, NULL) == FT_OK ? 0 : -1;
}
static int close_predictor(void **state)
{
    (void)state;
    ft__predictor_close(built_in);
    return 0;
}

static ft_comm of(const ft_predictor *p, const char *gpu, const ft_cluster *c, ft_collective op, double bytes,
                  int64_t size, int64_t stride)
{
    ft_device d = device_of(gpu);
    ft_comm out;
    ft_error err = {0};
    ft_group g = {.size = size, .stride = stride};
    if (ft__collective_forecast(p, &d, c, op, bytes, &g, 0.9, &out, &err) != FT_OK) fail_msg("%s", err.message);
    assert_true(isfinite(out.ms) && isfinite(out.high_ms) && out.low_ms > 0);
    assert_true(out.low_ms <= out.ms && out.ms <= out.high_ms && out.latency_ms <= out.ms);
    assert_true(out.tier >= 0 && out.tier < c->tiers && out.algorithm[0] && out.protocol[0]);
    assert_true(out.gpu_share > 0 && out.gpu_share <= 1);
    return out;
}
#endif

/* conv_product.c: one product of a convolution: which tile, how often K is shared out, how long.
 *
 * The search is a matrix product's (gemm_tiles.c), over the tiles that cuDNN has for convolutions, with their own
 * feed, prologue and waves: matrix units and vector units are different kernels, and 1x1 filters are plain products. */
#include "kernel/conv_product.h"

#include <math.h>
#include <string.h>

#include "kernel/conv_constants.h"
#include "kernel/conv_theta.h"
#include "kernel/gemm_constants.h"
#include "kernel/kernel.h"
#include "kernel/power.h"

static const ft_gemm_tile matrix_tiles[] = {{256, 128}, {128, 256}, {128, 128}, {256, 64}, {64, 256},
                                            {128, 64},  {64, 128},  {64, 64},   {128, 32}, {32, 128},
                                            {64, 32},   {32, 64},   {256, 32},  {128, 16}, {16, 128}};
static const ft_gemm_tile vector_tiles[] = {{256, 64}, {128, 128}, {32, 32}, {128, 64}, {64, 128},
                                            {128, 32}, {32, 128},  {64, 64}, {64, 32},  {128, 16},
                                            {16, 128}, {128, 8},   {8, 128}};
enum {
    MATRIX_TILES = sizeof matrix_tiles / sizeof *matrix_tiles,
    VECTOR_TILES = sizeof vector_tiles / sizeof *vector_tiles,
    MATRIX_FAVOURITES = 1 << 0 | 1 << 2 | 1 << 7, /* 256x128, 128x128, 64x64 */
    VECTOR_FAVOURITES = 1 << 0 | 1 << 2 | 1 << 5  /* 256x64, 32x32, 128x32 */
};

ft_gemm_tile ft__conv_tile(bool matrix, int at) { return (matrix ? matrix_tiles : vector_tiles)[at]; }

/* Share of the rate that a tile of so many outputs reaches on vector units. */
static double vector_rate(int outputs)
{
    int at = 0;
    while (at < FT_K_CONV_VECTOR_TILES_COUNT - 1 && outputs < ft__k_conv_vector_tiles[at].outputs) at++;
    return ft__k_conv_vector_tiles[at].rate;
}

void ft__conv_run(const ft_device *device, const ft_op *op, const double *th, ft_conv_product p, bool matrix, bool want,
                  ft_gemm_pick *out)
{
    double e = ft_dtype_bytes(op->dtype), runs = ft__running_mhz(device) / device->boost_mhz;
    double peak = ft__peak_tflops(device, op->dtype) * runs * 1e9, cap = matrix ? ft__matrix_cap(device, op->dtype) : 1;
    double narrow[MATRIX_TILES > VECTOR_TILES ? MATRIX_TILES : VECTOR_TILES];
    const ft_gemm_tile *tiles = matrix ? matrix_tiles : vector_tiles;
    int count = matrix ? MATRIX_TILES : VECTOR_TILES;
    /* A warp group's instruction has 64 rows: narrower tiles are kernels of the generation before. */
    bool groups = matrix && !p.older && !p.point && device->matrix_fma_per_clk_sm > FT_K_CONV_OLDER_FMA;
    for (int t = 0; t < count; t++)
        narrow[t] = !matrix                                          ? vector_rate(tiles[t].m * tiles[t].n)
                    : groups && (tiles[t].m < 64 || tiles[t].n < 64) ? th[TAPS49] * FT_K_CONV_OLDER_FEED
                                                                     : 1;
    /* Too few tiles for the SMs: K is shared out, by whole factors beyond the sixteen that the search tries. */
    double plain = fmax(1, ceil(p.m / 64) * ceil(p.n / 64) * p.b), room = floor(device->sms / plain), before = 1;
    if (p.split > 16 && room > 16) before = fmin(fmin(room / 16, p.k / FT_K_CONV_SPLIT_K), FT_K_CONV_SPLIT_MOST);
    before = fmax(1, floor(before));
    ft_gemm_search s = {
        .batch = p.b * before,
        .m = p.m,
        .n = p.n,
        .k = p.k / before,
        .sms = device->sms,
        .tiles = tiles,
        .tile_count = count,
        .tile_efficiency = narrow,
        .flop_per_ms_sm = p.rate * peak / cap / device->sms,
        .cap = cap < 1 ? cap : 0,
        .capped_flop_per_ms_sm = peak / device->sms,
        .feed_bytes_per_ms_sm =
            matrix ? fmax(th[FEED] * (p.older ? FT_K_CONV_OLDER_FEED : 1) * e / 2 * peak / cap / device->sms,
                          ft__gemm_least_feed(ft__running_mhz(device)))
                   : FT_K_GEMM_VECTOR_FEED * ft__running_mhz(device) * 1e3,
        .element_bytes = e,
        .k_step = matrix ? 64 / e : 8,
        .prologue_k = th[p.point ? POINT_PROLOGUE : PROLOGUE] * (matrix ? 2 / e : FT_K_CONV_VECTOR_PROLOGUE),
        .lone = matrix ? 1 : FT_K_CONV_VECTOR_LONE,
        .wave_ms = th[p.point ? POINT_WAVE_US : WAVE_US] * 1e-3,
        .hidden = matrix && !p.point ? FT_K_CONV_HIDDEN : 0,
        .quantisation = FT_K_CONV_QUANTISATION,
        .memory_ms = 0,
        .smooth = 0,
        .split_ms = th[SPLIT_US] * 1e-3,
        .split_ms_per_element = ft__gemm_partial_ms(device),
        .habit = th[HABIT],
        .allowed = p.allowed,
        .favourites = matrix ? MATRIX_FAVOURITES : VECTOR_FAVOURITES,
        .max_split = (int)fmax(1, p.split > 16 ? 16 : fmin(p.split, room)),
    };
    ft__gemm_pick(&s, want, out);
    double slow = ft__power_slowdown(device, op->dtype, 1, ft__capped_efficiency(p.rate, cap) * peak * 1e-9,
                                     out->compute_ms / FT_K_CONV_POWER_MS);
    out->ms += (slow - 1) * out->compute_ms;
}

void ft__conv_turn(const ft_device *device, const ft_op *op, const double *th, ft_conv_product p, double move,
                   ft_gemm_pick *pick)
{
    ft_gemm_pick turned = {0};
    ft__conv_run(device, op, th, p, true, false, &turned);
    if (turned.ms + move >= pick->ms) return;
    memcpy(turned.log_ratio, pick->log_ratio, sizeof turned.log_ratio);
    *pick = turned;
    pick->ms += move;
}

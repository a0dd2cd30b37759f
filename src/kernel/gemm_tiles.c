/* Tiles, waves and split-K, after NeuSight's decomposition (tiles = prod ceil(x/t), waves = ceil(tiles/SMs)) with what
 * it leaves out: libraries choose the tile that is fastest and split K when there are too few tiles to fill the GPU.
 *
 *   tiles = ceil(M/bm) ceil(N/bn) s b        waves = tiles / SMs, rounded up by the share `quantisation`
 *   t_mma = 2 bm bn (Ke + ks) / rate         Ke = K/s rounded up to the K step
 *   t_feed = (bm + bn) bytes Ke / feed       operands through L2
 *   T_c = waves (max(t_mma, t_feed) + t_wave)          less what waves behind the first hide of t_wave
 *
 * The loop runs for every GEMM forecast over some 20 tiles and up to 5 splits, so it keeps to additions,
 * multiplications and ceil. */
#include "kernel/gemm_tiles.h"

#include <math.h>

#include "device/traits.h"
#include "kernel/gemm_constants.h"
#include "kernel/power.h"

static const double splits[] = {1, 2, 4, 8, 16}, fine_splits[] = {1, 2, 3, 4, 6, 8, 11, 16, 22, 32, 43, 64, 86};
enum { SPLITS = sizeof splits / sizeof *splits, FINE_SPLITS = sizeof fine_splits / sizeof *fine_splits };

/* A tile that takes `work` at its units' own rate, of units held to `cap` of it that need `multiplied`: what beyond the
 * units' time it took belongs to the SM and hides behind slower ones, its first loads and last stores among it. */
static double behind_slow_units(double work, double multiplied, double cap)
{
    double own = multiplied * cap, rest = fmax(0, work * work * work - own * own * own);
    return fmax(cbrt(multiplied * multiplied * multiplied + rest), multiplied / FT_K_GEMM_CAPPED_MOST);
}

void ft__gemm_pick(const ft_gemm_search *s, bool want_ratios, ft_gemm_pick *out)
{
    double best = INFINITY, best_unsplit = INFINITY, habitual = INFINITY, habitual_compute = INFINITY;
    double unsplit[FT_GEMM_MAX_TILES];
    double inverse_sms = 1 / s->sms, inverse_feed = 1 / s->feed_bytes_per_ms_sm, inverse_step = 1 / s->k_step;
    out->ms = out->compute_ms = INFINITY; /* what stands where no tile has a finite time */
    out->tile = 0, out->split = 1, out->tiles = out->waves = 0;
    const double *split_by = s->finely ? fine_splits : splits;
    int split_count = s->finely ? FINE_SPLITS : SPLITS;
    double most_tiles = (s->finely ? FT_K_GEMM_MOST_TILES_FINELY : FT_K_GEMM_MOST_TILES) * s->sms;
    double least_k = s->least_k > 0 ? s->least_k : s->finely ? 2 * s->k_step : FT_K_GEMM_LEAST_K;
    double piece[FINE_SPLITS]; /* of K, rounded up to its step: the same for every tile */
    for (int i = 0; i < split_count && split_by[i] <= s->max_split; i++)
        piece[i] = s->k_step * ceil(s->k / split_by[i] * inverse_step);
    for (int t = 0; t < s->tile_count; t++) {
        double bm = s->tiles[t].m, bn = s->tiles[t].n, wave_ms = s->wave_ms + bm * bn * s->wave_ms_per_element;
        double plane = ceil(s->m / bm) * ceil(s->n / bn) * s->batch;
        double rate = s->flop_per_ms_sm * (s->tile_efficiency ? s->tile_efficiency[t] : 1);
        double mma_at_cap = s->cap > 0 ? 2 * bm * bn / s->capped_flop_per_ms_sm : 0;
        double mma = 2 * bm * bn / rate, feed = (bm + bn) * s->element_bytes * inverse_feed;
        for (int i = 0; i < split_count && split_by[i] <= s->max_split; i++) {
            double split = split_by[i], ke = piece[i];
            if (i && (plane * split > most_tiles || s->k < least_k * split)) break;
            double load = plane * split * inverse_sms;
            double share = s->lone + (1 - s->lone) * fmin(fmax(load - 1, 0), 1);
            double work = mma * (ke + s->prologue_k) / share;
            if (s->cap > 0) work = behind_slow_units(work, mma_at_cap * ke, s->cap);
            double each = fmax(work, feed * ke) + wave_ms;
            double waves = s->quantisation * ceil(load) + (1 - s->quantisation) * fmax(load, 1);
            double compute = waves * each - s->hidden * wave_ms * (waves - 1);
            if (i == 0) {
                unsplit[t] = compute;
                if (compute < best_unsplit) best_unsplit = compute;
            }
            if (split < s->min_split || (s->allowed && !(s->allowed >> t & 1))) continue;
            bool favourite = s->favourites >> t & 1;
            if (compute >= best && !(favourite && compute < habitual)) continue; /* memory and a split only add to it */
            double total = ft__smooth_max(compute, s->memory_ms, s->smooth);
            if (i) total += s->split_ms + s->split_ms_per_element * split * s->batch * s->m * s->n;
            if (favourite && total < habitual) habitual = total, habitual_compute = compute;
            if (total < best) {
                best = total;
                out->ms = total;
                out->compute_ms = compute;
                out->tile = t;
                out->split = (int)split;
                out->tiles = plane * split;
                out->waves = load;
            }
        }
    }
    if (habitual < INFINITY) {
        out->ms += s->habit * (habitual - out->ms);
        out->compute_ms += s->habit * (fmax(habitual_compute, out->compute_ms) - out->compute_ms);
    }
    if (want_ratios)
        for (int t = 0; t < s->tile_count; t++) out->log_ratio[t] = (float)(unsplit[t] / best_unsplit);
}

void ft__gemm_outcome(const ft_device *device, const ft_op *op, const ft_gemm_search *s, ft_gemm_power power,
                      double scale, bool want_ratios, ft_gemm_pick *pick, ft_physics *out)
{
    ft__gemm_pick(s, want_ratios, pick);
    double full_ms = pick->compute_ms, achieved = power.tflops;
    if (s->finely) { /* held by small copies, it draws for what it achieves; but it is never faster than without them */
        full_ms = 2 * s->m * s->n * s->k * s->batch / (power.tflops * 1e9);
        achieved *= full_ms / fmax(full_ms, pick->compute_ms);
    }
    double us = 1e3 / power.time_us;
    double slow = ft__power_slowdown(device, op->dtype, power.energy, achieved, pick->compute_ms * us);
    double compute = pick->compute_ms * slow;
    if (s->finely)
        compute = fmax(compute,
                       full_ms * ft__power_slowdown(device, op->dtype, power.energy, power.tflops, full_ms * us));
    out->compute_ms = compute;
    out->memory_ms = s->memory_ms;
    out->body_ms = (pick->ms - ft__smooth_max(pick->compute_ms, s->memory_ms, s->smooth) +
                    ft__smooth_max(compute, s->memory_ms, s->smooth)) *
                   scale;
    out->tile_m = s->tiles[pick->tile].m;
    out->tile_n = s->tiles[pick->tile].n;
    out->split_k = pick->split;
    out->tiles = pick->tiles;
    out->waves = pick->waves;
}

double ft__gemm_partial_ms(const ft_device *device)
{
    return 8 / (FT_K_GEMM_PARTIALS_GAIN * device->memory_gbps * 1e6);
}

double ft__gemm_least_feed(double mhz) { return FT_K_GEMM_LEAST_FEED * mhz * 1e3; }

int ft__gemm_alignment(int64_t elements, double element_bytes)
{
    double bytes = (double)elements * element_bytes;
    for (int a = 16; a > 1; a /= 2)
        if (fmod(bytes, a) == 0) return a;
    return 1;
}

int ft__gemm_op_alignment(const ft_op *op, int each[3])
{
    double e = ft_dtype_bytes(op->dtype);
    bool a_t = op->u.gemm.layout[0] == 't', b_t = op->u.gemm.layout[1] == 't';
    /* An operand with one row or column is a vector, whichever way it is said to be stored. */
    bool one_m = op->u.gemm.m == 1, one_n = op->u.gemm.n == 1;
    each[0] = ft__gemm_alignment(a_t && !one_m ? op->u.gemm.m : op->u.gemm.k, e);
    each[1] = ft__gemm_alignment(b_t || one_n ? op->u.gemm.k : op->u.gemm.n, e);
    each[2] = ft__gemm_alignment(one_n ? op->u.gemm.m : op->u.gemm.n, fmax(e, 2));
    int least = each[0] < each[1] ? each[0] : each[1];
    return least < each[2] ? least : each[2];
}

double ft__gemm_bytes(const ft_device *device, const ft_op *op, double capacity, double *resident)
{
    double e = ft_dtype_bytes(op->dtype), m = (double)op->u.gemm.m, n = (double)op->u.gemm.n, k = (double)op->u.gemm.k;
    double a = e * m * k, b = e * k * n, c = fmax(e, 2) * m * n, batch = (double)op->u.gemm.b;
    double l2 = device->l2_mib * 1048576;
    /* SMs work on a square of outputs at a time; the operand that has to be walked again
     * for every such square is read again from memory as far as it does not stay in L2. */
    double side = sqrt(device->sms * FT_K_GEMM_IN_FLIGHT);
    double again = fmin(a * fmax(0, n / side - 1), b * fmax(0, m / side - 1));
    double fit = FT_K_GEMM_AGAIN_SHARE * l2 / (a + b), over = 1 / (1 + fit * fit);
    /* Benchmarks rotate copies of the weights, as far as needed to fill L2; a working set stays as long as it fits, and
     * is gone soon after. Parts with HBM lose it earlier: each half of their L2 keeps copies of the other's lines. */
    double l2_counts = capacity * l2 * (device->memory_is_hbm ? FT_K_GEMM_HBM_SHARE : 1);
    double copies = fmin(FT_K_GEMM_ROTATED, ceil(l2 / (b * batch)));
    double x = (copies * b * batch + (a + c) * batch) / l2_counts;
    x *= x;
    x *= x;
    *resident = 1 / (1 + x * x);
    return batch * (a + b + c + again * over);
}

double ft__gemm_memory_ms(const ft_device *device, double bytes, double resident, double bandwidth_efficiency,
                          double warm, double l2_bytes_per_flop, double ramp_ms)
{
    double from_l2 = bytes * resident * warm;
    double stream = (bytes - from_l2) / (bandwidth_efficiency * device->memory_gbps * 1e6);
    double peak = device->peak_tflops[FT_FP16] > 0 ? device->peak_tflops[FT_FP16] / ft__matrix_cap(device, FT_FP16)
                                                   : device->peak_tflops[FT_FP32];
    return stream + ramp_ms * stream / (stream + FT_K_GEMM_RAMP_SPREAD * ramp_ms) +
           from_l2 / (l2_bytes_per_flop * peak * 1e9);
}

/* check.c: can these figures be true together?
 *
 * A peak rate is units per clock and SM, times SMs, times clock, times two because a fused multiply-add counts twice:
 *
 *     A100: 108 SMs x 64 lanes   x 2 x 1.41 GHz =  19.5 TFLOP/s fp32, vector units
 *           108 SMs x 512 FMA    x 2 x 1.41 GHz = 156   TFLOP/s tf32, matrix units
 *           108 SMs x 1024 FMA   x 2 x 1.41 GHz = 312   TFLOP/s fp16 and bf16
 *
 * Data sheets contradict this by up to a tenth: boost clocks differ between boards and peaks are quoted at other
 * clocks (H100: fp32 at 1,980 MHz, matrix peaks at 1,830). Beyond 12 % somebody is wrong and the user hears of it. A
 * factor of two is usually the figure for structured sparsity, which no dense kernel reaches; beyond a factor of five
 * the figure is refused. What is refused elsewhere: a single figure out of any range (spec.c).
 */
#include <math.h>
#include <string.h>

#include "device/guesses_constants.h"
#include "device/spec.h"

static const double tolerance = FT_K_GUESSES_TOLERANCE;
static const double impossible = 5;

static bool near(double ratio, double target) { return fabs(ratio / target - 1) <= tolerance; }

static ft_status check_vector(const ft_spec *s, const char *where, ft_text *warnings, ft_error *err)
{
    char path[256];
    double peak = s->vector.tflops[FT_FP32];
    if (!(peak > 0)) return FT_OK;
    double lanes = s->number[FT_SPEC_LANES], sms = s->number[FT_SPEC_SMS], clock = s->number[FT_SPEC_CLOCK_MHZ];
    double rate = ft__spec_tflops(s, lanes, clock), ratio = peak / rate;
    if (ratio > impossible)
        return ft__fail_at(err, FT_E_SPEC, ft__spec_path(path, where, "peak_tflops.fp32"), 0, 0,
                           "%.4g TFLOP/s of fp32 are impossible: %g SMs x %g lanes x 2 x %g MHz give %.4g", peak, sms,
                           lanes, clock, rate);
    if (!near(ratio, 1))
        ft__warn(warnings,
                 "fp32 without matrix units is %.4g TFLOP/s, but %g SMs x %g lanes x 2 x %g MHz give %.4g (%+.0f %%)",
                 peak, sms, lanes, clock, rate, 100 * (ratio - 1));
    return FT_OK;
}

/* int8 and fp4 are always accumulated at full rate, where a GeForce halves what accumulates in fp32. */
static double full_rate_gain(const ft_spec *s, ft_dtype d)
{
    bool unhalved = d == FT_INT8 || d == FT_FP4;
    double half = s->half_accumulate.tflops[FT_FP16], peak = s->peak.tflops[FT_FP16];
    return unhalved && half > peak && peak > 0 ? half / peak : 1;
}

static ft_status check_matrix(const ft_spec *s, ft_dtype d, const char *where, ft_text *warnings, ft_error *err)
{
    char path[256], key[48] = "peak_tflops.";
    double peak = s->peak.tflops[d], factor = ft__matrix_factor(s, d) * full_rate_gain(s, d);
    double fma = s->number[FT_SPEC_MATRIX_FMA] * factor;
    if (!(peak > 0)) return FT_OK;
    const char *name = ft_dtype_name(d);
    strncat(key, name, sizeof key - strlen(key) - 1);
    if (!(fma >
          0)) { /* packed and dot-product instructions: at most 4 x fp32 (P4's DP4A); twice that for the unknown */
        double vector = ft__spec_tflops(s, s->number[FT_SPEC_LANES], s->number[FT_SPEC_CLOCK_MHZ]);
        if (peak <= 8 * vector) return FT_OK;
        return ft__fail_at(
            err, FT_E_SPEC, ft__spec_path(path, where, key), 0, 0,
            "%.5g TFLOP/s of %s need matrix units, and matrix_fma_per_clk_per_sm says there are none (fp32 "
            "lanes give %.4g)",
            peak, name, vector);
    }
    if (s->number[FT_SPEC_MATRIX_FMA] > 65536)
        return ft__fail_at(err, FT_E_SPEC, ft__spec_path(path, where, key), 0, 0,
                           "%.5g TFLOP/s of %s are impossible: %g SMs would need %g FMA per clock each", peak, name,
                           s->number[FT_SPEC_SMS], fma);
    double sms = s->number[FT_SPEC_SMS], clock = s->number[FT_SPEC_MATRIX_MHZ];
    double rate = ft__spec_tflops(s, fma, clock), ratio = peak / rate;
    if (ratio > impossible)
        return ft__fail_at(err, FT_E_SPEC, ft__spec_path(path, where, key), 0, 0,
                           "%.5g TFLOP/s of %s are impossible: %g SMs x %g FMA x 2 x %.5g MHz give %.4g", peak, name,
                           sms, fma, clock, rate);
    if (near(ratio, 1)) return FT_OK;
    double half = s->half_accumulate.tflops[d];
    if (half > 0 && near(peak / half, 1))
        ft__warn(warnings,
                 "%s: %.5g looks like the rate with fp16 accumulation; with fp32, as frameworks compute, it is %.4g",
                 key, peak, rate);
    else if (near(ratio, 2))
        ft__warn(warnings,
                 "%s: %.5g looks like the figure with structured sparsity; the dense one is %.5g (%g SMs x %g FMA x "
                 "2 x %.5g MHz)",
                 key, peak, peak / 2, sms, fma, clock);
    else if (ratio > 1 || (d != FT_INT8 && d != FT_FP4)) /* these two are cut down on some parts */
        ft__warn(warnings, "%s is %.5g, but %g SMs x %g FMA x 2 x %.5g MHz give %.4g (%+.0f %%)", key, peak, sms, fma,
                 clock, rate, 100 * (ratio - 1));
    return FT_OK;
}

/* fp64, and fp32 of AMD: the peak may be the matrix units', at no published rate; it is held against fp16. */
static ft_status check_wide(const ft_spec *s, ft_dtype d, const char *where, ft_error *err)
{
    char path[256], key[48] = "peak_tflops.";
    strncat(key, ft_dtype_name(d), sizeof key - strlen(key) - 1);
    double peak = s->peak.tflops[d];
    double vector = ft__spec_tflops(s, s->number[FT_SPEC_LANES], s->number[FT_SPEC_CLOCK_MHZ]);
    double matrix = ft__spec_tflops(s, s->number[FT_SPEC_MATRIX_FMA], s->number[FT_SPEC_MATRIX_MHZ]);
    double most = fmax(vector, matrix / 2);
    if (peak > impossible * most)
        return ft__fail_at(
            err, FT_E_SPEC, ft__spec_path(path, where, key), 0, 0,
            "%.4g TFLOP/s of %s are impossible: neither %g lanes per SM (%.4g) nor the matrix units (%.4g in "
            "fp16) reach them",
            peak, ft_dtype_name(d), s->number[FT_SPEC_LANES], vector, matrix);
    return FT_OK;
}

static ft_status check_clocks(const ft_spec *s, const char *where, ft_text *warnings, ft_error *err)
{
    char path[256];
    static const ft_spec_number below[] = {FT_SPEC_BASE_MHZ, FT_SPEC_SUSTAINED_MHZ};
    double clock = s->number[FT_SPEC_CLOCK_MHZ], matrix = s->number[FT_SPEC_MATRIX_MHZ];
    for (size_t i = 0; i < sizeof below / sizeof *below; i++)
        if (s->number[below[i]] > FT_K_GUESSES_OVER_BOOST * clock)
            return ft__fail_at(err, FT_E_SPEC, ft__spec_path(path, where, ft__spec_key(below[i])), 0, 0,
                               "\"%s\" is %g MHz, above the boost clock (clock_mhz) of %g", ft__spec_key(below[i]),
                               s->number[below[i]], clock);
    if (matrix > 0 && s->number[FT_SPEC_MATRIX_FMA] > 0 &&
        (matrix > FT_K_GUESSES_MATRIX_CLOCK_HIGH * clock || matrix < FT_K_GUESSES_MATRIX_CLOCK_LOW * clock))
        ft__warn(warnings,
                 "matrix_mhz is %.5g at a boost clock of %g MHz: matrix peaks are usually quoted at 85 to 100 %% of it",
                 matrix, clock);
    return FT_OK;
}

static ft_status check_memory(const ft_spec *s, const char *where, ft_text *warnings, ft_error *err)
{
    char path[256];
    const double *n = s->number;
    if (n[FT_SPEC_L2_MIB] > 1024 * n[FT_SPEC_MEMORY_GIB])
        return ft__fail_at(err, FT_E_SPEC, ft__spec_path(path, where, "l2_mib"), 0, 0,
                           "an L2 of %g MiB is larger than the memory of %g GiB", n[FT_SPEC_L2_MIB],
                           n[FT_SPEC_MEMORY_GIB]);
    if (n[FT_SPEC_LINK_GBPS] > n[FT_SPEC_MEMORY_GBPS] || n[FT_SPEC_PCIE_GBPS] > n[FT_SPEC_MEMORY_GBPS]) {
        bool link = n[FT_SPEC_LINK_GBPS] > n[FT_SPEC_MEMORY_GBPS];
        const char *key = link ? "link" : "pcie_gbps";
        return ft__fail_at(err, FT_E_SPEC, ft__spec_path(path, where, key), 0, 0,
                           "%s carries %g GB/s, more than the memory's %g: nothing could keep it busy", key,
                           link ? n[FT_SPEC_LINK_GBPS] : n[FT_SPEC_PCIE_GBPS], n[FT_SPEC_MEMORY_GBPS]);
    }
    if (s->trait[FT_TRAIT_LINK_REDUCES] && !s->trait[FT_TRAIT_LINK_SWITCHED])
        return ft__fail_at(err, FT_E_SPEC, ft__spec_path(path, where, "link.reduces"), 0, 0,
                           "\"link.reduces\" says that a switch adds, \"link.switched\" that there is none");
    double rate = ft__link_rate(s->link_kind);
    if (rate > 0 && near(n[FT_SPEC_LINK_GBPS] / rate, 2))
        ft__warn(warnings,
                 "link.gbps_per_direction: %g looks like the sum of both directions; one direction of %s is %g",
                 n[FT_SPEC_LINK_GBPS], s->link_kind, rate);
    return FT_OK;
}

ft_status ft__spec_check(const ft_spec *s, const char *where, ft_text *warnings, ft_error *err)
{
    FT_TRY(check_clocks(s, where, warnings, err));
    FT_TRY(check_memory(s, where, warnings, err));
    FT_TRY(check_vector(s, where, warnings, err));
    FT_TRY(check_wide(s, FT_FP64, where, err));
    FT_TRY(check_wide(s, FT_FP32, where, err));
    for (int d = FT_TF32; d < FT_DTYPE_COUNT; d++) FT_TRY(check_matrix(s, (ft_dtype)d, where, warnings, err));
    return FT_OK;
}

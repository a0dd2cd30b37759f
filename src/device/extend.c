/* extend.c: what a spec leaves out.
 *
 * With "base", a spec means "this GPU, but": a figure that it does not give is the base's. Figures that follow from
 * one it does give follow: another clock or SM count scales the peaks that were not given, because a peak is units x
 * clock. A power cap or another memory changes no peak; what the base sustains at its own power says nothing at
 * another one.
 *
 * Without "base", the catalogue's closest relative of the generation lends what belongs to the multiprocessor (lanes,
 * registers, shared memory, matrix rate), and power and L2 in proportion to the SMs. Each such figure is a guess and
 * is said aloud. Without a known generation the guesses are those of a data-centre GPU of the middle of the 2020s.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "device/guesses_constants.h"
#include "device/spec.h"

static double units(const ft_spec *s, ft_spec_number per_sm, ft_spec_number clock)
{
    return s->number[FT_SPEC_SMS] * s->number[per_sm] * s->number[clock];
}

static double vector_ratio(const ft_spec *s, const ft_spec *base)
{
    return units(s, FT_SPEC_LANES, FT_SPEC_CLOCK_MHZ) / units(base, FT_SPEC_LANES, FT_SPEC_CLOCK_MHZ);
}

static double matrix_ratio(const ft_spec *s, const ft_spec *base)
{
    double before = units(base, FT_SPEC_MATRIX_FMA, FT_SPEC_MATRIX_MHZ);
    return before > 0 ? units(s, FT_SPEC_MATRIX_FMA, FT_SPEC_MATRIX_MHZ) / before : vector_ratio(s, base);
}

/* fp32 and fp64 peaks are those of the vector units unless they clearly exceed them (A100 fp64, CDNA fp32). */
static bool in_matrix_units(const ft_spec *s, int d)
{
    if (s->number[FT_SPEC_MATRIX_FMA] <= 0) return false;
    if (d != FT_FP64 && d != FT_FP32) return true;
    return s->peak.tflops[d] > FT_K_GUESSES_OVER_VECTOR * s->vector.tflops[d];
}

static void take_text(char *to, const char *from)
{
    if (!*to) memcpy(to, from, strlen(from) + 1); /* fields of the same size */
}

static void take_number(ft_spec *s, ft_spec_number n, double value)
{
    if (s->given[n]) return;
    s->given[n] = true;
    s->number[n] = value;
}

/* The same, said aloud. */
static void guess(ft_spec *s, ft_spec_number n, double value, const char *why, ft_text *warnings)
{
    if (s->given[n]) return;
    take_number(s, n, value);
    ft__warn(warnings, "%s not given: %.6g%s, %s", ft__spec_key(n), value, ft__spec_unit(n), why);
}

/* -- peaks ------------------------------------------------------------------------------------- */

/* Takes the rates that were not given from `base`, in proportion to units x clock. */
static void take_rates(ft_spec *s, const ft_spec *base, bool guessing, const char *lender, ft_text *warnings)
{
    double by_vector = vector_ratio(s, base), by_matrix = matrix_ratio(s, base);
    for (int d = 0; d < FT_DTYPE_COUNT; d++) {
        bool follows = s->peak.given[d] && base->peak.tflops[d] == base->vector.tflops[d];
        if (!s->vector.given[d] && base->vector.given[d]) {
            s->vector.tflops[d] = follows ? s->peak.tflops[d] : base->vector.tflops[d] * by_vector;
            s->vector.given[d] = true;
        }
        if (!s->half_accumulate.given[d] && base->half_accumulate.given[d]) {
            s->half_accumulate.tflops[d] = base->half_accumulate.tflops[d] * by_matrix;
            s->half_accumulate.given[d] = true;
        }
        if (s->peak.given[d]) continue;
        s->peak.tflops[d] = base->peak.tflops[d] * (in_matrix_units(base, d) ? by_matrix : by_vector);
        s->peak.given[d] = true;
        if (guessing && s->peak.tflops[d] > 0)
            ft__warn(warnings, "peak_tflops.%s not given: %.4g, by the rate per SM of %s (null if the GPU lacks it)",
                     ft_dtype_name((ft_dtype)d), s->peak.tflops[d], lender);
    }
    if (guessing) return;
    if (by_matrix != 1 && base->number[FT_SPEC_MATRIX_FMA] > 0)
        ft__warn(warnings, "peaks of the matrix units that are not given follow units x clock: %.4g times those of %s",
                 by_matrix, lender);
    if (by_vector != 1)
        ft__warn(warnings, "peaks of the vector units that are not given follow units x clock: %.4g times those of %s",
                 by_vector, lender);
}

/* -- with a base ------------------------------------------------------------------------------- */

/* Below the base's boost a clock is a cap, and matrix units run up to it; above, a faster part of the same kind. What
 * the base sustains, it sustains at its own power. */
static void take_clocks(ft_spec *s, const ft_spec *base, ft_text *warnings)
{
    const double *b = base->number;
    take_number(s, FT_SPEC_CLOCK_MHZ, b[FT_SPEC_CLOCK_MHZ]);
    double clock = s->number[FT_SPEC_CLOCK_MHZ], ratio = clock / b[FT_SPEC_CLOCK_MHZ];
    double matrix = b[FT_SPEC_MATRIX_MHZ], sustained = b[FT_SPEC_SUSTAINED_MHZ];
    take_number(s, FT_SPEC_MATRIX_MHZ, ratio > 1 ? matrix * ratio : matrix < clock ? matrix : clock);
    take_number(s, FT_SPEC_BASE_MHZ, b[FT_SPEC_BASE_MHZ] <= clock ? b[FT_SPEC_BASE_MHZ] : 0);
    take_number(s, FT_SPEC_RUNNING_MHZ, ratio < 1 ? 0 : b[FT_SPEC_RUNNING_MHZ] * ratio);

    bool other_power = s->given[FT_SPEC_TDP_W] && s->number[FT_SPEC_TDP_W] != b[FT_SPEC_TDP_W];
    if (!s->given[FT_SPEC_SUSTAINED_MHZ] && sustained > 0 && other_power)
        ft__warn(warnings, "sustained_clock_mhz not given: unknown; %s sustains %.6g MHz at its own power", base->name,
                 sustained);
    take_number(s, FT_SPEC_SUSTAINED_MHZ, other_power ? 0 : sustained < clock ? sustained : clock);
}

static void take_link(ft_spec *s, const ft_spec *base, ft_text *warnings)
{
    bool other = *s->link_kind && strcmp(s->link_kind, base->link_kind) != 0;
    take_text(s->link_kind, base->link_kind);
    if (other) {
        double rate = ft__link_rate(s->link_kind);
        if (rate > 0) guess(s, FT_SPEC_LINK_GBPS, rate, "as a GPU has over this kind of link", warnings);
        if (!strncmp(s->link_kind, "pcie", 4)) guess(s, FT_SPEC_LINK_GPUS, 1, "as PCIe joins no group", warnings);
        if (!s->given[FT_SPEC_LINK_GBPS])
            guess(s, FT_SPEC_LINK_GBPS, base->number[FT_SPEC_LINK_GBPS], "as its base, though the link differs",
                  warnings);
    }
    take_number(s, FT_SPEC_LINK_GBPS, base->number[FT_SPEC_LINK_GBPS]);
    take_number(s, FT_SPEC_LINK_GPUS, base->number[FT_SPEC_LINK_GPUS]);
}

void ft__spec_extend(ft_spec *s, const ft_spec *base, ft_text *warnings)
{
    if (!*s->name) {
        char start[56];
        snprintf(s->name, sizeof s->name, "%s_custom", ft__spec_cut(start, sizeof start, base->name));
        ft__warn(warnings, "name not given: %s", s->name);
    }
    take_text(s->title, s->name);
    take_text(s->architecture, base->architecture);
    take_text(s->generation, base->generation);
    take_text(s->capability, base->capability);
    take_text(s->memory_type, base->memory_type);
    if (s->vendor == FT_SPEC_VENDOR_UNKNOWN) s->vendor = base->vendor;

    take_clocks(s, base, warnings);
    ft__spec_extend_traits(s, base); /* before the link: they stand on what of it was given */
    take_link(s, base, warnings);
    if (!s->given[FT_SPEC_PRICE] && base->number[FT_SPEC_PRICE] > 0)
        ft__warn(warnings, "price_usd_per_hour not given: %.4g, the price of %s", base->number[FT_SPEC_PRICE],
                 base->name);
    for (int n = 0; n < FT_SPEC_NUMBER_COUNT; n++) take_number(s, (ft_spec_number)n, base->number[n]);
    take_rates(s, base, false, base->name, warnings);
}

/* -- without a base ---------------------------------------------------------------------------- */

static ft_status require(const ft_spec *s, const char *where, ft_error *err)
{
    static const ft_spec_number needed[] = {FT_SPEC_SMS, FT_SPEC_MEMORY_GIB, FT_SPEC_MEMORY_GBPS};
    char missing[160] = "", path[256];
    const char *first = NULL;
    bool any_peak = false;
    for (int d = 0; d < FT_DTYPE_COUNT; d++) any_peak |= s->peak.tflops[d] > 0;
    size_t length = 0;
#define MISSING(key)                                                                                             \
    do {                                                                                                         \
        length += (size_t)snprintf(missing + length, sizeof missing - length, "%s%s", first ? ", " : "", (key)); \
        if (!first) first = (key);                                                                               \
    } while (0)
    if (!*s->name) MISSING("name");
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (!s->given[needed[i]]) MISSING(ft__spec_key(needed[i]));
    if (!any_peak) MISSING("peak_tflops");
#undef MISSING
    if (!first) return FT_OK;
    return ft__fail_at(err, FT_E_MISSING, ft__spec_path(path, where, first), 0, 0,
                       "a spec without \"base\" needs name, sms, memory_gib, memory_gbps and at least one peak in "
                       "peak_tflops; missing: %s",
                       missing);
}

/* The best 16-bit peak: what the matrix rate is read from. */
static double sixteen_bit(const ft_spec *s)
{
    double fp16 = s->peak.tflops[FT_FP16], bf16 = s->peak.tflops[FT_BF16];
    return fp16 > bf16 ? fp16 : bf16;
}

/* The clock at which `peak` comes out of so many FMAs per clock and SM, if a GPU could run at it; otherwise 0. */
static double implied_mhz(const ft_spec *s, double peak, double fma_per_clk_per_sm)
{
    if (!(peak > 0) || !(fma_per_clk_per_sm > 0)) return 0;
    double mhz = peak / ft__spec_tflops(s, fma_per_clk_per_sm, 1);
    return mhz >= 300 && mhz <= 5000 ? mhz : 0;
}

static double largest_l2_mib(const ft_spec *s) { return 1024 * s->number[FT_SPEC_MEMORY_GIB] / 4; }

static double power_of_two_near(double x)
{
    double p = 1;
    while (p * p * 2 < x * x && p < 1e6) p *= 2;
    return p;
}

static void guess_memory_and_link(ft_spec *s, const ft_spec *kin, ft_text *warnings)
{
    if (!*s->memory_type) {
        /* GDDR7 on 512 bits ends near 1.8 TB/s; below 1.1 TB/s HBM is history. */
        bool hbm = kin ? !strncmp(kin->memory_type, "hbm", 3) : s->number[FT_SPEC_MEMORY_GBPS] > FT_K_GUESSES_HBM_GBPS;
        snprintf(s->memory_type, sizeof s->memory_type, "%s", hbm ? "hbm" : "gddr");
        ft__warn(warnings, "memory_type not given: %s", s->memory_type);
    }
    double memory = s->number[FT_SPEC_MEMORY_GBPS]; /* a guess must not be what check.c refuses */
    double pcie = kin ? kin->number[FT_SPEC_PCIE_GBPS] : FT_K_GUESSES_PCIE_GBPS;
    guess(s, FT_SPEC_PCIE_GBPS, fmin(pcie, memory), "PCIe as its generation has it", warnings);
    if (!*s->link_kind) {
        snprintf(s->link_kind, sizeof s->link_kind, "pcie");
        if (!s->given[FT_SPEC_LINK_GBPS]) ft__warn(warnings, "link not given: PCIe alone joins the GPUs");
    }
    double rate = fmin(ft__link_rate(s->link_kind), memory);
    if (!strcmp(s->link_kind, "pcie")) {
        take_number(s, FT_SPEC_LINK_GBPS, s->number[FT_SPEC_PCIE_GBPS]);
        take_number(s, FT_SPEC_LINK_GPUS, 1);
    }
    guess(s, FT_SPEC_LINK_GBPS, rate > 0 ? rate : s->number[FT_SPEC_PCIE_GBPS],
          rate > 0 ? "as a GPU has over this kind of link" : "as PCIe", warnings);
    guess(s, FT_SPEC_LINK_GPUS, 1, "no group of linked GPUs is named", warnings);
}

static void complete_from_kin(ft_spec *s, const ft_spec *kin, ft_text *warnings)
{
    static const ft_spec_number per_sm[] = {FT_SPEC_LANES, FT_SPEC_MATRIX_FMA, FT_SPEC_SMEM_KIB,  FT_SPEC_REGS,
                                            FT_SPEC_WARPS, FT_SPEC_YEAR,       FT_SPEC_PROCESS_NM};
    const double *k = kin->number;
    char why[96];
    snprintf(why, sizeof why, "as %s", kin->name);
    for (size_t i = 0; i < sizeof per_sm / sizeof *per_sm; i++) guess(s, per_sm[i], k[per_sm[i]], why, warnings);

    double fp32 = s->vector.tflops[FT_FP32];
    if (!s->vector.given[FT_FP32] && !in_matrix_units(kin, FT_FP32)) fp32 = s->peak.tflops[FT_FP32];
    double implied = implied_mhz(s, fp32, s->number[FT_SPEC_LANES]);
    guess(s, FT_SPEC_CLOCK_MHZ, implied > 0 ? implied : k[FT_SPEC_CLOCK_MHZ],
          implied > 0 ? "the clock that the fp32 peak implies" : why, warnings);

    double clock = s->number[FT_SPEC_CLOCK_MHZ];
    double matrix = implied_mhz(s, sixteen_bit(s), s->number[FT_SPEC_MATRIX_FMA]);
    bool likely = matrix > FT_K_GUESSES_MATRIX_CLOCK_LOW * clock && matrix < FT_K_GUESSES_MATRIX_CLOCK_HIGH * clock;
    double lent = clock * k[FT_SPEC_MATRIX_MHZ] / k[FT_SPEC_CLOCK_MHZ];
    if (!(s->number[FT_SPEC_MATRIX_FMA] > 0)) take_number(s, FT_SPEC_MATRIX_MHZ, 0);
    guess(s, FT_SPEC_MATRIX_MHZ, likely ? matrix : lent, likely ? "the clock that the 16-bit peak implies" : why,
          warnings);

    double share = s->number[FT_SPEC_SMS] / k[FT_SPEC_SMS];
    snprintf(why, sizeof why, "in proportion to the SMs of %s", kin->name);
    guess(s, FT_SPEC_TDP_W, k[FT_SPEC_TDP_W] * share, why, warnings);
    guess(s, FT_SPEC_L2_MIB, fmin(k[FT_SPEC_L2_MIB] * share, largest_l2_mib(s)), why, warnings);
    take_rates(s, kin, true, kin->name, warnings);
}

/* Guesses for a GPU like no other in the catalogue; per SM about what H100, B200 and MI300X agree on. */
static void complete_alone(ft_spec *s, ft_text *warnings)
{
    static const char why[] = "a guess: the generation is unknown";
    double fp32 = s->vector.tflops[FT_FP32] > 0 ? s->vector.tflops[FT_FP32] : s->peak.tflops[FT_FP32];
    double lanes_at_clock = s->given[FT_SPEC_CLOCK_MHZ] ? fp32 / ft__spec_tflops(s, 1, s->number[FT_SPEC_CLOCK_MHZ])
                                                        : 0;
    guess(s, FT_SPEC_LANES, lanes_at_clock >= 1 ? power_of_two_near(lanes_at_clock) : FT_K_GUESSES_LANES, why,
          warnings);
    double implied = implied_mhz(s, fp32, s->number[FT_SPEC_LANES]);
    guess(s, FT_SPEC_CLOCK_MHZ, implied > 0 ? implied : FT_K_GUESSES_CLOCK_MHZ,
          implied > 0 ? "the clock that the fp32 peak implies" : why, warnings);

    double clock = s->number[FT_SPEC_CLOCK_MHZ];
    double vector = ft__spec_tflops(s, s->number[FT_SPEC_LANES], clock);
    double wide = sixteen_bit(s) > 0 ? sixteen_bit(s) : s->peak.tflops[FT_FP8] / 2;
    /* Packed 16-bit instructions double the vector rate; beyond that there are matrix units. */
    double fma = wide > FT_K_GUESSES_PACKED * vector ? power_of_two_near(wide / ft__spec_tflops(s, 1, clock)) : 0;
    if (!s->given[FT_SPEC_MATRIX_FMA] && fma < 16) take_number(s, FT_SPEC_MATRIX_FMA, 0);
    guess(s, FT_SPEC_MATRIX_FMA, fma, "the power of two that the peak implies", warnings);
    take_number(s, FT_SPEC_MATRIX_MHZ, clock);

    guess(s, FT_SPEC_SMEM_KIB, FT_K_GUESSES_SMEM_KIB, why, warnings);
    guess(s, FT_SPEC_REGS, FT_K_GUESSES_REGISTERS, why, warnings);
    guess(s, FT_SPEC_WARPS, FT_K_GUESSES_WARPS, why, warnings);
    double sms = s->number[FT_SPEC_SMS];
    char per_sm[64];
    snprintf(per_sm, sizeof per_sm, "%g W per SM, a guess", FT_K_GUESSES_WATTS_PER_SM);
    guess(s, FT_SPEC_TDP_W, fmin(FT_K_GUESSES_WATTS_PER_SM * sms, FT_K_GUESSES_MOST_WATTS), per_sm, warnings);
    snprintf(per_sm, sizeof per_sm, "%g MiB per SM, a guess", FT_K_GUESSES_L2_MIB_PER_SM);
    guess(s, FT_SPEC_L2_MIB, fmin(FT_K_GUESSES_L2_MIB_PER_SM * sms, largest_l2_mib(s)), per_sm, warnings);
    guess(s, FT_SPEC_PROCESS_NM, FT_K_GUESSES_PROCESS_NM, why, warnings);
    take_number(s, FT_SPEC_YEAR, FT_K_GUESSES_YEAR);

    ft_rates *peak = &s->peak;
    struct {
        ft_dtype d;
        double tflops;
        const char *why;
    } likely[] = {{FT_FP32, vector, "lanes x SMs x clock"},
                  {FT_FP16, peak->tflops[FT_BF16], "as bf16"},
                  {FT_BF16, peak->tflops[FT_FP16], "as fp16"}};
    for (size_t i = 0; i < sizeof likely / sizeof *likely; i++) {
        ft_dtype d = likely[i].d;
        if (peak->given[d] || !(likely[i].tflops > 0)) continue;
        peak->tflops[d] = likely[i].tflops;
        peak->given[d] = true;
        ft__warn(warnings, "peak_tflops.%s not given: %.4g, %s", ft_dtype_name(d), peak->tflops[d], likely[i].why);
    }
    for (int d = 0; d < FT_DTYPE_COUNT; d++)
        if (!peak->given[d])
            ft__warn(warnings, "peak_tflops.%s not given: the GPU lacks it", ft_dtype_name((ft_dtype)d));
    if (!s->vector.given[FT_FP32]) s->vector.tflops[FT_FP32] = vector;
    if (!s->vector.given[FT_FP64])
        s->vector.tflops[FT_FP64] = peak->tflops[FT_FP64] < vector ? peak->tflops[FT_FP64] : vector;
    s->vector.given[FT_FP32] = s->vector.given[FT_FP64] = true;
}

ft_status ft__spec_complete(ft_spec *s, const char *where, const ft_spec *kin, ft_text *warnings, ft_error *err)
{
    FT_TRY(require(s, where, err));
    take_text(s->title, s->name);
    if (!*s->architecture) {
        snprintf(s->architecture, sizeof s->architecture, "%s", kin ? kin->architecture : "unknown");
        ft__warn(warnings, "architecture not given: %s", s->architecture);
    }
    if (s->vendor == FT_SPEC_VENDOR_UNKNOWN) ft__warn(warnings, "vendor not given: other");
    /* Nobody publishes these for every GPU: unknown is a fair answer, and 0 says it. */
    take_number(s, FT_SPEC_BASE_MHZ, 0);
    take_number(s, FT_SPEC_SUSTAINED_MHZ, 0);
    take_number(s, FT_SPEC_RUNNING_MHZ, 0);
    take_number(s, FT_SPEC_PRICE, 0);
    take_number(s, FT_SPEC_POWER_CAP_W, 0);
    if (kin)
        complete_from_kin(s, kin, warnings);
    else
        complete_alone(s, warnings);
    guess_memory_and_link(s, kin, warnings);
    ft__spec_complete_traits(s, kin, warnings);
    return FT_OK;
}

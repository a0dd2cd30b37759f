/* balance.c: bandwidth at each level of the memory hierarchy, and the machine balance.
 *
 * Device memory is on every data sheet; the levels above it are not. Registers and shared memory follow from the
 * multiprocessor (operands per lane, banks per SM). L2 does not: NVIDIA printed it for V100 and A100 and never again,
 * AMD prints its width per channel. Elsewhere there are measurements or nothing, and nothing is what we say then.
 *
 * Leaves out: the L1 cache (the same array as shared memory since Volta), L2 partitions and their far side, writes.
 */
#include "device/balance.h"

#include <string.h>

static double gbps(double bytes_per_clk, double mhz) { return bytes_per_clk * mhz * 1e-3; }

/* Bytes per clock of the last level, for a part whose L2 has `mib`. `per_mib`: a part with fewer slices of the same
 * kind (A30) has proportionally less. */
static const struct {
    const char *capability;
    double bytes_per_clk, mib;
    bool per_mib;
    const char *basis;
} last_level[] = {
    {"sm_70", 2048, 6, false,
     "2048 B/clk (A100 whitepaper, comparing with V100); 2155 GB/s measured, arXiv 1804.06826"},
    {"sm_80", 5120, 40, true, "5120 B/clk for 40 MiB (A100 whitepaper)"},
    {"sm_90", 4472, 50, false, "about 4470 B/clk measured on an H800 PCIe (arXiv 2402.13499); NVIDIA publishes none"},
    {"gfx90a", 4096, 8, false, "32 channels x 128 B/clk per die (CDNA 2 whitepaper)"},
    {"gfx942", 8192, 256, false,
     "Infinity Cache: 128 slices x 64 B/clk (CDNA 3 whitepaper: 17.2 TB/s); 11.9 TB/s measured, "
     "chipsandcheese.com"},
};

static void last_level_of(const ft_device *d, ft_memory_level *out)
{
    *out = (ft_memory_level){"L2", d->l2_mib * 1048576, 0, "not published"};
    for (size_t i = 0; i < sizeof last_level / sizeof *last_level; i++) {
        if (strcmp(last_level[i].capability, d->compute_capability) != 0) continue;
        double share = last_level[i].per_mib ? d->l2_mib / last_level[i].mib : 1;
        out->gbps = gbps(last_level[i].bytes_per_clk * share, d->boost_mhz);
        out->basis = last_level[i].basis;
    }
}

void ft__memory_levels(const ft_device *d, ft_memory_level out[FT_MEMORY_LEVELS])
{
    double sms = d->sms;
    out[0] = (ft_memory_level){"registers", sms * d->regs_kib_per_sm * 1024,
                               gbps(sms * d->lanes_per_sm * 12, d->boost_mhz),
                               "three 4-byte operands per fp32 lane and clock"};
    out[1] = (ft_memory_level){"shared memory", sms * d->smem_kib_per_sm * 1024, 0, "not published"};
    if (d->vendor == FT_NVIDIA || d->vendor == FT_AMD) {
        out[1].gbps = gbps(sms * 128, d->boost_mhz);
        out[1].basis = "32 banks x 4 B per SM and clock";
    }
    last_level_of(d, &out[2]);
    out[3] = (ft_memory_level){"device memory", d->memory_gib * 1073741824, d->memory_gbps, "data sheet"};
}

double ft__machine_balance(const ft_device *d, ft_dtype dtype)
{
    if ((unsigned)dtype >= FT_DTYPE_COUNT || !(d->memory_gbps > 0)) return 0;
    return d->peak_tflops[dtype] * 1e3 / d->memory_gbps;
}

double ft__vector_balance(const ft_device *d)
{
    return d->memory_gbps > 0 ? d->vector_tflops[FT_FP32] * 1e3 / d->memory_gbps : 0;
}

double ft__vector_rate(const ft_device *d) { return 2.0 * d->sms * d->lanes_per_sm * d->boost_mhz * 1e-6; }

double ft__matrix_rate(const ft_device *d, double factor)
{
    return 2.0 * d->sms * d->matrix_fma_per_clk_sm * factor * d->matrix_mhz * 1e-6;
}

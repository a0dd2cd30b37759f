/* balance.c: bandwidth at each level of the memory hierarchy, and the machine balance.
 *
 * Device memory is on every data sheet; the levels above it are not. Registers and shared memory follow from the
 * multiprocessor (operands per lane, banks per SM). L2 does not: NVIDIA printed it for V100 and A100 and never again,
 * AMD prints its width per channel. Elsewhere there are measurements or nothing: a sheet says which.
 *
 * Leaves out: the L1 cache (the same array as shared memory since Volta), L2 partitions and their far side, writes.
 */
#include "device/balance.h"

static double gbps(double bytes_per_clk, double mhz) { return bytes_per_clk * mhz * 1e-3; }

void ft__memory_levels(const ft_device *d, ft_memory_level out[FT_MEMORY_LEVELS])
{
    double sms = d->sms;
    out[0] = (ft_memory_level){"registers", sms * d->regs_kib_per_sm * 1024,
                               gbps(sms * d->lanes_per_sm * 12, d->boost_mhz),
                               "three 4-byte operands per fp32 lane and clock"};
    out[1] = (ft_memory_level){"shared memory", sms * d->smem_kib_per_sm * 1024, 0, "not published"};
    if (d->vendor == FT_VENDOR_NVIDIA || d->vendor == FT_VENDOR_AMD) {
        out[1].gbps = gbps(sms * 128, d->boost_mhz);
        out[1].basis = "32 banks x 4 B per SM and clock";
    }
    out[2] = (ft_memory_level){"L2", d->l2_mib * 1048576, gbps(d->l2_bytes_per_clk, d->boost_mhz), "not published"};
    if (d->l2_bytes_per_clk > 0) out[2].basis = "l2_bytes_per_clk of its sheet";
    out[3] = (ft_memory_level){"device memory", d->memory_gib * 1073741824, d->memory_gbps, "data sheet"};
}

double ft__machine_balance(const ft_device *d, ft_dtype dtype)
{
    if ((unsigned)dtype >= FT_DTYPE_COUNT || !(d->memory_gbps > 0)) return 0;
    return d->peak_tflops[dtype] * 1e3 / d->memory_gbps;
}

/* What a GPU can do, asked of its traits: never of its generation, name or year. */
#ifndef FT_DEVICE_TRAITS_H
#define FT_DEVICE_TRAITS_H
#include "foretell.h"

/* Matrix instructions that read shared memory by themselves and return at once (wgmma, tcgen05): kernels made for them
 * come in tiles of their own, stay on their SM, and are not those that mma runs. */
static inline bool ft__matrix_async(const ft_device *device)
{
    return device->matrix_issue == FT_ISSUE_WGMMA || device->matrix_issue == FT_ISSUE_TCGEN05;
}
/* Several dies that programs see as one NVIDIA GPU. Of AMD's, which have had eight since MI300X, nothing is known that
 * would set them apart from one. */
static inline bool ft__joined_dies(const ft_device *device)
{
    return device->vendor == FT_VENDOR_NVIDIA && device->dies > 1;
}
/* The clock of kernels: GeForce boards run above the boost that their vendor quotes. */
static inline double ft__running_mhz(const ft_device *device)
{
    return device->running_mhz > 0 ? device->running_mhz : device->boost_mhz;
}
/* Share of its matrix units' own rate that a GPU gives a format: half on a GeForce, whose units slow down when they
 * accumulate in fp32; 1 where nothing is capped. What belongs to the SM (operands from L2 and shared memory, issue)
 * follows the units' own rate. */
double ft__matrix_cap(const ft_device *device, ft_dtype dtype);
/* Major number of NVIDIA's compute capability: 9 of sm_90; 0 of anybody else's. */
int ft__compute_major(const ft_device *device);

/* Products in 8 bits read operands along either axis, so that nobody keeps a turned copy: datacentre Blackwell alone
 * (Transformer Engine, nvte_is_non_tn_fp8_gemm_supported). */
static inline bool ft__reads_across(const ft_device *device) { return device->matrix_issue == FT_ISSUE_TCGEN05; }
/* Exponentials that an SM starts per clock. */
double ft__exp_per_clk(const ft_device *device);

/* Words of a spec file. */
const char *ft__matrix_issue_name(ft_matrix_issue issue);
const char *ft__async_copy_name(ft_async_copy copy);
/* What joins it to others of its node: nothing but its slot; or links over a pair alone, as bridges have them. */
bool ft__over_pcie(const ft_device *d);
bool ft__bridged(const ft_device *d);
#endif

/* Every field of a device, by kind: text, whole number (enums and yes or no as well), figure, one figure per number
 * format. Whatever has to look at a whole device goes through this list, so that a field cannot be forgotten: fields.c
 * does not compile while one is missing. */
#ifndef FT_DEVICE_FIELDS_H
#define FT_DEVICE_FIELDS_H
#include <stdint.h>

#include "foretell.h"

/* In the order of struct ft_device. */
#define FT_DEVICE_FIELDS(TEXT, WHOLE, FIGURE, RATES) \
    TEXT(name)                                       \
    TEXT(title)                                      \
    WHOLE(vendor)                                    \
    TEXT(architecture)                               \
    TEXT(generation)                                 \
    TEXT(compute_capability)                         \
    WHOLE(year)                                      \
    WHOLE(sms)                                       \
    WHOLE(lanes_per_sm)                              \
    FIGURE(matrix_fma_per_clk_sm)                    \
    FIGURE(uncapped_fma_per_clk_sm)                  \
    FIGURE(base_mhz)                                 \
    FIGURE(boost_mhz)                                \
    FIGURE(running_mhz)                              \
    FIGURE(matrix_mhz)                               \
    FIGURE(sustained_mhz)                            \
    FIGURE(tdp_w)                                    \
    FIGURE(process_nm)                               \
    FIGURE(memory_gib)                               \
    FIGURE(memory_gbps)                              \
    WHOLE(memory_is_hbm)                             \
    FIGURE(l2_mib)                                   \
    FIGURE(l2_bytes_per_clk)                         \
    FIGURE(smem_kib_per_sm)                          \
    FIGURE(regs_kib_per_sm)                          \
    WHOLE(max_warps_per_sm)                          \
    WHOLE(matrix_issue)                              \
    WHOLE(async_copy)                                \
    WHOLE(issue_lanes_per_sm)                        \
    WHOLE(dual_issue)                                \
    WHOLE(dies)                                      \
    WHOLE(l2_partitions)                             \
    WHOLE(inline_ecc)                                \
    FIGURE(matrix_pj_per_flop)                       \
    RATES(peak_tflops)                               \
    RATES(vector_tflops)                             \
    TEXT(link_kind)                                  \
    FIGURE(link_gbps_per_direction)                  \
    WHOLE(link_gpus)                                 \
    WHOLE(link_switched)                             \
    WHOLE(link_reduces)                              \
    FIGURE(server_nic_gbit)                          \
    FIGURE(pcie_gbps)                                \
    FIGURE(price_usd_per_hour)                       \
    WHOLE(exp_per_clk_per_sm)                        \
    FIGURE(power_cap_w)                              \
    WHOLE(link_apart)

/* Equal devices have equal sums, wherever they stand and whatever lies in their padding; another value of any field
 * gives another sum. */
uint64_t ft__device_hash(const ft_device *device);
#endif

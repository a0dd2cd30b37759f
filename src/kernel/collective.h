/* Exchanges inside one NVLink, xGMI or PCIe domain. */
#ifndef FT_KERNEL_COLLECTIVE_H
#define FT_KERNEL_COLLECTIVE_H
#include "kernel/family.h"

/* LL sends 4 bytes of data with 4 of flag, LL128 120 of 128, Simple whole chunks behind a fence; NVLS reduces in the
 * switch. */
typedef enum ft_protocol { FT_LL, FT_LL128, FT_SIMPLE, FT_NVLS, FT_PROTOCOL_COUNT } ft_protocol;
extern const char *const ft__protocol_notes[FT_PROTOCOL_COUNT]; /* as they stand in a forecast's note */

/* What NCCL's own cost model picks; RCCL's of these have no LL128. NULL: not of AMD's. */
ft_protocol ft__collective_protocol(const ft_device *device, const ft_op *op);
/* Steps one after the other: 2 (n-1) of an all-reduce's ring. */
double ft__collective_steps(int op, double ranks);
bool ft__collective_pairwise(const ft_op *op);  /* all-to-all, send/recv */
bool ft__collective_eight_bit(const ft_op *op); /* sums numbers of one byte, which the switch cannot */
/* A version before FT_NCCL_NEWER, 100 * major + minor. Measured are 2.23 on one side and 2.26 to 2.29 on the other. */
bool ft__collective_old(const ft_op *op);
enum { FT_NCCL_OLD = 223, FT_NCCL_NEWER = 226 };
/* Pairs exchange small messages over several channels. */
bool ft__collective_many_channels(const ft_op *op);
/* Physics with the constants' starting values, for predictors that hold no measured exchange: ms. */
double ft__collective_start_ms(const ft_device *device, const ft_op *op);
/* Bytes one rank sends, over the buffer's: 2 (n-1)/n of an all-reduce. */
double ft__collective_wire(int op, double ranks);
#endif

/* Every family's table, for family.c alone. */
#ifndef FT_KERNEL_FAMILIES_H
#define FT_KERNEL_FAMILIES_H
#include "kernel/family.h"

extern const ft_family ft__gemm_tensor; /* gemm_tensor.c */
extern const ft_family ft__gemm_vector; /* gemm_vector.c */
extern const ft_family ft__attention;   /* attention.c */
extern const ft_family ft__decode;      /* decode.c */
extern const ft_family ft__mla;         /* mla.c */
extern const ft_family ft__moe;         /* moe.c */
extern const ft_family ft__elementwise; /* elementwise.c */
extern const ft_family ft__row;         /* row.c */
extern const ft_family ft__conv;        /* conv.c */
extern const ft_family ft__optimizer;   /* optimizer.c */
extern const ft_family ft__quantize;    /* quantize.c */
#endif

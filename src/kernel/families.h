/* Every family's table, for family.c alone. */
#ifndef FT_KERNEL_FAMILIES_H
#define FT_KERNEL_FAMILIES_H
#include "kernel/family.h"

extern const ft_family ft__gemm_tensor_family; /* gemm_tensor.c */
extern const ft_family ft__gemm_vector_family; /* gemm_vector.c */
extern const ft_family ft__attention_family;   /* attention.c */
extern const ft_family ft__decode_family;      /* decode.c */
extern const ft_family ft__mla_family;         /* mla.c */
extern const ft_family ft__moe_family;         /* moe.c */
extern const ft_family ft__elementwise_family; /* elementwise.c */
extern const ft_family ft__row_family;         /* row.c */
extern const ft_family ft__conv_family;        /* conv.c */
extern const ft_family ft__optimizer_family;   /* optimizer.c */
extern const ft_family ft__quantize_family;    /* quantize.c */
extern const ft_family ft__collective_family;  /* collective.c */
#endif

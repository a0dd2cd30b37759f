/* The families, in one list. */
#include "kernel/family.h"

#include <string.h>

#include "kernel/families.h"

const ft_family *const ft__families[] = {
    &ft__gemm_tensor_family, &ft__gemm_vector_family, &ft__attention_family,   &ft__decode_family,
    &ft__mla_family,         &ft__moe_family,         &ft__elementwise_family, &ft__row_family,
    &ft__conv_family,        &ft__optimizer_family,   &ft__quantize_family,    &ft__collective_family,
};
const int ft__family_count = (int)(sizeof ft__families / sizeof *ft__families);
_Static_assert(sizeof ft__families / sizeof *ft__families <= FT_MAX_FAMILIES, "predictors index every family");

const ft_family *ft__family_of(const ft_op *op, int *variant)
{
    for (int i = 0; i < ft__family_count; i++) {
        int v = ft__families[i]->variant_of(op);
        if (v >= 0) return *variant = v, ft__families[i];
    }
    return NULL;
}

int ft__family_find(const char *name)
{
    for (int i = 0; i < ft__family_count; i++)
        if (!strcmp(ft__families[i]->name, name)) return i;
    return -1;
}

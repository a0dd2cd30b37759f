/* The families, in one list. */
#include "kernel/family.h"

#include <string.h>

#include "kernel/families.h"

const ft_family *const ft__families[] = {
    &ft__gemm_tensor, &ft__gemm_vector, &ft__attention, &ft__decode,    &ft__mla,      &ft__moe,
    &ft__elementwise, &ft__row,         &ft__conv,      &ft__optimizer, &ft__quantize,
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

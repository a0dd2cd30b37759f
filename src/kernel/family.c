/* The families, in one list. */
#include "kernel/family.h"

#include <string.h>

#include "base/error.h"
#include "base/text.h"
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

bool ft__cell_named(const char *name, const ft_family *family, int variant)
{
    const char *cut = strchr(name, '/');
    size_t length = cut ? (size_t)(cut - name) : strlen(name);
    if (strncmp(name, family->name, length) != 0 || family->name[length]) return false;
    return !cut || !strcmp(cut + 1, family->variant_name(variant));
}

static ft_status unknown(const char *what, const char *name, const char *const *names, size_t count, ft_error *err)
{
    const char *near = ft__nearest(name, names, count);
    if (near) return ft__fail(err, FT_E_NAME, "unknown %s \"%s\"; did you mean \"%s\"?", what, name, near);
    return ft__fail(err, FT_E_NAME, "unknown %s \"%s\"", what, name);
}

ft_status ft__cell_known(const char *name, ft_error *err)
{
    const char *names[FT_MAX_FAMILIES + FT_MAX_VARIANTS], *cut = strchr(name, '/');
    size_t count = 0;
    for (int k = 0; k < ft__family_count; k++) {
        const ft_family *f = ft__families[k];
        size_t length = strlen(f->name);
        names[count++] = f->name;
        for (int v = 0; v < f->variant_count; v++)
            if (ft__cell_named(name, f, v)) return FT_OK;
        if (!cut || (size_t)(cut - name) != length || strncmp(name, f->name, length) != 0) continue;
        for (count = 0; count < (size_t)f->variant_count; count++) names[count] = f->variant_name((int)count);
        return unknown("variant", cut + 1, names, count, err);
    }
    return unknown("family", name, names, count, err);
}

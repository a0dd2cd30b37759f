/* Number formats by name. */
#include <string.h>

#include "foretell_types.h"

static const struct {
    const char *name;
    double bytes;
} dtypes[FT_DTYPE_COUNT] = {
#define X(code, name, bytes) [code] = {name, bytes},
    FT_DTYPE_LIST(X)
#undef X
};

const char *ft_dtype_name(ft_dtype d) { return (unsigned)d < FT_DTYPE_COUNT ? dtypes[d].name : "?"; }

double ft_dtype_bytes(ft_dtype d) { return (unsigned)d < FT_DTYPE_COUNT ? dtypes[d].bytes : 0; }

bool ft_dtype_parse(const char *name, ft_dtype *out)
{
    static const struct {
        const char *alias;
        ft_dtype dtype;
    } aliases[] = {{"float32", FT_FP32}, {"float16", FT_FP16}, {"half", FT_FP16}, {"bfloat16", FT_BF16},
                   {"float64", FT_FP64}, {"nvfp4", FT_FP4},    {"mxfp4", FT_FP4}, {"fp8_e4m3", FT_FP8}};
    for (int d = 0; d < FT_DTYPE_COUNT; d++)
        if (!strcmp(dtypes[d].name, name)) return *out = (ft_dtype)d, true;
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
        if (!strcmp(aliases[i].alias, name)) return *out = aliases[i].dtype, true;
    return false;
}

#include "comm/nccl.h"

#include <stdio.h>

#include "base/json.h"
#include "base/text.h"

bool ft__nccl_parse(const char *text, int *out)
{
    if (*text == 'v') text++;
    int major = ft__two_digits(&text);
    if (major < 1 || major > 9 || *text++ != '.') return false;
    int minor = ft__two_digits(&text);
    if (minor < 0) return false;
    for (; *text; text++)
        if (*text != '.' && *text != '-' && !(*text >= '0' && *text <= '9')) return false;
    *out = 100 * major + minor;
    return true;
}

ft_status ft__nccl_read(const json_t *cluster, const char *where, int *out, ft_error *err)
{
    const char *text = NULL;
    if (!json_is_object(cluster)) return FT_OK;
    FT_TRY(ft__json_string(cluster, "nccl", FT_OPTIONAL, &text, where, err));
    if (!text || ft__nccl_parse(text, out)) return FT_OK;
    char at[4200];
    snprintf(at, sizeof at, "%.4096s.nccl", where);
    return ft__fail_at(err, FT_E_RANGE, at, 0, 0,
                       "\"nccl\" must be a version such as \"2.27\" or \"2.27.3\", got \"%.40s\"", text);
}

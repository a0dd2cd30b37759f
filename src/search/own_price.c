/* own_price.c: what the request itself says a GPU costs, and by which name others have its price.
 *
 * A price may name its GPU by any name that the catalogue has for it ("h100" is h100_sxm), or as the request names a
 * GPU of its own. A name that is neither is an error, as it would be for a GPU; a GPU that is no choice is warned
 * of. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "search/choose.h"

void ft__rented_as(const ft_context *ft, const char *gpu, const char *asked, char *out, size_t size)
{
    ft_error ignored;
    ft_device *device = malloc(sizeof *device); /* some KiB */
    bool known = device && ft__context_device(ft, asked, device, &ignored) == FT_OK;
    snprintf(out, size, "%s", known ? device->name : gpu);
    free(device);
}

double ft__own_price(const ft_context *ft, const ft_choose_request *r, const char *gpu, const char *asked)
{
    for (size_t i = 0; i < r->price_count; i++)
        if (!strcmp(r->price[i].gpu, gpu) || !strcmp(r->price[i].gpu, asked)) return r->price[i].usd;
    double usd = -1;
    ft_device *device = r->price_count ? malloc(sizeof *device) : NULL; /* some KiB */
    for (size_t i = 0; device && usd < 0 && i < r->price_count; i++) {
        ft_error ignored;
        if (ft__context_device(ft, r->price[i].gpu, device, &ignored) == FT_OK && !strcmp(device->name, gpu))
            usd = r->price[i].usd;
    }
    free(device);
    return usd;
}

static bool among(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(name, names[i])) return true;
    return false;
}

/* Two names of one GPU, with a price each. */
static ft_status contradicts(const ft_context *ft, const ft_choose_request *r, size_t at, ft_device *device,
                             ft_error *err)
{
    ft_error ignored;
    if (ft__context_device(ft, r->price[at].gpu, device, &ignored) != FT_OK) return FT_OK; /* told of below */
    for (size_t i = 0; i < r->price_count; i++)
        if (i != at && !strcmp(r->price[i].gpu, device->name) && r->price[i].usd != r->price[at].usd)
            return ft__fail_at(err, FT_E_RANGE, "price", 0, 0, "\"%s\" is \"%s\", which has another price",
                               r->price[at].gpu, device->name);
    return FT_OK;
}

ft_status ft__own_prices_told(const ft_context *ft, const ft_choose_request *r, const char *const *chosen, size_t count,
                              ft_text *warnings, ft_error *err)
{
    ft_device *device = malloc(sizeof *device);
    ft_status status = device ? FT_OK : ft__no_memory(err);
    for (size_t i = 0; status == FT_OK && i < r->price_count; i++) {
        const char *name = r->price[i].gpu;
        status = contradicts(ft, r, i, device, err);
        if (status != FT_OK || among(name, r->gpu, r->gpu_count) || among(name, chosen, count)) continue;
        status = ft__context_device(ft, name, device, err);
        if (status != FT_OK && err) snprintf(err->where, sizeof err->where, "price");
        if (status == FT_OK && !among(device->name, chosen, count))
            ft__text_addf(warnings, "%sthe price of \"%s\" has no effect: it is not among the GPUs",
                          warnings->length ? "\n" : "", name);
    }
    free(device);
    return status;
}

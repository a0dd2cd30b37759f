/* context.c: opening and closing, and what things are called. */
#include "study/context.h"

#include <string.h>

#include "api/grow.h"
#include "base/decimal.h"

const char *ft_version(void) { return FT_VERSION; }

int ft_version_number(void) { return FT_VERSION_NUMBER; }

void ft_options_init_sized(ft_options *options, size_t size) { memset(options, 0, size); }

ft_status ft_open_sized(ft_context **out, const ft_options *options, size_t options_size, ft_error *err)
{
    ft_options own = {0};
    if (!out) return ft__fail(err, FT_E_USAGE, "ft_open needs a place for the context");
    *out = NULL;
    if (options) FT_TRY(ft__take_struct(&own, sizeof own, options, options_size, "options", err));
    ft_decimal points;
    ft__decimal_begin(&points);
    ft_status status = ft__context_open(out, &own, err);
    ft__decimal_end(&points);
    return status;
}

void ft_close(ft_context *ft) { ft__context_close(ft); }

const char *ft_bound_name(ft_bound b)
{
    static const char *const names[] = {[FT_BOUND_COMPUTE] = "compute",
                                        [FT_BOUND_MEMORY] = "memory",
                                        [FT_BOUND_OVERHEAD] = "overhead",
                                        [FT_BOUND_COMMUNICATION] = "communication"};
    return (unsigned)b < sizeof names / sizeof *names ? names[b] : "?";
}

const char *ft_source_name(ft_source s)
{
    static const char *const names[] = {[FT_SOURCE_LEARNED] = "learned",
                                        [FT_SOURCE_CALIBRATED] = "calibrated",
                                        [FT_SOURCE_SIBLING] = "sibling",
                                        [FT_SOURCE_PHYSICS] = "physics",
                                        [FT_SOURCE_ROOFLINE] = "roofline"};
    return (unsigned)s < sizeof names / sizeof *names ? names[s] : "?";
}

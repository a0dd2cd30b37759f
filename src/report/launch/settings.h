/* One setting of a configuration, in the syntax of whoever reads it. */
#ifndef FT_REPORT_LAUNCH_SETTINGS_H
#define FT_REPORT_LAUNCH_SETTINGS_H
#include <inttypes.h>

#include "base/text.h"

typedef struct ft_syntax {
    const char *begin, *equals, *end; /* of a line */
    const char *yes, *no, *none;      /* what a switch and a missing value are called */
} ft_syntax;

/* The same for Megatron-Core's settings under two names. */
typedef struct ft_core_syntax {
    const ft_syntax *lines;
    const char *quote;     /* around a word */
    const char *optimizer; /* what OptimizerConfig is called */
} ft_core_syntax;

static inline void ft__setting(ft_text *out, const ft_syntax *s, const char *key, const char *value)
{
    ft__text_addf(out, "%s%s%s%s%s", s->begin, key, s->equals, value ? value : s->none, s->end);
}

static inline void ft__setting_whole(ft_text *out, const ft_syntax *s, const char *key, int64_t value)
{
    ft__text_addf(out, "%s%s%s%" PRId64 "%s", s->begin, key, s->equals, value, s->end);
}

static inline void ft__setting_flag(ft_text *out, const ft_syntax *s, const char *key, bool value)
{
    ft__setting(out, s, key, value ? s->yes : s->no);
}
/* What a request says of the optimizer, the loss and the experts, and what runs again (core_options.c). */
struct ft_launch;
void ft__launch_core_options(ft_text *out, const struct ft_launch *l, const ft_core_syntax *c);
void ft__launch_core_recompute(ft_text *out, const struct ft_launch *l, const ft_core_syntax *c);
#endif

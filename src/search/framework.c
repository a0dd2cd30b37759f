/* framework.c: frameworks by name. */
#include "search/framework.h"

#include <string.h>

#include "base/software.h"
#include "base/text.h"

ft_status ft__framework_find(const char *name, const ft_framework **out, ft_error *err)
{
    enum { MOST = 32 };
    const char *known[MOST] = {0};
    size_t count = ft__framework_count < MOST ? ft__framework_count : MOST;
    for (size_t i = 0; i < count; i++) {
        known[i] = ft__frameworks[i].name;
        if (!strcmp(name, known[i])) {
            *out = &ft__frameworks[i];
            return FT_OK;
        }
    }
    const char *near = ft__nearest_software(name, known, count);
    ft_text all = {0};
    for (size_t i = 0; i < count; i++) ft__text_addf(&all, "%s%s", i ? ", " : "", known[i]);
    ft_status status = near ? ft__fail_at(err, FT_E_NAME, "framework", 0, 0,
                                          "no framework \"%.60s\"; did you mean \"%s\"?", name, near)
                            : ft__fail_at(err, FT_E_NAME, "framework", 0, 0, "no framework \"%.60s\"; there are %s",
                                          name, all.failed ? "" : all.at);
    ft__text_free(&all);
    return status;
}

/* Filling an ft_error, and keeping the trail while it travels up. */
#ifndef FT_BASE_ERROR_H
#define FT_BASE_ERROR_H
#include "foretell_types.h"

/* Both return `code`, so that a failing function ends with `return ft__fail(...)`. `err` may be NULL. */
ft_status ft__fail(ft_error *err, ft_status code, const char *format, ...) __attribute__((format(printf, 3, 4)));
ft_status ft__fail_at(ft_error *err, ft_status code, const char *where, int line, int column, const char *format, ...)
    __attribute__((format(printf, 6, 7)));
/* And the number that was refused, for whoever asked in other words: an operator's sizes are made of a request's. */
ft_status ft__fail_value(ft_error *err, ft_status code, const char *where, double value, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* An allocation that failed: FT_E_MEMORY, "out of memory". */
ft_status ft__no_memory(ft_error *err);

#define FT_TRY(call)                          \
    do {                                      \
        ft_status ft_try_ = (call);           \
        if (ft_try_ != FT_OK) return ft_try_; \
    } while (0)
#endif

/* The predictor that is compiled in, for tests that forecast: a set-up and a tear-down of their group. */
#ifndef FT_TEST_SHIPPED_PREDICTOR_H
#define FT_TEST_SHIPPED_PREDICTOR_H
#include "kernel/predictor.h"

static ft_predictor *predictor;

static inline int open_predictor(void **state)
{
    (void)state;
    return ft__predictor_open(NULL, &predictor, NULL);
}

static inline int close_predictor(void **state)
{
    (void)state;
    ft__predictor_close(predictor);
    return 0;
}
#endif

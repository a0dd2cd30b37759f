/* Run `body(context, i)` for i in [0, count) on up to `threads` threads (0: one per core). Work is handed out
 * in order; results must go to slots indexed by i so that they do not depend on the thread count. */
#ifndef FT_BASE_PARALLEL_H
#define FT_BASE_PARALLEL_H
#include <stddef.h>

void ft__parallel(int threads, size_t count, void (*body)(void *context, size_t i), void *context);
int ft__core_count(void);
#endif

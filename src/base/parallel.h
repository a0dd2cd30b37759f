/* Run `body(context, i)` for i in [0, count) on up to `threads` threads (0: one per core). Work is handed out
 * in order; results must go to slots indexed by i so that they do not depend on the thread count. */
#ifndef FT_BASE_PARALLEL_H
#define FT_BASE_PARALLEL_H
#include <stddef.h>

void ft__parallel(int threads, size_t count, void (*body)(void *context, size_t i), void *context);
int ft__core_count(void);

/* One thread at a time between the two: for a moment, what several look up and add to. */
typedef struct ft_lock ft_lock;
ft_lock *ft__lock_new(void); /* NULL: out of memory */
void ft__lock_free(ft_lock *l);
void ft__lock_take(ft_lock *l);
void ft__lock_leave(ft_lock *l);
#endif

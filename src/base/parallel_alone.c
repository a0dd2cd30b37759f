/* parallel_alone.c: the loop of parallel.h where there are no threads (WebAssembly in a browser's worker). A page that
 * wants several cores starts several workers, each with a library of its own. */
#include "base/parallel.h"

#include <stdlib.h>

void ft__parallel(int threads, size_t count, void (*body)(void *context, size_t i), void *context)
{
    (void)threads;
    for (size_t i = 0; i < count; i++) body(context, i);
}

int ft__core_count(void) { return 1; }

struct ft_lock {
    char nobody_waits;
};

ft_lock *ft__lock_new(void) { return calloc(1, sizeof(ft_lock)); }
void ft__lock_free(ft_lock *l) { free(l); }
void ft__lock_take(ft_lock *l) { (void)l; }
void ft__lock_leave(ft_lock *l) { (void)l; }

/* parallel_alone.c: the loop of parallel.h where there are no threads (WebAssembly in a browser's worker). A page that
 * wants several cores starts several workers, each with a library of its own. */
#include "base/parallel.h"

void ft__parallel(int threads, size_t count, void (*body)(void *context, size_t i), void *context)
{
    (void)threads;
    for (size_t i = 0; i < count; i++) body(context, i);
}

int ft__core_count(void) { return 1; }

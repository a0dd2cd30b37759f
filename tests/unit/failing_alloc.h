/* Makes the n-th allocation fail, to show that running out of memory is an answer and never a crash.
 *
 *     static ft_status attempt(void *context)
 *     {
 *         ft_table *t;
 *         ft_status status = ft__table_open(context, &t, NULL);
 *         if (status == FT_OK) ft__table_close(t);
 *         return status;
 *     }
 *     ...
 *     failing_alloc_sweep(attempt, (void *)"some.csv");
 *
 * The sweep runs `attempt` with its 1st, 2nd, 3rd ... allocation failing, each time once (memory comes back) and once
 * for good (nothing more is given), until an attempt needs no more. Every attempt must return FT_E_MEMORY or FT_OK (a
 * failure that has a way around), must free what it holds, and the last must return FT_OK; otherwise the test fails.
 * It gives back how many allocations a whole attempt makes, so that a test can see that the sweep swept something.
 *
 * Seen are malloc, calloc, realloc, strdup and strndup as called by our own code (the linker wraps them) and all of
 * Jansson's. Not seen: what zlib, pthreads and libc allocate inside.
 */
#ifndef FAILING_ALLOC_H
#define FAILING_ALLOC_H
#include "foretell.h"

typedef ft_status failing_alloc_attempt(void *context);
long failing_alloc_sweep(failing_alloc_attempt *attempt, void *context);

/* The n-th allocation from now fails (1 is the next), and with `for_good` all after it; 0 lets all succeed. */
void failing_alloc_at(long n, bool for_good);
long failing_alloc_count(void); /* allocations since the last failing_alloc_at */

/* After `started` more threads, pthread_create says EAGAIN; a negative number lets all start. */
void failing_threads_after(long started);
#endif

#include "failing_alloc.h"

#include <errno.h>
#include <jansson.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static atomic_long made;      /* allocations so far */
static atomic_long fail_from; /* 0: none fails */
static atomic_bool fail_for_good;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *at, size_t size);
char *__real_strdup(const char *s);
char *__real_strndup(const char *s, size_t n);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *at, size_t size);
char *__wrap_strdup(const char *s);
char *__wrap_strndup(const char *s, size_t n);

static bool refuse(void)
{
    long n = atomic_fetch_add(&made, 1) + 1, from = atomic_load(&fail_from);
    return from > 0 && (n == from || (n > from && atomic_load(&fail_for_good)));
}

void *__wrap_malloc(size_t size) { return refuse() ? NULL : __real_malloc(size); }
void *__wrap_calloc(size_t count, size_t size) { return refuse() ? NULL : __real_calloc(count, size); }
void *__wrap_realloc(void *at, size_t size) { return refuse() ? NULL : __real_realloc(at, size); }
char *__wrap_strdup(const char *s) { return refuse() ? NULL : __real_strdup(s); }
char *__wrap_strndup(const char *s, size_t n) { return refuse() ? NULL : __real_strndup(s, n); }

void failing_alloc_at(long n, bool for_good)
{
    /* Jansson is a library of its own: the linker's wrapping does not reach it, its allocator hooks do. */
    json_set_alloc_funcs(__wrap_malloc, free);
    atomic_store(&fail_from, 0);
    atomic_store(&made, 0);
    atomic_store(&fail_for_good, for_good);
    atomic_store(&fail_from, n);
}

long failing_alloc_count(void) { return atomic_load(&made); }

long failing_alloc_sweep(failing_alloc_attempt *attempt, void *context)
{
    /* Once without failures: what is made on first use (Jansson's hash seed) is then out of the way. */
    failing_alloc_at(0, false);
    ft_status whole = attempt(context);
    if (whole != FT_OK) fail_msg("the attempt fails with memory at hand: %s", ft_status_name(whole));

    for (long n = 1;; n++) {
        long reached = 0;
        for (int for_good = 0; for_good <= 1; for_good++) {
            failing_alloc_at(n, for_good);
            ft_status status = attempt(context);
            reached = failing_alloc_count();
            failing_alloc_at(0, false);
            if (status != FT_E_MEMORY && status != FT_OK)
                fail_msg("allocation %ld fails and the attempt says \"%s\"", n, ft_status_name(status));
            if (reached < n && status != FT_OK)
                fail_msg("no allocation failed and the attempt says \"%s\"", ft_status_name(status));
        }
        if (reached < n) return n - 1;
    }
}

static atomic_long threads_left = -1;

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument);

void failing_threads_after(long started) { atomic_store(&threads_left, started); }

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument)
{
    long left = atomic_load(&threads_left);
    if (left == 0) return EAGAIN;
    if (left > 0) atomic_store(&threads_left, left - 1);
    return __real_pthread_create(thread, attributes, start, argument);
}

/* parallel.c: the one loop that uses several cores.
 *
 * Workers take the next index from an atomic counter, so uneven work balances itself. Which thread gets which index
 * is left to chance; results do not depend on it because each goes to its own slot. The caller works too: when the
 * system gives no thread at all, the loop still runs, only slower.
 */
#define _GNU_SOURCE /* sched_getaffinity */
#include "base/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/decimal.h"

enum { MOST_THREADS = 256 };

typedef struct work {
    atomic_size_t next;
    size_t count;
    void (*body)(void *context, size_t i);
    void *context;
} work;

static void *worker(void *argument)
{
    work *w = argument;
    for (;;) {
        size_t i = atomic_fetch_add_explicit(&w->next, 1, memory_order_relaxed);
        if (i >= w->count) return NULL;
        w->body(w->context, i);
    }
}

/* A thread of its own has the process's locale again. */
static void *helper(void *argument)
{
    ft_decimal points;
    ft__decimal_begin(&points);
    worker(argument);
    ft__decimal_end(&points);
    return NULL;
}

void ft__parallel(int threads, size_t count, void (*body)(void *context, size_t i), void *context)
{
    if (threads <= 0) threads = ft__core_count();
    if (threads > MOST_THREADS) threads = MOST_THREADS;
    if ((size_t)threads > count) threads = (int)count;

    work w = {.count = count, .body = body, .context = context};
    atomic_init(&w.next, 0);
    pthread_t helpers[MOST_THREADS];
    int started = 0;
    while (started < threads - 1 && pthread_create(&helpers[started], NULL, helper, &w) == 0) started++;
    worker(&w);
    for (int i = 0; i < started; i++) pthread_join(helpers[i], NULL);
}

/* The cores this process may use, which in a container are fewer than the machine has. */
int ft__core_count(void)
{
#ifdef __linux__
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0) {
        int allowed = CPU_COUNT(&set);
        if (allowed > 0) return allowed;
    }
#endif
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    if (online < 1) return 1;
    return online > MOST_THREADS ? MOST_THREADS : (int)online;
}

struct ft_lock {
    pthread_mutex_t mutex;
};

ft_lock *ft__lock_new(void)
{
    ft_lock *l = malloc(sizeof *l);
    if (l && pthread_mutex_init(&l->mutex, NULL) == 0) return l;
    free(l);
    return NULL;
}

void ft__lock_free(ft_lock *l)
{
    if (l) pthread_mutex_destroy(&l->mutex);
    free(l);
}

void ft__lock_take(ft_lock *l) { pthread_mutex_lock(&l->mutex); }
void ft__lock_leave(ft_lock *l) { pthread_mutex_unlock(&l->mutex); }

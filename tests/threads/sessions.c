/* Eight threads with a session each on one context, asking for everything at once: sessions [ROUNDS]
 *
 * A program of its own, so that ThreadSanitizer can watch it (scripts/test builds it with -Db_sanitize=thread): answers
 * must be those of a thread alone, and no two threads may touch the same memory without an order between them. Devices
 * are read on first use by whoever comes first, so every thread begins with all of them. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "foretell.h"

enum { THREADS = 8, MOST = 128, LONGEST = 400 };

static char requests[MOST][LONGEST];
static char *expected[MOST];
static int request_count;

static void add(const char *format, const char *word) { snprintf(requests[request_count++], LONGEST, format, word); }

static void make_requests(const ft_context *ft)
{
    static const char *const models[] = {"gpt2",      "llama-3-8b", "mixtral-8x7b",
                                         "bert-base", "resnet-50",  "deepseek-v2-lite"};
    ft_device d;
    for (size_t i = 0; i < ft_device_count(ft) && request_count < 64; i++)
        if (ft_device_at(ft, i, &d, NULL) == FT_OK)
            add("{\"task\":\"kernel\",\"op\":\"gemm\",\"m\":512,\"n\":512,\"k\":512,\"dtype\":\"fp32\",\"gpu\":\"%s\"}",
                d.name);
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        add("{\"task\":\"train\",\"model\":\"%s\",\"gpu\":\"h100_sxm\",\"batch\":1,\"seq\":128,\"advice\":true}",
            models[i]);
        add("{\"task\":\"train\",\"model\":\"%s\",\"gpu\":\"a100_sxm_80gb\",\"batch\":2,\"seq\":64,\"parallel\":{"
            "\"dp\":8}}",
            models[i]);
        add("{\"task\":\"forward\",\"model\":\"%s\",\"gpu\":{\"base\":\"l40s\",\"name\":\"mine\",\"memory_gib\":96}}",
            models[i]);
    }
    add("{\"task\":\"collective\",\"op\":\"%s\",\"bytes\":1e8,\"ranks\":16,\"gpu\":\"h100_sxm\"}", "all_reduce");
    add("{\"task\":\"train\",\"model\":\"%s\",\"gpu\":\"h100_sxm\"}", "no such model");
    add("{\"task\":%s", "");
}

typedef struct asker {
    pthread_t thread;
    const ft_context *ft;
    int number, rounds, wrong;
} asker;

static void *ask(void *argument)
{
    asker *a = argument;
    ft_session *s = NULL;
    if (ft_session_open(&s, a->ft, NULL) != FT_OK) return a->wrong = 1, NULL;
    for (int n = 0; n < a->rounds * request_count; n++) {
        int i = (n + a->number * 7) % request_count;
        const char *answer = ft_session_answer(s, requests[i], strlen(requests[i]), NULL);
        if (!answer || strcmp(answer, expected[i]) != 0) {
            if (!a->wrong++)
                fprintf(stderr, "thread %d: %s\n-> %.300s\n", a->number, requests[i], answer ? answer : "nothing");
        }
    }
    ft_session_close(s);
    return NULL;
}

int main(int argc, char **argv)
{
    ft_context *alone, *shared;
    asker askers[THREADS];
    int wrong = 0, rounds = argc > 1 ? atoi(argv[1]) : 2;
    if (ft_open(&alone, NULL, NULL) != FT_OK || ft_open(&shared, NULL, NULL) != FT_OK) return 2;
    make_requests(alone);
    for (int i = 0; i < request_count; i++) expected[i] = ft_answer(alone, requests[i]);
    for (int t = 0; t < THREADS; t++) {
        askers[t] = (asker){.ft = shared, .number = t, .rounds = rounds};
        if (pthread_create(&askers[t].thread, NULL, ask, &askers[t]) != 0) return 2;
    }
    for (int t = 0; t < THREADS; t++) {
        pthread_join(askers[t].thread, NULL);
        wrong += askers[t].wrong;
    }
    for (int i = 0; i < request_count; i++) free(expected[i]);
    ft_close(shared);
    ft_close(alone);
    printf("%d threads, %d requests each, %d wrong\n", THREADS, rounds * request_count, wrong);
    return wrong ? 1 : 0;
}

/* models.c: whole models per second, through the JSON door.
 *
 *     models [-p PREDICTOR] [-n LINES | -r LINES]
 *
 * Prints rows of the table that scripts/bench completes: a training step of the largest Llama with kernels and memory,
 * a mixture of models and tasks, and one step asked again and again. With -n it writes that many requests as JSON Lines
 * instead, for `foretell batch`: twelve models, four tasks, batches and lengths that change from line to line; with -r
 * those of the one step.
 */
#define _POSIX_C_SOURCE 200809L /* clock_gettime */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "foretell.h"

static const double seconds = 1.0; /* per row */

/* What programs ask again and again. */
static const char step_8b[] =
    "{\"task\":\"train\",\"model\":\"llama-3-8b\",\"gpu\":\"h200_sxm\",\"batch\":2,\"seq\":4096}";

static double clock_of(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double now(void) { return clock_of(CLOCK_MONOTONIC); }

static void mixture(long i, char *request, size_t room)
{
    static const struct {
        const char *name;
        int tasks, longest;
    } models[] = {{"gpt2", 4, 1024},          {"llama-3-8b", 4, 1024}, {"bert-large", 2, 512},
                  {"mixtral-8x7b", 4, 1024},  {"vit-b-16", 2, 1024},   {"llama-3.1-405b", 4, 1024},
                  {"qwen3-30b-a3b", 4, 1024}, {"t5-base", 2, 1024},    {"resnet-50", 2, 1024},
                  {"gemma-2-9b", 4, 1024},    {"opt-1.3b", 4, 1024},   {"deepseek-v2-lite", 4, 1024}};
    static const char *const tasks[] = {"train", "forward", "prefill", "decode"};
    enum { COUNT = sizeof models / sizeof *models };
    long model = i % COUNT, seq = 128 * (1 + i % 8);
    snprintf(request, room, "{\"task\":\"%s\",\"model\":\"%s\",\"gpu\":\"h200_sxm\",\"batch\":%ld,\"seq\":%ld}",
             tasks[i / COUNT % models[model].tasks], models[model].name, 1 + i % 16,
             seq < models[model].longest ? seq : models[model].longest);
}

/* Microseconds of one answer, the best of all: what the machine can do when nobody else uses it. 0 when one failed. */
static double answer_us(ft_session *session, const char *request)
{
    double best = 0, started = now();
    size_t length = strlen(request);
    while (now() - started < seconds) {
        double start = now();
        const char *text = ft_session_answer(session, request, length, NULL);
        double took = (now() - start) * 1e6;
        bool ok = text && strstr(text, "\"ok\":true");
        if (!ok) fprintf(stderr, "models: %s\n-> %.400s\n", request, text ? text : "(out of memory)");
        if (!ok) return 0;
        if (best == 0 || took < best) best = took;
    }
    return best;
}

/* Answers per second of processor to one request that is asked again and again; 0 when one failed. */
static double answers_per_s(ft_session *session, const char *request)
{
    double started = clock_of(CLOCK_PROCESS_CPUTIME_ID), took = 0, count = 0;
    size_t length = strlen(request);
    for (; took < seconds; took = clock_of(CLOCK_PROCESS_CPUTIME_ID) - started)
        for (int i = 0; i < 100; i++, count++) {
            const char *text = ft_session_answer(session, request, length, NULL);
            if (!text || !strstr(text, "\"ok\":true")) return 0;
        }
    return count / took;
}

static bool print_row(const char *what, double us, double wanted)
{
    printf("%-46s %12.3f ms   (wanted %g)\n", what, us * 1e-3, wanted);
    fflush(stdout);
    return us > 0;
}

int main(int argc, char **argv)
{
    ft_options options = {0};
    long lines = 0, again = 0;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (!strcmp(argv[i], "-p")) options.predictor = argv[i + 1];
        if (!strcmp(argv[i], "-n")) lines = atol(argv[i + 1]);
        if (!strcmp(argv[i], "-r")) again = atol(argv[i + 1]);
    }
    char request[256];
    for (long i = 0; i < lines; i++) {
        mixture(i, request, sizeof request);
        puts(request);
    }
    for (long i = 0; i < again; i++) puts(step_8b);
    if (lines || again) return 0;

    ft_context *ft;
    ft_error err;
    ft_session *session = NULL;
    if (ft_open(&ft, &options, &err) != FT_OK || ft_session_open(&session, ft, &err) != FT_OK) {
        fprintf(stderr, "models: %s\n", err.message);
        return 1;
    }
    static const struct {
        const char *what, *request;
    } rows[] = {
        {"Llama 405B, a training step (in a session)",
         "{\"task\":\"train\",\"model\":\"llama-3.1-405b\",\"gpu\":\"h200_sxm\",\"batch\":1,\"seq\":4096}"},
        {"the same, every kernel listed",
         "{\"task\":\"train\",\"model\":\"llama-3.1-405b\",\"gpu\":\"h200_sxm\",\"batch\":1,\"seq\":4096,\"detail\":"
         "\"kernels\"}"},
        {"Llama 8B, a training step", step_8b},
        {"Llama 405B, a decode step",
         "{\"task\":\"decode\",\"model\":\"llama-3.1-405b\",\"gpu\":\"h200_sxm\",\"batch\":8,\"seq\":4096}"},
    };
    bool good = true;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        good = print_row(rows[i].what, answer_us(session, rows[i].request), 0.5) && good;
    double rate = answers_per_s(session, step_8b);
    printf("%-46s %12.0f /s   (wanted 5000)\n", "the step of 8B again and again, a core", rate);
    good = good && rate > 0;
    ft_session_close(session);
    ft_close(ft);
    return good ? 0 : 1;
}

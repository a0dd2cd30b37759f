/* plans.c: how long plans take, of the processor and by the clock, and how many layouts are put together from what they
 * share in a second of one core.
 *
 *     plans [-p PREDICTOR]
 */
#define _POSIX_C_SOURCE 200809L /* clock_gettime */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "search/plan.h"

static double now(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static const struct {
    const char *what, *wanted, *request;
} rows[] = {
    {"plan: 70B on 64 H100", "0.1",
     "{\"task\":\"plan\",\"model\":\"llama-3-70b\",\"gpu\":\"h100_sxm\",\"gpus\":64,\"global_batch\":256,\"seq\":"
     "8192}"},
    {"plan: 175B on 1,024 A100", "0.15",
     "{\"task\":\"plan\",\"model\":\"gpt3-175b\",\"gpu\":\"a100_sxm_80gb\",\"gpus\":1024,\"global_batch\":1536,\"seq\":"
     "2048}"},
    {"plan: 405B on 16,384 H100", "0.3",
     "{\"task\":\"plan\",\"model\":\"llama-3.1-405b\",\"gpu\":\"h100_sxm\",\"gpus\":16384,\"global_batch\":2048,"
     "\"seq\":8192}"},
    {"plan: DeepSeek-V3 on 2,048 H800, fp8", "1",
     "{\"task\":\"plan\",\"model\":\"deepseek-v3\",\"gpu\":\"h800_sxm\",\"gpus\":2048,\"global_batch\":15360,\"seq\":"
     "4096,"
     "\"dtype\":\"fp8\"}"},
};

/* Layouts of a finished search whose bounds follow from their cells, again and again for a tenth of a second. */
static double composed_per_s(ft_plan *p)
{
    double began = now(CLOCK_PROCESS_CPUTIME_ID), took = 0, count = 0;
    for (; took < 0.1; took = now(CLOCK_PROCESS_CPUTIME_ID) - began)
        for (size_t i = 0; i < p->search.candidate_count; i++, count++) {
            ft_candidate c = p->search.candidates[i];
            ft__plan_bound(&p->search, &c);
        }
    return count / took;
}

static int fail(const ft_error *err)
{
    fprintf(stderr, "plans: %s\n", err->message);
    return 3;
}

int main(int argc, char **argv)
{
    enum { TURNS = 3 };
    static ft_plan plan;
    ft_context *ft;
    ft_error err = {0};
    double composed = 0;
    ft_options options = {.predictor = argc == 3 && !strcmp(argv[1], "-p") ? argv[2] : NULL};
    if (ft_open(&ft, &options, &err) != FT_OK) return fail(&err);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double best = 1e9, clock = 1e9;
        size_t layouts = 0, forecasts = 0;
        for (int turn = 0; turn < TURNS; turn++) {
            ft_scratch scratch = {0};
            ft_plan_request request;
            json_t *document = NULL;
            double began = now(CLOCK_PROCESS_CPUTIME_ID), from = now(CLOCK_MONOTONIC);
            if (ft__json_parse(rows[i].request, strlen(rows[i].request), "", &document, &err) != FT_OK ||
                ft__plan_request_read(document, &request, &err) != FT_OK ||
                ft__plan_of(ft, &scratch, &request, &plan, &err) != FT_OK)
                return fail(&err);
            double took = now(CLOCK_PROCESS_CPUTIME_ID) - began, waited = now(CLOCK_MONOTONIC) - from;
            if (took < best) best = took;
            if (waited < clock) clock = waited;
            layouts = plan.candidates;
            forecasts = plan.forecasts;
            if (i == 0 && turn == 0) composed = composed_per_s(&plan);
            ft__plan_free(&plan);
            ft__plan_request_free(&request);
            ft__scratch_free(&scratch);
            json_decref(document);
        }
        printf("%-46s %12.2f s    (wanted %s; %.2f s of processor, %zu layouts, %zu forecasts)\n", rows[i].what, clock,
               rows[i].wanted, best, layouts, forecasts);
    }
    printf("%-46s %12.0f /s   (wanted 100000)\n", "layouts put together, a core", composed);
    ft_close(ft);
    return 0;
}

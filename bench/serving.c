/* serving.c: how long plans and choices of serving take, and a simulation: ten thousand requests of a closed loop, and
 * an hour of 19,366 as the Azure conversation trace has them (its rate and the means and spreads of its lengths; the
 * log itself is not shipped).
 *
 *     serving [-p PREDICTOR]
 */
#define _POSIX_C_SOURCE 200809L /* clock_gettime */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "foretell.h"

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

#define MODEL "{\"task\":\"serve\",\"model\":\"llama-3.1-8b\",\"gpu\":\"h100_sxm\","

#define PLAN "{\"task\":\"plan_serve\",\"model\":\"llama-3.1-8b\",\"gpu\":\"h100_sxm\","

static const struct {
    const char *what, *wanted, *request;
} rows[] = {
    {"10,000 requests of 64 clients", "15",
     MODEL "\"isl\":1024,\"osl\":256,\"length_range\":[0.8,1],\"concurrency\":64,\"requests\":10000}"},
    {"an hour of 19,366 requests", "30",
     MODEL "\"isl\":1155,\"osl\":211,\"length_sigma\":0.8,\"rate\":5.38,\"requests\":19366}"},
    {"a plan for 60 requests a second", "1000",
     PLAN "\"isl\":512,\"osl\":64,\"rate\":60,\"slo\":{\"ttft_ms\":300,\"tpot_ms\":20}}"},
    {"a plan for answers of 8,000 tokens, 4 GPUs", "5000",
     PLAN "\"isl\":1000,\"osl\":8000,\"gpus\":4,\"slo\":{\"ttft_ms\":2000,\"tpot_ms\":50}}"},
    {"a choice of 2,000 GPUs, nobody waits", "5000",
     "{\"task\":\"choose_serve\",\"model\":\"llama-3.1-8b\",\"isl\":2000,\"osl\":300,\"requests\":1000000,\"gpus\":"
     "2000}"},
};

int main(int argc, char **argv)
{
    ft_context *ft;
    ft_error err;
    ft_options options = {.predictor = argc == 3 && !strcmp(argv[1], "-p") ? argv[2] : NULL};
    if (ft_open(&ft, &options, &err) != FT_OK) {
        fprintf(stderr, "serving: %s\n", err.message);
        return 3;
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double best = 1e9;
        double spent = 0;
        for (int turn = 0; turn < 10 && spent < 3; turn++) {
            double began = now();
            char *text = ft_answer(ft, rows[i].request);
            double took = now() - began;
            if (!text || !strstr(text, "\"ok\":true")) {
                fprintf(stderr, "serving: %s\n", text ? text : "out of memory");
                return 3;
            }
            free(text);
            spent += took;
            if (took < best) best = took;
        }
        printf("%-46s %12.2f ms   (wanted %s)\n", rows[i].what, 1e3 * best, rows[i].wanted);
    }
    ft_close(ft);
    return 0;
}

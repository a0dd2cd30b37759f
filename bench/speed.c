/* speed.c: forecasts per second on one core, through the typed door and through the JSON door.
 *
 *     speed [-p PREDICTOR] [-g GPU] [-n LINES]
 *
 * Prints two rows of the table that scripts/bench completes; with -n it writes that many requests as JSON Lines
 * instead, the same ones, for `foretell batch`. The mix is what a transformer's step asks for: half GEMMs, the rest
 * attention, elementwise and row operators, every shape another, so that no cache answers twice.
 */
#define _POSIX_C_SOURCE 200809L /* clock_gettime */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "foretell.h"

enum { CASES = 4096 };
static const double seconds = 1.5; /* per row, after a warm-up of a tenth */

static uint64_t random_state = 2463534242u;

static int64_t draw(int64_t low, int64_t high) /* xorshift64; the high half, spread over [low, high] */
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return low + (int64_t)((random_state >> 32) % (uint64_t)(high - low + 1));
}

static const char *gpu = "h200_sxm";

/* One case in both forms. The op's names are literals, as its owner outlives it. */
static void make_case(ft_op *op, char *request, size_t room)
{
    memset(op, 0, sizeof *op);
    op->dtype = op->kv_dtype = FT_BF16;
    switch (draw(0, 5)) {
    case 0: {
        int64_t batch = draw(1, 16), heads = 8 * draw(1, 8), len = draw(16, 8192);
        op->kind = FT_OP_ATTENTION;
        op->name = "attention";
        op->u.attention.batch = batch;
        op->u.attention.heads = heads;
        op->u.attention.kv_heads = 8;
        op->u.attention.q_len = op->u.attention.kv_len = len;
        op->u.attention.head_dim = op->u.attention.v_dim = 128;
        op->u.attention.causal = true;
        snprintf(request, room,
                 "{\"task\":\"kernel\",\"op\":\"attention\",\"batch\":%" PRId64 ",\"heads\":%" PRId64
                 ",\"kv_heads\":8,\"q_len\":%" PRId64 ",\"kv_len\":%" PRId64
                 ",\"head_dim\":128,\"causal\":true,\"dtype\":\"bf16\",\"gpu\":\"%s\"}",
                 batch, heads, len, len, gpu);
        break;
    }
    case 1:
        op->kind = FT_OP_ELEMENTWISE;
        op->name = "gelu";
        op->u.elementwise.numel = draw(1000, 100000000);
        op->u.elementwise.inputs = 1;
        snprintf(request, room,
                 "{\"task\":\"kernel\",\"op\":\"elementwise\",\"name\":\"gelu\",\"inputs\":1,\"numel\":%" PRId64
                 ",\"dtype\":\"bf16\",\"gpu\":\"%s\"}",
                 op->u.elementwise.numel, gpu);
        break;
    case 2:
        op->kind = FT_OP_ROW;
        op->name = "rmsnorm";
        op->u.row.rows = draw(1, 65536);
        op->u.row.cols = 64 * draw(1, 256);
        snprintf(request, room,
                 "{\"task\":\"kernel\",\"op\":\"rmsnorm\",\"rows\":%" PRId64 ",\"cols\":%" PRId64
                 ",\"dtype\":\"bf16\",\"gpu\":\"%s\"}",
                 op->u.row.rows, op->u.row.cols, gpu);
        break;
    default:
        op->kind = FT_OP_GEMM;
        op->name = "gemm";
        op->u.gemm.b = 1;
        op->u.gemm.m = draw(1, 32768);
        op->u.gemm.n = 8 * draw(1, 4096);
        op->u.gemm.k = 64 * draw(1, 256);
        op->u.gemm.quantized = -1;
        memcpy(op->u.gemm.layout, "nt", 3);
        snprintf(request, room,
                 "{\"task\":\"kernel\",\"op\":\"gemm\",\"m\":%" PRId64 ",\"n\":%" PRId64 ",\"k\":%" PRId64
                 ",\"layout\":\"nt\",\"dtype\":\"bf16\",\"gpu\":\"%s\"}",
                 op->u.gemm.m, op->u.gemm.n, op->u.gemm.k, gpu);
    }
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static ft_op ops[CASES];
static char requests[CASES][320];
static ft_context *ft;
static ft_device device;
static double sum; /* printed on stderr when not positive: the work must not be optimised away */

static bool forecast(size_t i)
{
    ft_forecast f;
    ft_error err;
    if (ft_kernel(ft, &device, &ops[i], &f, &err) != FT_OK) {
        fprintf(stderr, "speed: %s\n", err.message);
        return false;
    }
    sum += f.ms;
    return true;
}

static bool answer(size_t i)
{
    char *text = ft_answer(ft, requests[i]);
    bool ok = text && strstr(text, "\"ok\":true");
    if (!ok) fprintf(stderr, "speed: %s\n-> %s\n", requests[i], text ? text : "(out of memory)");
    free(text);
    return ok;
}

/* Calls per second over whole rounds of all cases; 0 when one failed. */
static double rate(bool (*call)(size_t))
{
    double total = 0, best = 0;
    while (total < seconds) {
        double start = now();
        for (size_t i = 0; i < CASES; i++)
            if (!call(i)) return 0;
        double took = now() - start;
        total += took;
        if (CASES / took > best) best = CASES / took;
    }
    return best; /* the best round: what the machine can do when nobody else uses it */
}

static void print_row(const char *what, double per_second, double target)
{
    printf("%-46s %12.0f /s", what, per_second);
    if (target > 0) printf("   (wanted %.0f)", target);
    printf("\n");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    ft_options options = {0};
    long lines = 0;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (!strcmp(argv[i], "-p")) options.predictor = argv[i + 1];
        if (!strcmp(argv[i], "-g")) gpu = argv[i + 1];
        if (!strcmp(argv[i], "-n")) lines = atol(argv[i + 1]);
    }
    for (size_t i = 0; i < CASES; i++) make_case(&ops[i], requests[i], sizeof requests[i]);
    for (long i = 0; i < lines; i++) puts(requests[i % CASES]);
    if (lines) return 0;

    ft_error err;
    double start = now();
    if (ft_open(&ft, &options, &err) != FT_OK || ft_device_find(ft, gpu, &device, &err) != FT_OK) {
        fprintf(stderr, "speed: %s\n", err.message);
        return 1;
    }
    printf("%-46s %12.2f ms   (wanted 5)\n", "opening the library, predictor and all", (now() - start) * 1e3);
    double typed = rate(forecast), json = rate(answer);
    print_row("forecasts through the library, one core", typed, 200000);
    print_row("the same in JSON (ft_answer), one core", json, 60000);
    ft_close(ft);
    if (!(sum > 0)) fprintf(stderr, "speed: forecasts sum to %g\n", sum);
    return typed > 0 && json > 0 && sum > 0 ? 0 : 1;
}

/* Logs of requests: any bytes as a file. Every request that is read has tokens and comes no earlier than the one
 * before; every error names the file and a line; what is read is simulated, and every request ends. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "serving/simulate.h"

static ft_serving_engine engine = {.step_ms = 1, .step_scale = 1, .prefill_scale = 1};
static ft_costs costs = {.dp = 1, .pp = 1, .engine = &engine};
static ft_policy policy = {
    .budget = 8192, .max_sequences = 64, .capacity = 1e5, .block = 16, .accepted = 1, .chunked = true};

static ft_status read_all(const char *path, double *requests, ft_error *err)
{
    ft_log *log;
    ft_call c;
    bool more;
    double last = 0;
    ft_status status = ft__log_open(path, &log, err);
    if (status != FT_OK) return status;
    while ((status = ft__log_next(log, &more, &c, err)) == FT_OK && more) {
        FUZZ_CHECK(c.prompt >= 1 && c.answer >= 1 && c.client >= 0);
        FUZZ_CHECK(isfinite(c.sent_ms) && c.sent_ms >= last);
        last = c.sent_ms;
        *requests += 1;
    }
    ft__log_close(log);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *path = fuzz_file(0, data, size);
    ft_error err = {0};
    double requests = 0;
    ft_status status = read_all(path, &requests, &err);
    if (status != FT_OK) {
        FUZZ_CHECK(err.code == status && err.message[0] && !strcmp(err.where, path));
        return 0;
    }
    ft_load load = {.requests = INT64_MAX, .turns = 1};
    ft_outcome *o = malloc(sizeof *o);
    ft_scene s = {.costs = &costs, .policy = &policy, .replicas = 1, .hash_tokens = 512};
    FUZZ_CHECK(o && ft__log_open(path, &load.log, &err) == FT_OK);
    status = ft__simulate(&s, &load, o, &err);
    FUZZ_CHECK(status == FT_OK ? o->requests == requests : status == FT_E_RANGE);
    ft__log_close(load.log);
    free(o);
    return 0;
}

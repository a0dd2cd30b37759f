/* Steps that were measured on an H200 (data/measurements/h200) as requests. */
#ifndef FT_TEST_MEASURED_H
#define FT_TEST_MEASURED_H
#include "golden.h"

extern json_t *measured; /* rows of models and of architectures, an array */

int measured_open(void **state); /* opens the golden context too */
int measured_close(void **state);

/* "" and 0 where a row has no such key. */
const char *measured_word(const json_t *row, const char *key);
double measured_figure(const json_t *row, const char *key);
double measured_busy(const json_t *row); /* the kernels' time */

typedef struct measured_case {
    const char *model, *mode, *dtype;
    int batch, seq;
    bool recomputed;
    const char *execution;
} measured_case;

/* The row; the test fails where there is none. */
const json_t *measured_row(const measured_case *c);
/* The request that the row answers. */
json_t *measured_request(const json_t *row);
json_t *measured_answer(const json_t *request);

/* A change of one thing, timed in turn with the step it changes (pairs.csv). */
typedef struct measured_pair {
    int run;            /* of the machine: hosts differ */
    const char *change; /* as the table of techniques calls it */
    const char *model;
    json_t *request; /* before the change */
    double before_ms, after_ms;
} measured_pair;
/* How many there are; json_decref each request. */
size_t measured_pairs(measured_pair *out, size_t room);
#endif

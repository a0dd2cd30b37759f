/* Figures of documents, asked for as a user would ask: JSON in, JSON out. */
#ifndef FT_TEST_GOLDEN_H
#define FT_TEST_GOLDEN_H
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "foretell.h"

extern ft_context *golden_ft;

int golden_open(void **state);
int golden_close(void **state);

/* The answer to a request; the test fails when it is an error. The caller gives it back with json_decref. */
json_t *golden_ask(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* One figure of one answer: golden_figure(a, "memory.peak_bytes"). The test fails when there is none. */
double golden_figure(const json_t *answer, const char *path);
/* The same in one call, for those who want nothing else of the answer. */
double golden_value(const char *path, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Fails, naming both, unless `got` is within `share` of `expected` (0.03: three percent). */
void golden_near(const char *what, double got, double expected, double share);
/* Fails unless the text of `what` holds: for figures that a bare assert_true would not show. */
void golden_holds(bool holds, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A file of tests/golden as text; free() it. */
char *golden_file(const char *name);
/* The lines of a file of JSON Lines under data/; the caller gives them back with json_decref. */
json_t *golden_rows(const char *name);

/* Runs that others published, kind by kind: how far off on average, and each, and how many there are. */
typedef struct golden_bound {
    const char *name;
    double mean, worst;
    int runs;
} golden_bound;
/* Every run of data/FILE within the bound that `which` says is its; NULL: the one named as its source. */
void golden_runs(const char *file, const golden_bound *bounds, int count, int (*which)(const json_t *run));
#endif

/* Answers side by side: what was asked differently, where the time differs, and why one is faster. */
#ifndef FT_STUDY_COMPARE_H
#define FT_STUDY_COMPARE_H
#include "base/text.h"
#include "request/compare.h"
#include "request/idle.h"

enum { FT_MOST_COMPARED = 8, FT_MOST_CAUSES = 8 };

typedef enum ft_compare_kind {
    FT_COMPARE_STEP,
    FT_COMPARE_MEMORY, /* of a step that was not timed */
    FT_COMPARE_KERNEL,
    FT_COMPARE_GRID /* `infer`: prefill and decode over batches and lengths */
} ft_compare_kind;

typedef struct ft_compared {
    const char *name;      /* the file, or the file and the answer's id */
    const json_t *request; /* NULL: the answer does not say */
    const json_t *answer;
    const char *version; /* of the program that answered; NULL: it does not say */
    const char *task;    /* "train" */
    ft_compare_kind kind;
    ft_idle_list idle; /* what its request asks to see of the step, which a comparison does not show */
} ft_compared;

/* Says what an answer is of; refuses errors and what cannot be compared. */
ft_status ft__compared_of(const char *name, const json_t *answer, const json_t *request, ft_compared *out,
                          ft_error *err);
/* Answers of different tasks or versions are refused. */
ft_status ft__compare_check(const ft_compared *c, size_t count, ft_error *err);

/* Keys of the requests whose values differ, at most `most` of them; "parallel.tp". */
typedef struct ft_asked {
    char key[72];
    const json_t *value[FT_MOST_COMPARED]; /* NULL: left out */
} ft_asked;
size_t ft__compare_asked(const ft_compared *c, size_t count, ft_asked *out, size_t most);

/* One part of the difference. The parts of a pair add up to the whole difference. */
typedef struct ft_cause {
    const char *name;
    double a_ms, b_ms; /* b_ms: for as much work as a's step does */
    char why[160];
} ft_cause;

/* Kernels of one name, operator, phase and block. */
typedef struct ft_kernel_pair {
    const char *name, *op, *phase, *block;
    const char *bound[2];
    double launches[2], ms[2], flops[2], bytes[2]; /* of the step; of b for a's work; all 0 where there is none */
    size_t place;                                  /* among the kernels of both answers */
} ft_kernel_pair;

typedef struct ft_pair {
    double work;                     /* samples of a's step on one GPU over those of b's */
    double a_ms, b_ms, change_ms;    /* b_ms: for a's work; change: b - a, below 0 where b is faster */
    bool apart;                      /* the intervals do not meet */
    ft_cause causes[FT_MOST_CAUSES]; /* largest first */
    size_t cause_count;
    ft_kernel_pair *kernels; /* largest change first; free() it */
    size_t kernel_count, only_a, only_b;
    double only_a_ms, only_b_ms;
} ft_pair;
/* Of answers with a time. False: out of memory. */
bool ft__compare_pair(const ft_compared *a, const ft_compared *b, ft_pair *out);

/* A figure of an answer by its path, "memory.peak_bytes"; 0 where it has none. */
double ft__compared_figure(const json_t *answer, const char *path);

/* Who answers requests that are compared: the answer as JSON, with "ok". */
typedef ft_status (*ft_answerer)(void *user, const json_t *request, json_t **out, ft_error *err);

/* Answers, read from files or answered. Free it with ft__comparison_free, whatever ft__compare_of said. */
typedef struct ft_comparison {
    ft_compared compared[FT_MOST_COMPARED];
    size_t count;
    json_t *documents[2 * FT_MOST_COMPARED]; /* answers and requests that are kept */
    char *names[FT_MOST_COMPARED];
    size_t document_count;
    ft_text warnings; /* of the answers, one per line; with the answer's name where not all have it */
} ft_comparison;
/* At least two, of one task and one version. */
ft_status ft__compare_of(const ft_compare_request *r, ft_answerer answer, void *user, ft_comparison *out,
                         ft_error *err);
void ft__comparison_free(ft_comparison *c);
#endif

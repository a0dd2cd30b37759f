/* The checklists for linear and convolution layers (NVIDIA, "Linear/Fully-Connected Layers User's Guide",
 * "Convolutional Layers User's Guide", "Matrix Multiplication Background"): alignment, tiles, waves, layout; each
 * finding with its cheapest fix and what that saves by forecast. */
#ifndef FT_EXPLAIN_LINT_H
#define FT_EXPLAIN_LINT_H
#include "explain/change.h"

typedef enum ft_lint_kind {
    FT_LINT_ALIGNMENT, /* rows start off the 16 bytes that matrix units load at */
    FT_LINT_CHANNELS,  /* a convolution's channels likewise */
    FT_LINT_LAYOUT,    /* NCHW where NHWC runs without transposing */
    FT_LINT_TILE,      /* the last tile of a row or column is mostly empty */
    FT_LINT_WAVE,      /* the last wave is mostly empty */
    FT_LINT_FEW_TILES, /* fewer tiles than the GPU has SMs: part of it idles */
    FT_LINT_GROUPS,    /* a convolution of groups with few channels each leaves the matrix units */
    FT_LINT_KINDS
} ft_lint_kind;

typedef struct ft_lint {
    ft_lint_kind kind;
    const char *block, *name;
    ft_phase phase;
    ft_op op, fixed;  /* as it is; with the cheapest fix */
    char dimension;   /* the one that is changed: m n k, or c k of a convolution; 0: none */
    int64_t from, to; /* its size */
    double ms;        /* all launches */
    double saves_ms;  /* at most what the forecast says; 0: the finding costs nothing here */
    int found;        /* in the order of kernels */
    double waste;     /* share of the work that goes into padding or idle SMs; 0 where that is not the point */
} ft_lint;

/* The forecast of one kernel. */
typedef struct ft_probe {
    ft_status (*forecast)(const ft_op *op, void *user, ft_forecast *out, ft_error *err);
    void *user;
} ft_probe;

/* Findings by what they save, dearest first; in the arena. */
ft_status ft__lint(const ft_graph *g, const ft_step *step, const ft_device *device, const ft_probe *probe,
                   ft_arena *arena, ft_lint **out, size_t *count, ft_error *err);
#endif

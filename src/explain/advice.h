/* What to change: every move is forecast as a request of its own, and what is left is ranked by the time it saves. */
#ifndef FT_EXPLAIN_ADVICE_H
#define FT_EXPLAIN_ADVICE_H
#include "explain/lint.h"
#include "explain/moves.h"
#include "explain/regime.h"

/* Parts of a step's time by which two steps are told apart. */
typedef enum ft_part {
    FT_PART_CONTRACTION,
    FT_PART_NORMALISATION,
    FT_PART_ELEMENTWISE,
    FT_PART_WAITS,    /* the GPU waits for the host */
    FT_PART_EXCHANGE, /* exposed */
    FT_PART_BUBBLE,
    FT_PART_INPUT, /* the GPU waits for samples */
    FT_PARTS
} ft_part;

typedef struct ft_advice {
    ft_move move;
    ft_change after;                  /* the request with the change */
    double saves_ms, low_ms, high_ms; /* of the step as asked, the work of as many samples; negative: it costs */
    double step_ms;                   /* of the changed request, whatever its batch */
    double memory_bytes;              /* peak, more or less than before */
    int proposed;                     /* before which others: the simpler first */
    bool on_top;                      /* saves nothing alone: counted on top of those before it in the list */
    ft_fit verdict;                   /* of its memory */
    bool fits, exact;                 /* exact: the same mathematics (moves.h) */
    double part_ms[FT_PARTS];         /* after the change, for as many samples */
} ft_advice;

typedef struct ft_advised {
    double part_ms[FT_PARTS]; /* of the step as asked */
    ft_advice *list;          /* best first; no two of them exclude each other */
    size_t count;
    ft_advice *gpus; /* other GPUs, best first: not a change of the program */
    size_t gpu_count;
    ft_advice together; /* all of `list` at once; saves_ms 0 when there is none or one */
    ft_advice *table;   /* techniques, when asked for */
    size_t table_count;
    ft_lint *lints;
    size_t lint_count;
    ft_verdicts verdicts;
    ft_loading loading; /* of the step as asked */
    int forecasts;      /* made for this */
    bool closed_forms;  /* the step's exchanges were simulated, those of the savings were not */
} ft_advised;

typedef struct ft_advice_case {
    const ft_change *now;
    const ft_step *step; /* of `now`, its input counted */
    const ft_graph *graph;
    ft_loading loading;
    ft_reforecast again;
    void *user;
    ft_probe probe;               /* of single kernels, for lints */
    const ft_device *const *gpus; /* to be thought of instead */
    size_t gpu_count;
    bool techniques; /* the table too */
    double quantile; /* of the intervals */
} ft_advice_case;

ft_status ft__advise(const ft_advice_case *c, ft_arena *arena, ft_advised *out, ft_error *err);
#endif

/* What a framework allows: which layouts it can run at all. Data (data/frameworks), each rule with its source. */
#ifndef FT_SEARCH_FRAMEWORK_H
#define FT_SEARCH_FRAMEWORK_H
#include "base/error.h"
#include "layout/layout.h"
#include "model/workload.h"

/* What may lie on the host together, and of which layouts. */
typedef struct ft_offload_rule {
    unsigned what;      /* bits of ft_offload */
    unsigned zero;      /* bits: with which sharding */
    unsigned recompute; /* bits of ft_recompute */
    bool pipelines;     /* with more than one stage, too */
    bool tried;         /* by a search that may; the others are there to be asked for */
} ft_offload_rule;

/* Of which models it is asked for where nobody names a framework. */
typedef enum ft_usual_for {
    FT_USUAL_FOR_NONE,
    FT_USUAL_FOR_LANGUAGE_MODELS,
    FT_USUAL_FOR_OTHERS,
    FT_USUAL_FOR_PACKED_WEIGHTS /* adapters beside weights of few bits: QLoRA */
} ft_usual_for;

typedef struct ft_framework {
    const char *name, *title;
    const char *stack;              /* its stack; NULL: the execution's usual one */
    const char *execution;          /* how its kernels run; NULL: as its stack has it */
    const char *runs;               /* what each process runs, behind python3 */
    const char *files;              /* launch files of its own, each between blanks */
    const char *files_for_decoders; /* of them those that start no other models */
    const char *like;               /* whose rules it takes; NULL: all are its own */
    unsigned zero;                  /* bits: what a search tries unless told otherwise */
    unsigned zero_allowed;          /* bits: what can be asked for */
    unsigned schedules;             /* bits of ft_schedule */
    unsigned recompute;             /* bits of ft_recompute */
    bool sp_with_tp;                /* norms and residuals are split over tensor ranks, always */
    bool tp_divides_kv_heads;       /* no key-value head is held twice */
    bool cp, ep;                    /* has context ranks, expert ranks */
    unsigned cp_kinds;              /* bits of ft_context_kind: how context ranks can exchange, beyond its own way */
    bool folds_experts;             /* experts may be whole beside tensor ranks */
    bool only_data;                 /* data ranks alone */
    bool packed_weights;            /* adapters beside weights of few bits */
    bool own_program;               /* what it starts is the user's, and may train towards anything */
    ft_usual_for usual_for;
    const ft_offload_rule *offload;
    size_t offload_count;
} ft_framework;

extern const size_t ft__framework_count;
extern const ft_framework ft__frameworks[];
/* Of which a stack is the own one; NULL: nobody's. */
const ft_framework *ft__framework_of_stack(const char *stack);
/* FT_E_NAME with the nearest name where there is none. */
ft_status ft__framework_find(const char *name, const ft_framework **out, ft_error *err);
#endif

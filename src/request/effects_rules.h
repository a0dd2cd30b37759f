/* Rules of effects.c: for each key, why it has no effect in a request. */
#ifndef FT_REQUEST_EFFECTS_RULES_H
#define FT_REQUEST_EFFECTS_RULES_H
#include "request/model.h"

typedef struct ft_effect_case {
    const ft_said *said;
    const ft_model_request *r;
    const ft_parallel *p;
    const ft_workload *w;
    const ft_arch *a;
    int64_t ranks;
    bool trains, shares; /* shares: several ranks exchange gradients */
} ft_effect_case;

/* The reason, or NULL where the key has its effect. */
typedef const char *(*ft_rule)(const ft_effect_case *c);

static inline const char *ft__acts(const ft_effect_case *c) { return c ? NULL : ""; }

static inline const char *ft__training(const ft_effect_case *c) { return c->trains ? NULL : "nothing is trained"; }
const char *ft__versioned(const ft_effect_case *c); /* version.c */

/* Rules of several keys (effects_work.c, effects_lengths.c). */
const char *ft__timed_rule(const ft_effect_case *c);
const char *ft__answers_rule(const ft_effect_case *c);
const char *ft__ahead_rule(const ft_effect_case *c);
const char *ft__age_rule(const ft_effect_case *c);
const char *ft__filled_rule(const ft_effect_case *c);
const char *ft__own_pass_rule(const ft_effect_case *c);
const char *ft__split_rule(const ft_effect_case *c);
const char *ft__host_memory_rule(const ft_effect_case *c);
const char *ft__packing_rule(const ft_effect_case *c);
const char *ft__lengths_rule(const ft_effect_case *c);
const char *ft__batching_rule(const ft_effect_case *c);
const char *ft__longer_rule(const ft_effect_case *c);
const char *ft__filling_rule(const ft_effect_case *c);

/* By key; NULL for keys that the other table has. */
extern const ft_rule ft__work_rules[FT_KEY_COUNT];  /* effects_work.c */
extern const ft_rule ft__ranks_rules[FT_KEY_COUNT]; /* effects_ranks.c */
#endif

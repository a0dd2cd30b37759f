/* One request for a whole model that is asked again with other figures: what studies are made of. */
#ifndef FT_STUDY_ASK_H
#define FT_STUDY_ASK_H
#include "study/context.h"

typedef struct ft_asker {
    const ft_context *ft;
    ft_scratch *scratch;
    json_t *object;           /* the request as it is asked next; borrowed */
    const ft_idle_list *idle; /* keys that the study has no use for, beside those that a step has none for */
    const char *used;         /* of the latter those that other steps or figures of the study use; NULL: none */
    double reach;             /* tokens of the longest sequence that is asked about; 0: the step's own */
    bool unpaused;            /* steps follow each other without a pause for the board */
} ft_asker;

/* Takes the value; FT_E_MEMORY where it is NULL. */
ft_status ft__ask_set(ft_asker *a, ft_key_id key, json_t *value, ft_error *err);
ft_status ft__ask_task(ft_asker *a, const char *task, ft_error *err);
/* What a view points to lives until the next step with the same scratch. */
ft_status ft__ask_step(ft_asker *a, ft_step_view *out, ft_error *err);
/* Lets the last step stay when others follow: the scratch's arena becomes the caller's to free. */
ft_status ft__ask_keep(ft_asker *a, ft_step_view *v, ft_arena **out, ft_error *err);
#endif

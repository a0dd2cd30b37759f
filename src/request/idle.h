/* Keys that were given and change nothing: answered, and said. Of a whole model's request effects.h fills them; of
 * studies and kernels effects_study.c does, of exchanges collective.c. */
#ifndef FT_REQUEST_IDLE_H
#define FT_REQUEST_IDLE_H
#include "base/text.h"
#include "request/keys.h"
#include "request/request.h"

typedef struct ft_idle_key {
    ft_key_id key;
    const char *why; /* static text */
} ft_idle_key;

enum { FT_IDLE_MOST = 24 }; /* of one study */

typedef struct ft_idle_list {
    ft_idle_key at[FT_IDLE_MOST];
    size_t count;
} ft_idle_list;

/* One line each: "sp" has no effect: "tp" is 1. */
void ft__idle_say(const ft_idle_key *at, size_t count, ft_text *out);
/* Says the default, which is what would be without it. */
bool ft__repeats_default(ft_key_id id, const json_t *value);
/* Puts the key on the list where `home`, the object that it stands in, gives it, and not its default. */
void ft__idle_note(ft_idle_list *list, const json_t *home, ft_key_id id, const char *why);
/* Puts a key on the list; what is beyond its end is not said. */
void ft__idle_put(ft_idle_list *list, ft_key_id id, const char *why);
/* Takes off the list what is not on the other: of several answers a key is idle where it is in each. Why is the other's
 * reason. */
void ft__idle_keep(ft_idle_list *list, const ft_idle_list *other);
/* Of one kernel: what this operator, in these formats, has no use for. */
void ft__kernel_idle(const json_t *object, const ft_op *op, ft_idle_list *list);
/* Keys of one step that a study of many has no use for: taken out of the base, and put on the list. */
void ft__study_idle(ft_ask task, json_t *base, ft_idle_list *list);
/* They stay in the base: of a plan, whose layouts are asked for as steps. */
void ft__study_note(ft_ask task, const json_t *base, ft_idle_list *list);
#endif

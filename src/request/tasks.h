/* Which keys a request of each task has, by sections of the table of keys. */
#ifndef FT_REQUEST_TASKS_H
#define FT_REQUEST_TASKS_H
#include "request/keys.h"
#include "request/request.h"

enum { FT_TASK_SECTIONS = 4 };

/* Of a key that two of its sections have, the later one's row holds. */
typedef struct ft_task_row {
    ft_section sections[FT_TASK_SECTIONS]; /* at the top of the request */
    size_t count;
    const char *refused; /* keys of those that it does not take, between blanks */
    const char *needed;  /* keys without which it is no request, likewise */
    bool open;           /* has keys of another task beside its own: a sweep */
} ft_task_row;
extern const ft_task_row ft__tasks[FT_ASK_COUNT];

/* Is it one of the words between blanks? */
bool ft__among(const char *words, const char *word);
/* The row that holds for a key at the top of a request; FT_KEY_COUNT: it has none. */
ft_key_id ft__task_key(ft_ask task, const char *key);
/* Every key of the request is one of the task's. The message names the nearest one, or where it belongs. */
ft_status ft__task_keys_known(const json_t *object, ft_ask task, ft_error *err);
#endif

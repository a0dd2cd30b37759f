/* study.c: reading what requests of study/ share. */
#include "request/study.h"

#include <stdint.h>

#include "request/tasks.h"

json_t *ft__study_copy(const json_t *object)
{
    json_t *copy = json_copy((json_t *)(uintptr_t)object); /* Jansson counts references inside the values */
    if (json_object_size(copy) == json_object_size(object)) return copy;
    json_decref(copy);
    return NULL;
}

/* The request without "id", "task" and the keys of a section: what is left is the base's. NULL: out of memory. */
static json_t *base_of(const json_t *object, ft_section own)
{
    json_t *base = ft__study_copy(object);
    if (!base) return NULL;
    ft__key_drop(base, FT_KEY_ID_ID);
    ft__key_drop(base, FT_KEY_ID_TASK);
    for (int i = 0; i < FT_KEY_COUNT; i++)
        if (ft__keys[i].section == own) ft__key_drop(base, (ft_key_id)i);
    return base;
}

ft_status ft__study_read(const json_t *object, ft_ask task, json_t **base, ft_said *said, ft_error *err)
{
    ft_section own = ft__tasks[task].sections[ft__tasks[task].count - 1];
    ft__said_init(said);
    *base = base_of(object, own);
    if (!*base) return ft__no_memory(err);
    FT_TRY(ft__task_keys_known(object, task, err));
    return ft__said_read(object, own, said, err);
}

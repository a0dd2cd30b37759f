/* ask.c: asking one request again with other figures. */
#include "study/ask.h"

#include <string.h>

#include "request/tasks.h"

ft_status ft__ask_set(ft_asker *a, ft_key_id key, json_t *value, ft_error *err)
{
    return ft__key_set(a->object, key, value) ? FT_OK : ft__no_memory(err);
}

ft_status ft__ask_task(ft_asker *a, const char *task, ft_error *err)
{
    return ft__ask_set(a, FT_KEY_ID_TASK, json_string(task), err);
}

ft_status ft__ask_step(ft_asker *a, ft_step_view *out, ft_error *err)
{
    ft_model_request request;
    FT_TRY(ft__model_request_of(a->ft, a->scratch, a->object, &request, err));
    if (a->unpaused) request.work.unpaused = 1;
    if (a->reach > 0) ft__beyond_positions(request.arch, FT_BEYOND_SEQUENCES, a->reach, request.beyond);
    size_t kept = 0;
    for (size_t i = 0; i < request.idle_count; i++)
        if (!a->used || !ft__among(a->used, ft__keys[request.idle[i].key].key)) request.idle[kept++] = request.idle[i];
    request.idle_count = kept;
    for (size_t i = 0; i < a->idle->count && request.idle_count < FT_KEY_COUNT; i++)
        request.idle[request.idle_count++] = a->idle->at[i];
    return ft__step_of(a->ft, a->scratch, &request, out, err);
}

ft_status ft__ask_keep(ft_asker *a, ft_step_view *v, ft_arena **out, ft_error *err)
{
    const char *warnings = ft__arena_copy(a->scratch->arena, v->warnings, strlen(v->warnings));
    if (!warnings) return ft__no_memory(err);
    v->warnings = warnings;
    *out = a->scratch->arena;
    a->scratch->arena = NULL;
    return FT_OK;
}

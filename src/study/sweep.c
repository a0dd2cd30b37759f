/* sweep.c: the requests of a sweep.
 *
 * A point is a whole request with the number put in, answered as it would be alone, so that a sweep knows all keys and
 * all rules of the task that it is of.
 */
#include "study/sweep.h"

#include <stdio.h>
#include <string.h>

#include "request/keys.h"
#include "request/tasks.h"
#include "request/words.h"

ft_status ft__sweep_prepare(ft_scratch *scratch, ft_sweep_request *r, ft_error *err)
{
    const char *task = json_string_value(ft__key_get(r->base, FT_KEY_ID_TASK));
    const json_t *model = ft__key_get(r->base, FT_KEY_ID_MODEL);
    ft_model_sheet sheet;
    ft_error ignored;
    if (strcmp(task, "infer") != 0 || !strcmp(r->range.key, "batch") || ft__key_get(r->base, FT_KEY_ID_MICRO_BATCH))
        return FT_OK;
    if (!json_is_string(model) && !json_is_object(model)) return FT_OK; /* the point says what is wrong with it */
    const char *read_as = json_string_value(ft__key_get(r->base, FT_KEY_ID_READ_AS));
    ft_status status = ft__model_sheet_of(scratch, model, read_as, &sheet, NULL, NULL, &ignored);
    if (status == FT_E_MEMORY) return ft__no_memory(err);
    if (status != FT_OK) return FT_OK;
    if (sheet.arch.fixed_batch > 0) return FT_OK; /* by the model's file, which then has one cell of itself */
    return ft__key_set(r->base, FT_KEY_ID_MICRO_BATCH, json_integer(1)) ? FT_OK : ft__no_memory(err);
}

ft_key_id ft__sweep_key(const ft_sweep_request *r)
{
    const char *task = json_string_value(ft__key_get(r->base, FT_KEY_ID_TASK));
    for (int i = 0; r->section && i < FT_KEY_COUNT; i++)
        if (!strcmp(ft__section_name(ft__keys[i].section), r->section) && !strcmp(ft__keys[i].key, r->range.key))
            return (ft_key_id)i;
    for (int i = 0; !r->section && i < FT_ASK_COUNT; i++)
        if (!strcmp(ft__ask_words[i], task)) return ft__task_key((ft_ask)i, r->range.key);
    return FT_KEY_COUNT;
}

size_t ft__sweep_gpus(const ft_sweep_request *r) { return json_is_array(r->gpus) ? json_array_size(r->gpus) : 1; }

static const json_t *gpu_at(const ft_sweep_request *r, size_t i)
{
    return json_is_array(r->gpus) ? json_array_get(r->gpus, i) : r->gpus;
}

static bool set_number(const ft_sweep_request *r, json_t *point, double x)
{
    json_t *home = point, *number = r->range.whole ? json_integer((json_int_t)x) : json_real(x);
    if (r->section) { /* of its own: the base's is shared by all points */
        const json_t *given = json_object_get(r->base, r->section);
        home = json_is_object(given) ? ft__study_copy(given) : json_object();
        if (json_object_set_new(point, r->section, home) != 0) home = NULL;
    }
    if (home) return json_object_set_new(home, r->range.key, number) == 0;
    json_decref(number);
    return false;
}

ft_status ft__sweep_point(const ft_sweep_request *r, size_t gpu, size_t i, json_t **out, ft_error *err)
{
    const json_t *device = gpu_at(r, gpu);
    const char *name = json_is_object(device) ? json_string_value(json_object_get(device, "name"))
                                              : json_string_value(device);
    char id[160];
    json_t *point = ft__study_copy(r->base);
    snprintf(id, sizeof id, "%.64s %s=%.15g", name ? name : "gpu", r->range.key, r->range.x[i]);
    bool made = point && ft__key_set(point, FT_KEY_ID_ID, json_string(id)) &&
                ft__key_set(point, FT_KEY_ID_GPU, json_incref((json_t *)(uintptr_t)device)) &&
                set_number(r, point, r->range.x[i]);
    *out = made ? point : NULL;
    if (!made) json_decref(point);
    return made ? FT_OK : ft__no_memory(err);
}

ft_status ft__sweep_explain(const ft_sweep_request *r, size_t i, ft_status status, ft_error *err)
{
    if (status == FT_OK || !err) return status;
    ft_error said = *err;
    return ft__fail_at(err, status, said.where, said.line, said.column, "%.500s (at %s = %.10g)", said.message,
                       r->range.key, r->range.x[i]);
}

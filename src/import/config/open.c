/* open.c: which files of data/architectures a config is read by: that of its type and, where the type wraps another
 * model, that one's too. */
#include "base/json.h"
#include "import/config/architecture.h"

/* Opens the type that a config is or, where it is one around another, that other one inside. */
static ft_status open_inner(ft_reading *r, ft_config_path path, ft_opened *o)
{
    const char *key = ft__architecture_wraps(&o->own);
    o->outer = o->own;
    o->has_outer = true;
    o->has_own = false;
    ft_found inner = {.name = NULL};
    const char *word = ft__architecture_text_type(&o->outer);
    const json_t *held = ft__config_value(r->config, key);
    if (held && !json_is_object(held) && !json_is_null(held))
        return ft__config_fail(r, FT_E_TYPE, key, "\"%s\" must be an object", key);
    if (ft__config_inside(r, key, r, path)) {
        const char *said = json_string_value(json_object_get(r->config, "model_type"));
        if (said) word = said;
    } else {
        o->usual = true;
    }
    json_t *name = json_pack("{s:s}", "model_type", word);
    ft_reading find = {.config = name, .whole = name, .where = r->where, .err = r->err};
    ft_status status = name ? ft__config_find(&find, NULL, &inner) : ft__no_memory(r->err);
    json_decref(name);
    FT_TRY(status);
    FT_TRY(ft__architecture_open(inner.name, r->where, &o->own, r->err));
    o->has_own = true;
    r->type = &o->own.type;
    return FT_OK;
}

ft_status ft__config_open(ft_reading *r, ft_found *found, ft_config_path path[2], ft_opened *o)
{
    FT_TRY(ft__architecture_open(found->file ? found->file : found->name, r->where, &o->own, r->err));
    o->has_own = true;
    r->type = &o->own.type;
    if (!ft__architecture_wraps(&o->own)) return FT_OK;
    FT_TRY(open_inner(r, path[0], o));
    if (!ft__architecture_wraps(&o->own)) return FT_OK;
    if (ft__architecture_adds(&o->outer))
        return ft__config_fail(r, FT_E_UNSUPPORTED, "model_type",
                               "\"%s\" wraps a language model itself; the type of one is expected, as \"%s\"",
                               json_string_value(json_object_get(r->config, "model_type")),
                               ft__architecture_text_type(&o->outer));
    /* An omni model holds the one that reads and writes beside the one that speaks: the first is meant. */
    ft__architecture_close(&o->outer);
    o->usual = false;
    r->whole = r->config;
    return open_inner(r, path[1], o);
}

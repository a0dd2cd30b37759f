/* names.c: names of values, by hash. */
#include <string.h>

#include "base/file.h"
#include "import/onnx/parser.h"

enum { MOST_VALUES = 1 << 22 };

size_t ft__onnx_slot(const ft_onnx_names *t, const char *key)
{
    size_t at = (size_t)ft__hash(key, strlen(key), 0) & (t->room - 1);
    while (t->key[at] && strcmp(t->key[at], key) != 0) at = (at + 1) & (t->room - 1);
    return at;
}

bool ft__onnx_names_grow(ft_onnx_names *t, ft_arena *arena)
{
    if (2 * t->count < t->room) return true;
    ft_onnx_names wider = {.room = t->room ? 2 * t->room : 64};
    wider.key = ft__arena_array(arena, wider.room, sizeof *wider.key);
    wider.value = ft__arena_array(arena, wider.room, sizeof *wider.value);
    if (!wider.key || !wider.value) return false;
    for (size_t i = 0; i < t->room; i++) {
        if (!t->key[i]) continue;
        size_t at = ft__onnx_slot(&wider, t->key[i]);
        wider.key[at] = t->key[i];
        wider.value[at] = t->value[i];
    }
    wider.count = t->count;
    *t = wider;
    return true;
}

void ft__onnx_clean(char *text)
{
    while (text && *text) {
        size_t n = (unsigned char)*text < 0x20 ? 0 : ft__utf8_length(text, strlen(text));
        if (!n) *text = '?';
        text += n ? n : 1;
    }
}

ft_status ft__onnx_no_memory(const ft_onnx_parser *p) { return ft__no_memory(p->err); }

static ft_status add_value(ft_onnx_parser *p, const char *name, int32_t *out)
{
    ft_onnx *o = p->o;
    if (o->value_count == o->value_room) {
        int32_t room = o->value_room ? 2 * o->value_room : 256;
        if (room > MOST_VALUES) return ft__fail(p->err, FT_E_RANGE, "more than %d values", MOST_VALUES);
        ft_onnx_value *wider = ft__arena_array(o->arena, (size_t)room, sizeof *wider);
        if (!wider) return ft__onnx_no_memory(p);
        if (o->value_count) memcpy(wider, o->values, (size_t)o->value_count * sizeof *wider);
        o->values = wider;
        o->value_room = room;
    }
    *out = o->value_count++;
    o->values[*out] = (ft_onnx_value){.name = name, .dims = -1, .maker = -1, .reader = -1};
    return FT_OK;
}

ft_status ft__onnx_value_of(ft_onnx_parser *p, ft_onnx_names *scope, char *name, int32_t *out)
{
    *out = -1;
    if (!name || !*name) return FT_OK;
    ft__onnx_clean(name);
    if (!ft__onnx_names_grow(scope, p->o->arena)) return ft__onnx_no_memory(p);
    size_t at = ft__onnx_slot(scope, name);
    if (!scope->key[at]) {
        int32_t fresh = -1;
        FT_TRY(add_value(p, name, &fresh));
        scope->key[at] = name;
        scope->value[at] = fresh;
        scope->count++;
    }
    *out = scope->value[at];
    return FT_OK;
}

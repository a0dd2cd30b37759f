/* counted.c: a graph of the catalogue in full. scripts/embed_models.py (`counted`) stores values without names, since
 * names are half of what graphs take on a page's wire: who reads a value says how far back it was made, so that layers
 * which are alike are alike to the letter. 1 is the latest value.
 *
 * of a node, of a block     stored as                    means
 * "in", "like"              k                            the value made k values ago
 *                           left out ("in" of a node)    the latest
 *                           0 ("in" of a node)           no operand
 * "out"                     left out (of a node)         a new value
 *                           k, of a list also 0          the value of k values ago is made anew; 0: a new one
 *
 * Inputs, parameters, and what is named where no value can be have their names, as text. */
#include <stdio.h>

#include "base/error.h"
#include "import/graphfile/graphfile.h"

/* A value of so many made by now, by its name; NULL: there is no such value. */
static json_t *named(json_int_t back, json_int_t made)
{
    char name[24];
    if (back < 1 || back > made) return NULL;
    snprintf(name, sizeof name, "_%llx", (unsigned long long)(made - back));
    return json_string(name);
}

/* What a key says, with names for numbers; a 0 in a list, and what is left out, is a new value where `fresh` counts. */
static json_t *spelled(const json_t *said, json_int_t made, json_int_t *fresh)
{
    if (json_is_string(said)) return json_incref((json_t *)(uintptr_t)said);
    if (fresh && (!said || (json_is_integer(said) && !json_integer_value(said)))) {
        ++*fresh;
        return named(1, made + *fresh);
    }
    if (!json_is_array(said)) return named(json_integer_value(said), made);
    json_t *list = json_array();
    for (size_t i = 0; list && i < json_array_size(said); i++)
        if (json_array_append_new(list, spelled(json_array_get(said, i), made, fresh)) != 0) {
            json_decref(list);
            return NULL;
        }
    return list;
}

static bool spell(json_t *object, const char *key, json_int_t made)
{
    const json_t *said = json_object_get(object, key);
    return !said || json_object_set_new(object, key, spelled(said, made, NULL)) == 0;
}

static bool spell_node(json_t *node, json_int_t *made)
{
    const json_t *in = json_object_get(node, "in");
    json_int_t fresh = 0;
    if (!in && json_object_set_new(node, "in", json_integer(1)) != 0) return false;
    if (json_is_integer(in) && !json_integer_value(in))
        json_object_del(node, "in");
    else if (!spell(node, "in", *made))
        return false;
    if (!spell(node, "like", *made)) return false;
    if (json_object_set_new(node, "out", spelled(json_object_get(node, "out"), *made, &fresh)) != 0) return false;
    *made += fresh;
    return true;
}

ft_status ft__graphfile_spell(json_t *file, ft_error *err)
{
    json_t *blocks = json_object_get(file, "blocks");
    json_int_t made = 0;
    bool well = true;
    for (size_t b = 0; well && b < json_array_size(blocks); b++) {
        json_t *block = json_array_get(blocks, b), *nodes = json_object_get(block, "nodes");
        well = spell(block, "in", made);
        for (size_t i = 0; well && i < json_array_size(nodes); i++) well = spell_node(json_array_get(nodes, i), &made);
        well = well && spell(block, "out", made);
    }
    return well ? FT_OK : ft__no_memory(err); /* what is stored was written by the build */
}

/* operand.c: a node's operands, results and weights. */
#include <string.h>

#include "base/text.h"
#include "graph/emit.h"
#include "import/graphfile/reader.h"

/* -- operands ---------------------------------------------------------------------------------- */

static const json_t *inputs(const ft_graph_reader *r) { return json_object_get(r->at, "in"); }

size_t ft__graphfile_operands(const ft_graph_reader *r)
{
    return json_is_string(inputs(r)) ? 1 : json_array_size(inputs(r));
}

static const char *out_name(const json_t *node, size_t index)
{
    const json_t *out = json_object_get(node, "out");
    if (json_is_array(out)) return json_string_value(json_array_get(out, index));
    return index == 0 ? json_string_value(out) : NULL;
}

size_t ft__graphfile_outs(const ft_graph_reader *r)
{
    const json_t *out = json_object_get(r->at, "out");
    return json_is_array(out) ? json_array_size(out) : out ? 1 : 0;
}

/* A node of this block that comes too late for who reads it. */
static bool made_later(const ft_graph_reader *r, const char *name)
{
    for (size_t i = (size_t)r->node; i < json_array_size(r->nodes); i++) {
        const char *made;
        for (size_t k = 0; (made = out_name(json_array_get(r->nodes, i), k)); k++)
            if (!strcmp(made, name)) return true;
    }
    return false;
}

static void fail_unknown(ft_graph_reader *r, const char *name)
{
    int cut = (int)ft__utf8_cut(name, 60);
    if (made_later(r, name)) {
        ft__graphfile_fail(r, FT_E_NAME, "\"%.*s\" is made later: nodes run in the order of the list, without cycles",
                           cut, name);
        return;
    }
    const char *near = ft__graphfile_nearest(r, name);
    ft__graphfile_fail(r, FT_E_NAME, "\"%.*s\" was not made before%s%.*s%s", cut, name, near ? "; did you mean \"" : "",
                       near ? (int)ft__utf8_cut(near, 60) : 0, near ? near : "", near ? "\"?" : "");
}

bool ft__graphfile_operand(ft_graph_reader *r, size_t index, ft_named *out)
{
    const char *name = json_string_value(json_is_string(inputs(r)) && index == 0 ? inputs(r)
                                                                                 : json_array_get(inputs(r), index));
    if (ft__graphfile_failed(r)) return false;
    if (!name) {
        ft__graphfile_fail(r, FT_E_MISSING, "operand %d is missing in \"in\"", (int)index + 1);
        return false;
    }
    const ft_named *n = ft__graphfile_find(r, name);
    if (!n) {
        fail_unknown(r, name);
        return false;
    }
    *out = *n;
    return true;
}

/* -- results ----------------------------------------------------------------------------------- */

ft_named ft__graphfile_fresh(ft_ref ref, int dims, const int64_t *dim)
{
    ft_named n = {.ref = ref, .dims = dims, .repeats = FT_NONE};
    if (dims > FT_GRAPHFILE_DIMS) n.dims = FT_GRAPHFILE_DIMS;
    memcpy(n.dim, dim, (size_t)n.dims * sizeof *dim);
    ft__graphfile_contiguous(&n);
    return n;
}

void ft__graphfile_give(ft_graph_reader *r, size_t index, const ft_named *n)
{
    const char *name = out_name(r->at, index);
    ft_build *b = ft__graphfile_build(r);
    ft_named made = *n;
    ft_format format;
    if (ft__graphfile_failed(r)) return;
    if (!name) {
        if (index == 0 || ft__graphfile_outs(r) > index)
            ft__graphfile_fail(r, FT_E_MISSING, "\"out\" must name the result");
        return; /* a result that nobody wants */
    }
    ft_format own = {made.values, ft__tensor_of(b, n->ref)->dtype, ft__tensor_of(b, n->ref)->element_bytes};
    if (index == 0 && json_object_get(r->at, "dtype")) {
        if (!ft__graphfile_format_key(r, "dtype", own, &format)) return;
        if (n->ref >= r->first_fresh) ft__retype(b, n->ref, format.dtype, format.bytes, format.values == FT_FLOATS);
        made.values = format.values;
    } else if (made.values != FT_FLOATS && n->ref >= r->first_fresh) {
        ft__retype(b, n->ref, own.dtype, own.bytes, false);
    }
    ft__graphfile_keep_named(r, ft__graphfile_text(r, name), &made);
}

void ft__graphfile_result(ft_graph_reader *r, ft_ref ref, int dims, const int64_t *dim)
{
    if (ft__graphfile_failed(r) || !ft__graphfile_possible(r, dims, dim)) return;
    ft_named n = ft__graphfile_fresh(ref, dims, dim);
    ft__graphfile_give(r, 0, &n);
}

/* -- weights ----------------------------------------------------------------------------------- */

const ft_named *ft__graphfile_named_weight(ft_graph_reader *r, const char *key)
{
    const char *name = json_string_value(json_object_get(r->at, key));
    if (ft__graphfile_failed(r) || !name) return NULL;
    const ft_named *w = ft__graphfile_find(r, name);
    if (!w) {
        fail_unknown(r, name);
        return NULL;
    }
    return w;
}

ft_ref ft__graphfile_weight(ft_graph_reader *r, const char *key, bool otherwise, const char *name, int64_t rows,
                            int64_t cols)
{
    const json_t *value = json_object_get(r->at, key);
    if (ft__graphfile_failed(r)) return FT_NONE;
    if (!json_is_string(value)) {
        if (value && !json_is_boolean(value))
            ft__graphfile_fail(r, FT_E_TYPE, "\"%s\" must be true, false or the name of a parameter", key);
        return !ft__graphfile_failed(r) && (value ? json_is_true(value) : otherwise)
                   ? ft__parameter(ft__graphfile_build(r), name, rows, cols)
                   : FT_NONE;
    }
    const ft_named *w = ft__graphfile_named_weight(r, key);
    if (!w) return FT_NONE;
    double wanted = (double)rows * (double)cols;
    if (ft__graphfile_elements(w) != wanted) {
        ft__graphfile_fail(r, FT_E_RANGE, "\"%s\" has %.0f elements, not %lld x %lld", key, ft__graphfile_elements(w),
                           (long long)rows, (long long)cols);
        return FT_NONE;
    }
    return w->ref;
}

/* onnx.c: from an ONNX file to a graph.
 *
 * Opening reads names, shapes and attributes once (wire.c, parse.c) and finds out what does not depend on a
 * request: an order of the nodes, which initialisers are parameters, what free sizes mean, where attention is written
 * out. build.c makes the graph of a request from that. */
#include "import/onnx/onnx.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"
#include "import/onnx/graph.h"
#include "import/onnx/wire.h"

static const size_t most_memory = (size_t)1 << 30; /* of a graph without its weights */

/* -- reading --------------------------------------------------------------------------------------- */

ft_status ft__onnx_warn(ft_onnx *o, ft_error *err, const char *format, ...)
{
    char text[400];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    size_t before = strlen(o->warnings), length = ft__utf8_cut(text, sizeof text - 4);
    char *wider = ft__arena_alloc(o->arena, before + length + 2);
    if (!wider) return ft__no_memory(err);
    memcpy(wider, o->warnings, before);
    if (before) wider[before++] = '\n';
    memcpy(wider + before, text, length);
    o->warnings = wider;
    return FT_OK;
}

/* Each operator that nobody knows, once. */
static ft_status warn_of_unknown(ft_onnx *o, ft_error *err)
{
    enum { MOST = 8 };
    const ft_onnx_node *seen[MOST];
    int count = 0;
    for (int32_t i = 0; i < o->node_count; i++) {
        const ft_onnx_node *n = &o->nodes[i];
        bool known = n->rule != NULL;
        for (int k = 0; k < count && !known; k++)
            known = !strcmp(seen[k]->op, n->op) && !strcmp(seen[k]->domain, n->domain);
        if (known) continue;
        if (count == MOST) return ft__onnx_warn(o, err, "and more operators that are not known");
        seen[count++] = n;
        FT_TRY(ft__onnx_warn(o, err,
                             "operator %s%s%s (node \"%.*s\") is not known: taken as memory-bound by its operands and "
                             "results",
                             n->domain, *n->domain ? "." : "", n->op, (int)ft__utf8_cut(n->name, 60), n->name));
    }
    return FT_OK;
}

static ft_status read_into(const void *bytes, size_t length, ft_onnx *o, ft_arch *arch, ft_error *err)
{
    const uint8_t *trimmed;
    size_t kept;
    FT_TRY(ft__onnx_trim(bytes, length, o->arena, &trimmed, &kept, err));
    FT_TRY(ft__onnx_parse(trimmed, kept, o, err));
    FT_TRY(ft__onnx_sort(o, err));
    FT_TRY(ft__onnx_weights(o, err));
    FT_TRY(ft__onnx_words(o, arch, err));
    FT_TRY(ft__onnx_patterns(o, err));
    ft__onnx_labels(o);
    return warn_of_unknown(o, err);
}

static void release(void *file)
{
    ft_onnx *o = file;
    if (o) ft__arena_free(o->arena);
}

static const ft_importer onnx_files = {ft__make_onnx, release};

ft_status ft__onnx_read(const void *bytes, size_t length, const char *where, ft_arch *out, ft_error *err)
{
    ft_arena *arena = ft__arena_new(most_memory);
    ft_onnx *o = arena ? ft__arena_alloc(arena, sizeof *o) : NULL;
    char *nothing = arena ? ft__arena_alloc(arena, 1) : NULL;
    ft_arch arch = {.model_type = "onnx", .design = FT_CUSTOM, .activation = "", .importer = &onnx_files, .file = o};
    ft_status status = FT_E_MEMORY;
    if (o && nothing) {
        o->arena = arena;
        o->warnings = nothing;
        status = read_into(bytes, length, o, &arch, err);
        arch.warnings = o->warnings;
    } else {
        ft__no_memory(err);
    }
    if (status == FT_OK) {
        *out = arch;
        return FT_OK;
    }
    ft__arena_free(arena);
    if (err && !err->where[0]) snprintf(err->where, sizeof err->where, "%.*s", (int)ft__utf8_cut(where, 250), where);
    return status;
}

ft_status ft__onnx_open(const char *path, ft_arch *out, ft_error *err)
{
    const void *bytes;
    size_t length;
    FT_TRY(ft__file_map_lazily(path, &bytes, &length, err));
    ft_status status = ft__onnx_read(bytes, length, path, out, err);
    ft__file_unmap(bytes, length);
    return status;
}

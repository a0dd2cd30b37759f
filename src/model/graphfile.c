/* graphfile.c: from a graph file to a graph.
 *
 * The file is a list of blocks, each a list of nodes in the order in which they run. A node names its operands, which
 * must have been made before it: a cycle cannot be written, and a name nobody made is an error with the nearest one.
 * Sizes are whole numbers or products with "batch" and "seq", so that one file serves every batch size. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "graph/emit.h"
#include "model/graphfile_reader.h"

enum { MOST_NAMES = 1 << 16, MOST_REPEATS = 1000000 };

static const char *node_name(const ft_graph_reader *r)
{
    const char *name = json_string_value(json_object_get(r->at, "name"));
    return name ? name : json_string_value(json_object_get(r->at, "op"));
}

void ft__graphfile_fail(ft_graph_reader *r, ft_status code, const char *format, ...)
{
    char message[200];
    va_list list;
    va_start(list, format);
    vsnprintf(message, sizeof message, format, list);
    va_end(list);
    const char *name = node_name(r) ? node_name(r) : "?", *block = r->block;
    ft__build_fail(ft__graphfile_build(r), code, "block \"%.*s\", node %d (%.*s): %.*s", (int)ft__utf8_cut(block, 40),
                   block, (int)r->node + 1, (int)ft__utf8_cut(name, 40), name, (int)ft__utf8_cut(message, 180),
                   message);
}

const char *ft__graphfile_text(ft_graph_reader *r, const char *text)
{
    const char *copy = ft__arena_copy(ft__graphfile_build(r)->g->arena, text, strlen(text));
    if (!copy) ft__build_fail(ft__graphfile_build(r), FT_E_MEMORY, "out of memory");
    return copy ? copy : "";
}

/* -- names ------------------------------------------------------------------------------------- */

ft_named *ft__graphfile_find(ft_graph_reader *r, const char *name)
{
    for (int32_t i = r->count - 1; i >= 0; i--) /* the latest of that name: blocks may use the same ones */
        if (!strcmp(r->names[i].name, name)) return &r->names[i];
    return NULL;
}

void ft__graphfile_keep(ft_graph_reader *r, const char *name, ft_ref ref, int dims, const int64_t *dim)
{
    if (ft__graphfile_failed(r) || ref == FT_NONE) return;
    ft_build *b = ft__graphfile_build(r);
    if (r->count == r->room) {
        int32_t room = r->room ? 2 * r->room : 128;
        ft_named *fresh = room <= MOST_NAMES ? ft__arena_array(b->g->arena, (size_t)room, sizeof *fresh) : NULL;
        if (!fresh) {
            ft__build_fail(b, FT_E_MEMORY, "a graph of more than %d tensors", MOST_NAMES);
            return;
        }
        if (r->count) memcpy(fresh, r->names, (size_t)r->count * sizeof *fresh);
        r->names = fresh;
        r->room = room;
    }
    ft_named *n = &r->names[r->count++];
    *n = (ft_named){.name = name, .ref = ref, .dims = dims};
    memcpy(n->dim, dim, (size_t)dims * sizeof *dim);
}

/* -- sizes ------------------------------------------------------------------------------------- */

/* 4096, "batch", "batch*seq", "2*batch". */
static bool size_of(const ft_graph_reader *r, const json_t *value, int64_t *out)
{
    if (json_is_integer(value)) {
        *out = json_integer_value(value);
        return *out >= 1 && *out <= (int64_t)1 << 40;
    }
    const char *s = json_string_value(value);
    if (!s || !*s) return false;
    double product = 1;
    while (*s) {
        size_t n = strcspn(s, "*");
        char word[24];
        int64_t factor = 0;
        if (n == 0 || n >= sizeof word) return false;
        memcpy(word, s, n);
        word[n] = 0;
        if (!strcmp(word, "batch"))
            factor = r->m->work->batch;
        else if (!strcmp(word, "seq"))
            factor = r->m->work->seq;
        else if (!ft__whole_parse(word, &factor))
            return false;
        product *= (double)factor;
        s += n + (s[n] == '*');
    }
    if (!(product >= 1 && product <= 1099511627776.0)) return false;
    *out = (int64_t)product;
    return true;
}

static bool read_shape(const ft_graph_reader *r, const json_t *value, int *dims, int64_t *dim)
{
    size_t n = json_array_size(value);
    bool good = json_is_array(value) && n >= 1 && n <= FT_GRAPHFILE_DIMS;
    for (size_t i = 0; good && i < n; i++) good = size_of(r, json_array_get(value, i), &dim[i]);
    *dims = (int)n;
    return good && ft__graphfile_rows(*dims, dim) > 0;
}

#define SIZES                                                                                                          \
    "must be a list of 1 to 8 sizes: whole numbers, \"batch\", \"seq\" or products of them, up to 2^40 each and 2^60 " \
    "together"
_Static_assert(FT_GRAPHFILE_DIMS == 8, "as SIZES says");

bool ft__graphfile_shape(ft_graph_reader *r, const json_t *value, const char *key, int *dims, int64_t *dim)
{
    if (read_shape(r, value, dims, dim)) return true;
    ft__graphfile_fail(r, value ? FT_E_TYPE : FT_E_MISSING, "\"%s\" " SIZES, key);
    return false;
}

int64_t ft__graphfile_whole(ft_graph_reader *r, const char *key, int64_t otherwise, int64_t low, int64_t high)
{
    const json_t *value = json_object_get(r->at, key);
    int64_t n = 0;
    if (ft__graphfile_failed(r) || (!value && otherwise >= low)) return otherwise;
    if (low == 0 && json_is_integer(value) && json_integer_value(value) == 0) return 0;
    bool number = value && size_of(r, value, &n);
    if (number && n >= low && n <= high) return n;
    ft__graphfile_fail(r,
                       !value                             ? FT_E_MISSING
                       : number || json_is_integer(value) ? FT_E_RANGE
                                                          : FT_E_TYPE,
                       "\"%s\" must be a whole number from %lld to %lld, or a product with \"batch\" and \"seq\"", key,
                       (long long)low, (long long)high);
    return low > 0 ? low : 1;
}

int64_t ft__graphfile_rows(int dims, const int64_t *dim)
{
    double rows = 1;
    for (int i = 0; i + 1 < dims; i++) rows *= (double)dim[i];
    return rows > 1152921504606846976.0 ? 0 : (int64_t)rows;
}

/* -- the whole --------------------------------------------------------------------------------- */

/* False after an error: a key that nobody knows. `what` it is a key of. */
static bool known_keys(ft_graph_reader *r, const json_t *object, const char *const *keys, size_t count,
                       const char *what, const char *name)
{
    ft_error err = {0};
    if (ft__json_known_keys(object, keys, count, "", &err) == FT_OK) return true;
    ft__build_fail(ft__graphfile_build(r), err.code, "%s \"%.*s\": %s", what, (int)ft__utf8_cut(name, 40), name,
                   err.message);
    return false;
}

static void read_inputs(ft_graph_reader *r, const json_t *inputs)
{
    static const char *const keys[] = {"shape", "dtype"};
    const char *name;
    json_t *value;
    ft_build *b = ft__graphfile_build(r);
    json_object_foreach ((json_t *)(uintptr_t)inputs, name, value) {
        int dims, cut = (int)ft__utf8_cut(name, 60);
        int64_t dim[FT_GRAPHFILE_DIMS];
        const char *type = json_string_value(json_object_get(value, "dtype"));
        ft_dtype dtype = b->stored;
        double bytes = ft_dtype_bytes(dtype);
        if (!known_keys(r, value, keys, 2, "input", name)) return;
        if (!read_shape(r, json_object_get(value, "shape"), &dims, dim)) {
            ft__build_fail(b, FT_E_TYPE, "input \"%.*s\": \"shape\" " SIZES, cut, name);
            return;
        }
        if (type && !strncmp(type, "int", 3) && strcmp(type, "int8") != 0) {
            bytes = strcmp(type, "int32") != 0 ? 8 : 4;
        } else if (type && !strcmp(type, "bool")) {
            bytes = 1;
        } else if (type && ft_dtype_parse(type, &dtype)) {
            bytes = ft_dtype_bytes(dtype);
        } else if (json_object_get(value, "dtype")) {
            ft__build_fail(b, FT_E_NAME,
                           "input \"%.*s\": \"dtype\" must be int64, int32, bool or a dtype, got \"%.*s\"", cut, name,
                           type ? (int)ft__utf8_cut(type, 20) : 0, type ? type : "");
            return;
        }
        ft_ref x = ft__input(b, ft__graphfile_rows(dims, dim), dim[dims - 1], bytes);
        ft__graphfile_keep(r, name, x, dims, dim);
        if (ft__graphfile_failed(r)) return;
    }
}

static void read_block(ft_graph_reader *r, const json_t *block)
{
    static const char *const keys[] = {"name", "repeat", "in", "out", "nodes"};
    ft_build *b = ft__graphfile_build(r);
    const char *in = json_string_value(json_object_get(block, "in"));
    const char *out = json_string_value(json_object_get(block, "out"));
    r->nodes = json_object_get(block, "nodes");
    r->at = block;
    r->node = 0;
    if (!known_keys(r, block, keys, sizeof keys / sizeof *keys, "block", r->block)) return;
    int cut = (int)ft__utf8_cut(r->block, 40);
    if (!json_is_array(r->nodes) || !json_array_size(r->nodes) || !out) {
        ft__build_fail(b, FT_E_MISSING, "block \"%.*s\" needs \"nodes\", a list, and \"out\", the name of its result",
                       cut, r->block);
        return;
    }
    int64_t repeat = 1;
    const json_t *times = json_object_get(block, "repeat");
    if (times && (!size_of(r, times, &repeat) || repeat > MOST_REPEATS)) {
        ft__build_fail(b, json_is_integer(times) ? FT_E_RANGE : FT_E_TYPE,
                       "block \"%.*s\": \"repeat\" must be a whole number from 1 to %d", cut, r->block, MOST_REPEATS);
        return;
    }
    ft_named *carry = in ? ft__graphfile_find(r, in) : NULL;
    if (in && !carry) {
        ft__build_fail(b, FT_E_NAME, "block \"%.*s\": its input \"%.*s\" was not made before", cut, r->block,
                       (int)ft__utf8_cut(in, 60), in);
        return;
    }
    if (repeat > 1 && !in) {
        ft__build_fail(b, FT_E_MISSING,
                       "block \"%.*s\" repeats: it needs \"in\", what walks from one iteration to the next", cut,
                       r->block);
        return;
    }
    ft_named from = carry ? *carry : (ft_named){0};
    /* Inputs of the whole graph are read where they are; what blocks made is carried. */
    bool carried = carry && ft__tensor_of(b, carry->ref)->role != FT_INPUT;
    ft_ref x = ft__block_open(b, r->block, repeat, carried || repeat > 1 ? (carry ? carry->ref : FT_NONE) : FT_NONE);
    if (x != FT_NONE) ft__graphfile_keep(r, from.name, x, from.dims, from.dim);
    for (size_t i = 0; i < json_array_size(r->nodes) && !ft__graphfile_failed(r); i++) {
        r->at = json_array_get(r->nodes, i);
        r->node = (int32_t)i;
        if (!json_is_object(r->at))
            ft__build_fail(b, FT_E_TYPE, "block \"%.*s\", node %d must be an object", cut, r->block, (int)i + 1);
        else
            ft__graphfile_node(r);
    }
    if (ft__graphfile_failed(r)) return;
    const ft_named *made = ft__graphfile_find(r, out);
    if (!made) {
        ft__build_fail(b, FT_E_NAME, "block \"%.*s\": its result \"%.*s\" is made by none of its nodes", cut, r->block,
                       (int)ft__utf8_cut(out, 60), out);
        return;
    }
    const ft_tensor *y = ft__tensor_of(b, made->ref), *start = ft__tensor_of(b, from.ref);
    if (repeat > 1 && ft__tensor_numel(y) != ft__tensor_numel(start)) {
        ft__build_fail(b, FT_E_RANGE, "block \"%.*s\" repeats, but its result has %.0f elements and its input %.0f",
                       cut, r->block, ft__tensor_numel(y), ft__tensor_numel(start));
        return;
    }
    ft__block_close(b, made->ref);
}

void ft__make_custom(ft_maker *m)
{
    const json_t *file = m->arch->graph, *blocks = json_object_get(file, "blocks");
    ft_graph_reader r = {.m = m, .at = file, .block = ""};
    if (m->work->task == FT_DECODE || m->work->task == FT_PREFILL) {
        ft__build_fail(&m->b, FT_E_UNSUPPORTED, "a graph file has no cache: it takes the tasks train and forward");
        return;
    }
    read_inputs(&r, json_object_get(file, "inputs"));
    for (size_t i = 0; i < json_array_size(blocks) && m->b.status == FT_OK; i++) {
        const json_t *block = json_array_get(blocks, i);
        const char *name = json_string_value(json_object_get(block, "name"));
        r.block = name ? ft__graphfile_text(&r, name) : "block";
        read_block(&r, block);
    }
    if (m->b.status != FT_OK && m->b.err && !m->b.err->where[0]) strcpy(m->b.err->where, "model");
}

bool ft__graphfile_is(const json_t *object) { return json_object_get(object, "foretell_graph") != NULL; }

ft_status ft__graphfile_read(const json_t *object, const char *where, ft_arch *out, ft_error *err)
{
    int64_t version = 0;
    static const char *const keys[] = {"foretell_graph", "name", "inputs", "blocks", "source"};
    FT_TRY(ft__json_known_keys(object, keys, sizeof keys / sizeof *keys, where, err));
    FT_TRY(ft__json_whole(object, "foretell_graph", FT_REQUIRED, 1, 1, &version, where, err));
    const json_t *blocks = json_object_get(object, "blocks");
    if (!json_is_object(json_object_get(object, "inputs")) || !json_is_array(blocks) || !json_array_size(blocks))
        return ft__fail_at(err, FT_E_MISSING, where, 0, 0,
                           "a graph file needs \"inputs\", an object of shapes, and \"blocks\", a list");
    memset(out, 0, sizeof *out);
    out->model_type = "graph";
    out->design = FT_CUSTOM;
    out->graph = json_incref((json_t *)(uintptr_t)object); /* Jansson counts references inside the value */
    out->layers = (int64_t)json_array_size(blocks);
    return FT_OK;
}

void ft__arch_release(ft_arch *arch)
{
    json_decref(arch->graph);
    arch->graph = NULL;
}

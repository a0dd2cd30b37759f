/* graphfile.c: from a graph file to a graph.
 *
 * The file is a list of blocks, each a list of nodes in the order in which they run. A node names its operands, which
 * must have been made before it: a cycle cannot be written, and a name nobody made is an error with the nearest one.
 * Sizes are whole numbers or formulas with "batch" and "seq", so that one file serves every batch size; a file without
 * them has one (fixed.c). */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "graph/emit.h"
#include "import/graphfile/reader.h"
#include "import/onnx/onnx.h"
#include "import/site.h"

enum { MOST_REPEATS = 1000000, MOST_TIMES = 1000 };

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

/* How an image lies: channels next to each other or not. False after an error. */
static bool read_layout(ft_graph_reader *r, const json_t *value, const char *name, ft_named *n)
{
    const json_t *said = json_object_get(value, "layout");
    const char *layout = json_string_value(said);
    bool request = layout && !strcmp(layout, "request"), nhwc = layout && !strcmp(layout, "nhwc");
    if (said && !request && !nhwc && (!layout || strcmp(layout, "nchw"))) {
        ft__build_fail(ft__graphfile_build(r), FT_E_NAME, "input \"%.*s\": \"layout\" must be nchw, nhwc or request",
                       (int)ft__utf8_cut(name, 60), name);
        return false;
    }
    if (!(nhwc || (request && !r->m->work->nchw)) || n->dims < 4) return true;
    r->nhwc = true;
    ft__graphfile_set_channels_last(n);
    return true;
}

static void read_inputs(ft_graph_reader *r, const json_t *inputs)
{
    static const char *const keys[] = {"shape", "dtype", "layout"};
    const char *name;
    json_t *value;
    ft_build *b = ft__graphfile_build(r);
    json_object_foreach ((json_t *)(uintptr_t)inputs, name, value) {
        int dims, cut = (int)ft__utf8_cut(name, 60);
        int64_t dim[FT_GRAPHFILE_DIMS];
        const json_t *said = json_object_get(value, "dtype");
        const char *type = json_string_value(said);
        ft_format format = ft__graphfile_floats(r);
        if (!known_keys(r, value, keys, sizeof keys / sizeof *keys, "input", name)) return;
        if (!ft__graphfile_shape_read(r, json_object_get(value, "shape"), &dims, dim)) {
            ft__build_fail(b, FT_E_TYPE, "input \"%.*s\": \"shape\" " FT_GRAPHFILE_SIZES, cut, name);
            return;
        }
        if (said && (!type || !ft__graphfile_format(r, type, &format))) {
            ft__build_fail(b, FT_E_NAME,
                           "input \"%.*s\": \"dtype\" must be int64, int32, bool or a dtype, got \"%.*s\"", cut, name,
                           type ? (int)ft__utf8_cut(type, 20) : 0, type ? type : "");
            return;
        }
        ft_named n = ft__graphfile_fresh(FT_NONE, dims, dim);
        n.values = format.values;
        if (!read_layout(r, value, name, &n)) return;
        bool last = ft__graphfile_channels_last(&n);
        int64_t rows = ft__graphfile_rows(dims, dim), cols = dim[dims - 1];
        n.ref = last ? ft__input(b, rows / dim[1] * cols, dim[1], format.bytes)
                     : ft__input(b, rows, cols, format.bytes);
        if (ft__graphfile_failed(r)) return;
        if (format.values == FT_FLOATS) b->g->tensors[n.ref].dtype = format.dtype;
        ft__graphfile_keep_named(r, name, &n);
        if (ft__graphfile_failed(r)) return;
    }
}

/* Modules that one iteration enters, where the file knows them. */
static void read_modules(ft_graph_reader *r, const json_t *block)
{
    const json_t *modules = json_object_get(block, "modules");
    json_int_t count = json_integer_value(modules);
    if (!modules) return;
    if (!json_is_integer(modules) || count < 0 || count > 1000000)
        ft__build_fail(ft__graphfile_build(r), FT_E_RANGE,
                       "block \"%.*s\": \"modules\" must be a whole number from 0 to 1000000",
                       (int)ft__utf8_cut(r->block, 40), r->block);
    else
        ft__graphfile_build(r)->modules = (int32_t)count;
}

/* The value that walks through a block's iterations, as its nodes see it. */
static void keep_carry(ft_graph_reader *r, ft_ref x, const ft_named *from)
{
    ft_build *b = ft__graphfile_build(r);
    if (x == FT_NONE || ft__graphfile_failed(r)) return;
    ft_named inside = *from;
    const ft_tensor *t = ft__tensor_of(b, from->ref);
    inside.ref = x;
    inside.repeats = FT_NONE;
    if (t->strided && (t->gaps || !t->permuted) && !ft__graphfile_cut_channels(from))
        ft__graphfile_contiguous(&inside);
    else if (t->strided) /* residual sums keep the order that the stream came in */
        b->g->tensors[x].strided = b->g->tensors[x].permuted = true;
    ft__graphfile_keep_named(r, from->name, &inside);
}

/* What a block says of itself, checked. */
typedef struct block_said {
    const char *in, *out;
    int64_t repeat;
    const ft_named *carry; /* what walks in; NULL: nothing does */
    int cut;               /* of its name, for messages */
} block_said;

static bool read_head(ft_graph_reader *r, const json_t *block, block_said *s)
{
    static const char *const keys[] = {"name", "repeat", "times", "in", "out", "nodes", "modules"};
    ft_build *b = ft__graphfile_build(r);
    if (!known_keys(r, block, keys, sizeof keys / sizeof *keys, "block", r->block)) return false;
    *s = (block_said){.in = json_string_value(json_object_get(block, "in")),
                      .out = json_string_value(json_object_get(block, "out")),
                      .repeat = 1,
                      .cut = (int)ft__utf8_cut(r->block, 40)};
    if (!json_is_array(r->nodes) || !json_array_size(r->nodes) || !s->out) {
        ft__build_fail(b, FT_E_MISSING, "block \"%.*s\" needs \"nodes\", a list, and \"out\", the name of its result",
                       s->cut, r->block);
        return false;
    }
    const json_t *times = json_object_get(block, "repeat");
    if (times && (!ft__graphfile_size_read(r, times, &s->repeat) || s->repeat > MOST_REPEATS)) {
        ft__build_fail(b, json_is_integer(times) ? FT_E_RANGE : FT_E_TYPE,
                       "block \"%.*s\": \"repeat\" must be a whole number from 1 to %d", s->cut, r->block,
                       MOST_REPEATS);
        return false;
    }
    s->carry = s->in ? ft__graphfile_find(r, s->in) : NULL;
    if (s->in && !s->carry) {
        ft__build_fail(b, FT_E_NAME, "block \"%.*s\": its input \"%.*s\" was not made before", s->cut, r->block,
                       (int)ft__utf8_cut(s->in, 60), s->in);
        return false;
    }
    if (s->repeat > 1 && !s->in) {
        ft__build_fail(b, FT_E_MISSING,
                       "block \"%.*s\" repeats: it needs \"in\", what walks from one iteration to the next", s->cut,
                       r->block);
        return false;
    }
    return true;
}

static void read_nodes(ft_graph_reader *r, int cut)
{
    for (size_t i = 0; i < json_array_size(r->nodes) && !ft__graphfile_failed(r); i++) {
        r->at = json_array_get(r->nodes, i);
        r->node = (int32_t)i;
        if (!json_is_object(r->at))
            ft__build_fail(ft__graphfile_build(r), FT_E_TYPE, "block \"%.*s\", node %d must be an object", cut,
                           r->block, (int)i + 1);
        else
            ft__graphfile_node(r);
    }
}

/* What its nodes made of what walked in; NULL: it cannot walk on. */
static const ft_named *made_by(ft_graph_reader *r, const block_said *s, const ft_named *from)
{
    ft_build *b = ft__graphfile_build(r);
    const ft_named *made = ft__graphfile_find(r, s->out);
    int shown = (int)ft__utf8_cut(s->out, 60);
    if (!made) {
        ft__build_fail(b, FT_E_NAME, "block \"%.*s\": its result \"%.*s\" is made by none of its nodes", s->cut,
                       r->block, shown, s->out);
        return NULL;
    }
    const ft_tensor *y = ft__tensor_of(b, made->ref), *start = ft__tensor_of(b, from->ref);
    if (y->role == FT_PARAMETER || y->role == FT_BUFFER) {
        ft__build_fail(b, FT_E_RANGE, "block \"%.*s\": its result \"%.*s\" is a parameter, which nobody computes",
                       s->cut, r->block, shown, s->out);
        return NULL;
    }
    if (s->repeat > 1 && ft__tensor_numel(y) != ft__tensor_numel(start)) {
        ft__build_fail(b, FT_E_RANGE, "block \"%.*s\" repeats, but its result has %.0f elements and its input %.0f",
                       s->cut, r->block, ft__tensor_numel(y), ft__tensor_numel(start));
        return NULL;
    }
    return made;
}

/* One of several that are written out one after the other. */
static bool in_a_row(const ft_graph *g, const json_t *block)
{
    const int32_t here = g->block_count - 1;
    return json_object_get(block, "times") || (here > 0 && !strcmp(g->blocks[here - 1].name, g->blocks[here].name));
}

static void read_block(ft_graph_reader *r, const json_t *block)
{
    ft_build *b = ft__graphfile_build(r);
    block_said s;
    r->nodes = json_object_get(block, "nodes");
    r->at = block;
    r->node = 0;
    if (!read_head(r, block, &s)) return;
    ft_named from = s.carry ? *s.carry : (ft_named){.ref = FT_NONE};
    /* Inputs of the whole graph and parameters are read where they are; what blocks made is carried. */
    bool carried = s.carry && ft__tensor_of(b, s.carry->ref)->role == FT_ACTIVATION;
    ft_block_info info = ft__import_block(b->g, r->block);
    ft_ref x = ft__block_open(b, &info, s.repeat, carried || s.repeat > 1 ? from.ref : FT_NONE);
    keep_carry(r, x, &from);
    if (ft__graphfile_failed(r)) return;
    /* While it is read it is a layer to adapters, as one that repeats would be. */
    if (x != FT_NONE && in_a_row(b->g, block)) b->g->blocks[b->block].kind = FT_BLOCK_LAYERS;
    read_nodes(r, s.cut);
    if (ft__graphfile_failed(r)) return;
    b->g->blocks[b->block].kind = info.kind;
    const ft_named *made = made_by(r, &s, &from);
    if (!made) return;
    read_modules(r, block);
    ft__block_close(b, made->ref);
    if (x != FT_NONE && strcmp(from.name, s.out) != 0)
        ft__graphfile_keep_named(r, from.name, &from); /* as it was before */
}

/* What tensors of a forward pass hold at most, as counted while the model's own code ran over tensors without memory.
 * */
static void read_held(ft_graph_reader *r, const json_t *value)
{
    ft_build *b = ft__graphfile_build(r);
    int64_t bytes = 0;
    if (!value) return;
    if (!ft__graphfile_size_read(r, value, &bytes))
        ft__build_fail(b, FT_E_TYPE,
                       "\"held_bytes\" must be a whole number from 1 on, or a formula with batch and seq");
    else
        b->g->held_bytes = (double)bytes;
}

/* How often a block is written, one after the other: layers that hand more than one value on by names that each makes
 * anew. 0 after an error. */
static int64_t times_of(ft_graph_reader *r, const json_t *block)
{
    const json_t *said = json_object_get(block, "times");
    const json_int_t times = said ? json_integer_value(said) : 1;
    if (times >= 1 && times <= MOST_TIMES && (!said || json_is_integer(said))) return times;
    ft__build_fail(ft__graphfile_build(r), FT_E_RANGE, "block \"%.*s\": \"times\" must be a whole number from 1 to %d",
                   (int)ft__utf8_cut(r->block, 40), r->block, MOST_TIMES);
    return 0;
}

static void read_file(ft_graph_reader *r)
{
    const json_t *file = r->m->arch->file, *blocks = json_object_get(file, "blocks");
    ft_build *b = ft__graphfile_build(r);
    read_held(r, json_object_get(file, "held_bytes"));
    if (b->status == FT_OK) read_inputs(r, json_object_get(file, "inputs"));
    for (size_t i = 0; i < json_array_size(blocks) && b->status == FT_OK; i++) {
        const json_t *block = json_array_get(blocks, i);
        const char *name = json_string_value(json_object_get(block, "name"));
        r->block = name ? ft__graphfile_text(r, name) : "block";
        for (int64_t left = times_of(r, block); left > 0 && b->status == FT_OK; left--) read_block(r, block);
    }
}

/* Whether Inductor turns its images to channels-last: the net is read once more beside this one to see its filters.
 * In fp32 they stay as they lie: that is unmeasured, and cuDNN's kernels without TF32 want them so. */
static bool turned_by_compiler(const ft_maker *m)
{
    const bool low = m->b.math == FT_FP16 || m->b.math == FT_BF16;
    if (!low || !ft__compiles(m->work) || m->stack->reductions_end) return false;
    ft_maker beside = *m;
    ft_error unheard = {0};
    beside.b.err = &unheard; /* what is wrong is said when it is read for good */
    beside.b.g = ft__graph_new(m->b.g->arena, m->b.g->dtype);
    if (!beside.b.g) return false;
    ft_graph_reader r = {.m = &beside, .at = m->arch->file, .block = "", .mask = FT_NONE};
    read_file(&r);
    return beside.b.status == FT_OK && ft__graph_turns_pictures(beside.b.g, m->b.training);
}

static void make_graph(ft_maker *m)
{
    ft_graph_reader r = {.m = m, .at = m->arch->file, .block = "", .mask = FT_NONE};
    if (m->work->task == FT_DECODE || m->work->task == FT_PREFILL) {
        ft__build_fail(&m->b, FT_E_UNSUPPORTED, "a graph file has no cache: it takes the tasks train and forward");
        return;
    }
    if (m->work->execution == FT_RUN_FUSED) { /* its nodes are what would have been fused by hand */
        ft__build_fail(&m->b, FT_E_UNSUPPORTED,
                       "\"execution\" fused needs a config.json: a graph file has the kernels that it lists; compile "
                       "fuses them");
        return;
    }
    r.turned = turned_by_compiler(m);
    read_file(&r);
    if (m->b.status != FT_OK && m->b.err && !m->b.err->where[0]) strcpy(m->b.err->where, "model");
}

bool ft__graphfile_is(const json_t *object) { return json_object_get(object, "foretell_graph") != NULL; }

static void release(void *file) { json_decref(file); }

static const ft_importer graph_files = {make_graph, release};

/* Models that checkpoint their layers say so themselves. */
static ft_status read_recompute(const json_t *object, const char *where, ft_arch *out, ft_error *err)
{
    const json_t *said = json_object_get(object, "recompute");
    const char *word = json_string_value(said);
    out->checkpointed = word && !strcmp(word, "full");
    if (!said || out->checkpointed || (word && !strcmp(word, "none"))) return FT_OK;
    return ft__fail_at(err, FT_E_NAME, where, 0, 0, "\"recompute\" of a graph file must be \"full\" or \"none\"");
}

/* So do those whose code makes a mask when a compiler traces it, though nothing is hidden: its operators show none. */
static ft_status read_traced_masks(const json_t *object, const char *where, ft_arch *out, ft_error *err)
{
    const json_t *said = json_object_get(object, "traced_masks");
    out->traces_masks = json_is_true(said);
    if (!said || json_is_boolean(said)) return FT_OK;
    return ft__fail_at(err, FT_E_TYPE, where, 0, 0, "\"traced_masks\" of a graph file must be true or false");
}

/* Which of its attentions are left to the request. */
static void read_attentions(const json_t *blocks, ft_arch *out)
{
    size_t i, k, all = 0, said = 0;
    const json_t *block, *node;
    json_array_foreach (blocks, i, block)
        json_array_foreach (json_object_get(block, "nodes"), k, node) {
            const char *op = json_string_value(json_object_get(node, "op"));
            if (!op || strcmp(op, "attention") != 0) continue;
            all++;
            said += json_object_get(node, "backend") != NULL;
        }
    out->never_attends = all == 0;
    out->says_attention = all > 0 && said == all;
}

ft_status ft__graphfile_read(const json_t *object, const char *where, ft_arch *out, ft_error *err)
{
    int64_t version = 0;
    static const char *const keys[] = {"foretell_graph", "name",   "inputs",      "blocks",
                                       "source",         "batch",  "seq",         "recompute",
                                       "held_bytes",     "tokens", "traced_masks"};
    FT_TRY(ft__json_known_keys(object, keys, sizeof keys / sizeof *keys, where, err));
    FT_TRY(ft__json_whole(object, "foretell_graph", FT_REQUIRED, 1, 1, &version, where, err));
    const json_t *blocks = json_object_get(object, "blocks");
    if (!json_is_object(json_object_get(object, "inputs")) || !json_is_array(blocks) || !json_array_size(blocks))
        return ft__fail_at(err, FT_E_MISSING, where, 0, 0,
                           "a graph file needs \"inputs\", an object of shapes, and \"blocks\", a list");
    memset(out, 0, sizeof *out);
    FT_TRY(ft__graphfile_sizes(object, where, out, err));
    FT_TRY(read_recompute(object, where, out, err));
    FT_TRY(read_traced_masks(object, where, out, err));
    out->model_type = "graph";
    out->design = FT_CUSTOM;
    out->importer = &graph_files;
    out->file = json_incref((json_t *)(uintptr_t)object); /* Jansson counts references inside the value */
    out->layers = (int64_t)json_array_size(blocks);
    read_attentions(blocks, out);
    return FT_OK;
}

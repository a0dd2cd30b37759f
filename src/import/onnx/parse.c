/* parse.c: from ONNX's messages to values and nodes that know each other by number. Everything lives in the file's
 * arena, protobuf-c's messages included, so that names need no copies. */
#include <string.h>

#include "import/onnx/parser.h"

enum { OLDEST_OPSET = 13 };

/* -- declared types -------------------------------------------------------------------------------- */

static ft_status declare(ft_onnx_parser *p, FtOnnx__ValueInfo *info, const char *what, int32_t *out)
{
    FT_TRY(ft__onnx_value_of(p, &p->all, info->name, out));
    if (*out < 0) return ft__fail(p->err, FT_E_MISSING, "%s has no name", what);
    ft_onnx_value *v = &p->o->values[*out];
    const FtOnnx__Type *type = info->type;
    const char *kind = !type                          ? NULL
                       : type->has_sequence_type      ? "sequence"
                       : type->has_optional_type      ? "optional value"
                       : type->has_map_type           ? "map"
                       : type->has_sparse_tensor_type ? "sparse tensor"
                       : type->has_opaque_type        ? "value of a custom type"
                                                      : NULL;
    if (kind)
        return ft__fail(p->err, FT_E_UNSUPPORTED, "%s \"%.*s\" is a %s: a graph of tensors is expected", what,
                        SHOWN(v->name), kind);
    if (!type || !type->tensor_type) return FT_OK;
    const FtOnnx__Shape *shape = type->tensor_type->shape;
    if (type->tensor_type->has_elem_type) v->type = type->tensor_type->elem_type;
    if (!shape) return FT_OK;
    if (shape->n_dim > FT_ONNX_DIMS)
        return ft__fail(p->err, FT_E_UNSUPPORTED, "\"%.*s\" has %zu axes: at most %d are read", SHOWN(v->name),
                        shape->n_dim, FT_ONNX_DIMS);
    v->dims = (int)shape->n_dim;
    for (int i = 0; i < v->dims; i++) {
        const FtOnnx__Dimension *d = shape->dim[i];
        ft__onnx_clean(d->dim_param);
        v->size[i] = (ft_onnx_size){.fixed = -1, .word = d->dim_param && *d->dim_param ? d->dim_param : NULL};
        if (!d->has_dim_value) continue;
        if (d->dim_value < 0 || d->dim_value > (int64_t)1 << 40) {
            if (d->dim_value < 0) continue; /* some writers say -1 for what is free */
            return ft__fail(p->err, FT_E_RANGE, "\"%.*s\" has a size of %lld", SHOWN(v->name), (long long)d->dim_value);
        }
        v->size[i].fixed = d->dim_value;
    }
    return FT_OK;
}

static ft_status add_tensor(ft_onnx_parser *p, FtOnnx__Tensor *from, char *name, const int64_t *dims, size_t dim_count)
{
    int32_t at;
    FT_TRY(ft__onnx_value_of(p, &p->all, name, &at));
    if (at < 0) return ft__fail(p->err, FT_E_MISSING, "an initializer has no name");
    ft_onnx_value *v = &p->o->values[at];
    if (v->tensor) return ft__fail(p->err, FT_E_NAME, "two initializers are called \"%.*s\"", SHOWN(v->name));
    return ft__onnx_tensor_of(from, dims, dim_count, v->name, p->o->arena, &v->tensor, p->err);
}

/* -- the whole ------------------------------------------------------------------------------------- */

static ft_status check_opsets(ft_onnx_parser *p)
{
    const FtOnnx__Model *m = p->model;
    p->o->opset = 0;
    for (size_t i = 0; i < m->n_opset_import; i++) {
        const FtOnnx__Opset *s = m->opset_import[i];
        if (s->domain && *s->domain && strcmp(s->domain, "ai.onnx") != 0) continue;
        p->o->opset = s->version;
        if (s->version < OLDEST_OPSET)
            return ft__fail(
                p->err, FT_E_UNSUPPORTED,
                "opset %lld: %d and later are read; in Python, onnx.version_converter.convert_version(model, "
                "17) makes a newer one",
                (long long)s->version, OLDEST_OPSET);
    }
    return FT_OK;
}

static ft_status read_inputs(ft_onnx_parser *p, const FtOnnx__Graph *g)
{
    ft_onnx *o = p->o;
    o->inputs = ft__arena_array(o->arena, g->n_input + 1, sizeof *o->inputs);
    if (!o->inputs) return ft__onnx_no_memory(p);
    for (size_t i = 0; i < g->n_input; i++) {
        int32_t at;
        FT_TRY(declare(p, g->input[i], "input", &at));
        ft_onnx_value *v = &o->values[at];
        if (v->input) return ft__fail(p->err, FT_E_NAME, "two inputs are called \"%.*s\"", SHOWN(v->name));
        if (v->tensor) continue; /* an initialiser that may be overridden */
        v->input = true;
        o->inputs[o->input_count++] = at;
    }
    return FT_OK;
}

static ft_status read_outputs(ft_onnx_parser *p, const FtOnnx__Graph *g)
{
    ft_onnx *o = p->o;
    int32_t at;
    o->outputs = ft__arena_array(o->arena, g->n_output + 1, sizeof *o->outputs);
    if (!o->outputs) return ft__onnx_no_memory(p);
    for (size_t i = 0; i < g->n_value_info; i++) FT_TRY(declare(p, g->value_info[i], "value", &at));
    for (size_t i = 0; i < g->n_output; i++) {
        FT_TRY(declare(p, g->output[i], "output", &at));
        if (!ft__onnx_made(&o->values[at]))
            return ft__fail(p->err, FT_E_MISSING, "output \"%.*s\" is made by no node", SHOWN(o->values[at].name));
        o->values[at].output = true;
        o->outputs[o->output_count++] = at;
    }
    if (!o->output_count) return ft__fail(p->err, FT_E_MISSING, "the graph has no outputs");
    if (!o->node_count) return ft__fail(p->err, FT_E_MISSING, "the graph has no nodes that compute anything");
    return FT_OK;
}

static ft_status check_inputs(ft_onnx_parser *p)
{
    ft_onnx *o = p->o;
    for (int32_t i = 0; i < o->node_count; i++)
        for (int32_t k = 0; k < o->nodes[i].in_count; k++) {
            const ft_onnx_node *n = &o->nodes[i];
            if (n->in[k] < 0) continue;
            ft_onnx_value *v = &o->values[n->in[k]];
            if (!ft__onnx_made(v)) {
                const char *all[2048], *near;
                size_t count = 0;
                for (int32_t a = 0; a < o->value_count && count < 2048; a++)
                    if (ft__onnx_made(&o->values[a])) all[count++] = o->values[a].name;
                near = ft__nearest(v->name, all, count);
                return ft__fail(p->err, FT_E_NAME,
                                "node \"%.*s\" (%.*s) reads \"%.*s\", which is neither an input, nor an "
                                "initializer, nor a node's result%s%.*s%s",
                                SHOWN(n->name), SHOWN(n->op), SHOWN(v->name), near ? "; did you mean \"" : "",
                                near ? (int)ft__utf8_cut(near, 80) : 0, near ? near : "", near ? "\"?" : "");
            }
            if (!v->readers++) v->reader = i;
        }
    return FT_OK;
}

static ft_status read_graph(ft_onnx_parser *p)
{
    const FtOnnx__Graph *g = p->model->graph;
    if (!g) return ft__fail(p->err, FT_E_FORMAT, "not an ONNX model: it has no graph");
    FT_TRY(check_opsets(p));
    for (size_t i = 0; i < g->n_initializer; i++) {
        FtOnnx__Tensor *t = g->initializer[i];
        FT_TRY(add_tensor(p, t, t->name, t->dims, t->n_dims));
    }
    for (size_t i = 0; i < g->n_sparse_initializer; i++) {
        FtOnnx__SparseTensor *s = g->sparse_initializer[i];
        if (s->values) FT_TRY(add_tensor(p, s->values, s->values->name, s->dims, s->n_dims));
    }
    FT_TRY(read_inputs(p, g));
    FT_TRY(ft__onnx_read_nodes(p, &p->all, g->node, g->n_node, NULL, 0));
    FT_TRY(read_outputs(p, g));
    if (!p->o->opset)
        for (int32_t i = 0; i < p->o->node_count; i++)
            if (!*p->o->nodes[i].domain)
                return ft__fail(p->err, FT_E_MISSING, "the file does not say which opset its operators are of");
    return check_inputs(p);
}

typedef struct messages {
    ft_arena *arena;
    bool exhausted;
} messages;

static void *allocate(void *data, size_t size)
{
    messages *m = data;
    void *at = ft__arena_alloc(m->arena, size);
    m->exhausted |= !at;
    return at;
}

static void release(void *data, void *at)
{
    (void)data;
    (void)at;
}

ft_status ft__onnx_parse(const uint8_t *bytes, size_t length, ft_onnx *out, ft_error *err)
{
    messages room = {.arena = out->arena};
    ProtobufCAllocator in_arena = {.alloc = allocate, .free = release, .allocator_data = &room};
    ft_onnx_parser p = {.o = out, .err = err};
    p.model = ft_onnx__model__unpack(&in_arena, length, bytes);
    if (!p.model && room.exhausted) return ft__onnx_no_memory(&p);
    if (!p.model)
        return ft__fail(err, FT_E_FORMAT, "not an ONNX file, or a damaged one: its messages cannot be unpacked");
    return read_graph(&p);
}

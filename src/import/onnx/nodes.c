/* nodes.c: nodes and their attributes; functions of the file, inlined where they are called with names and
 * attributes of their own scope; constants, which become values with contents. */
#include <string.h>

#include "import/onnx/parser.h"

enum { MOST_DEPTH = 16, MOST_NODES = 1 << 20, MOST_STEPS = 1 << 21 };

typedef struct ft_onnx_caller { /* attributes of the call that a function's body may refer to */
    FtOnnx__Attribute *const *given, *const *defaults;
    size_t given_count, default_count;
    const struct ft_onnx_caller *outer;
} caller;

/* -- nodes ----------------------------------------------------------------------------------------- */

static const FtOnnx__Attribute *named_attribute(FtOnnx__Attribute *const *list, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (list[i]->name && !strcmp(list[i]->name, name)) return list[i];
    return NULL;
}

/* An attribute of a function's body may stand for one of the call. NULL: it was left out there. */
static const FtOnnx__Attribute *meant(const FtOnnx__Attribute *a, const caller *from)
{
    while (a && a->ref_attr_name && *a->ref_attr_name && from) {
        const FtOnnx__Attribute *given = named_attribute(from->given, from->given_count, a->ref_attr_name);
        if (!given) return named_attribute(from->defaults, from->default_count, a->ref_attr_name);
        a = given;
        from = from->outer;
    }
    return a;
}

static ft_status read_attribute(ft_onnx_parser *p, const FtOnnx__Attribute *a, const char *name, ft_onnx_attribute *out)
{
    *out = (ft_onnx_attribute){.name = name,
                               .type = a->type,
                               .i = a->i,
                               .f = (double)a->f,
                               .ints = a->ints,
                               .floats = a->floats,
                               .int_count = a->n_ints,
                               .float_count = a->n_floats};
    if (a->has_s) {
        char *text = ft__arena_copy(p->o->arena, (const char *)a->s.data, a->s.len);
        if (!text) return ft__onnx_no_memory(p);
        ft__onnx_clean(text);
        out->s = text;
    }
    if (a->t) return ft__onnx_tensor_of(a->t, a->t->dims, a->t->n_dims, name, p->o->arena, &out->tensor, p->err);
    return FT_OK;
}

static ft_status read_attributes(ft_onnx_parser *p, const FtOnnx__Node *from, const caller *outer, ft_onnx_node *n)
{
    ft_onnx_attribute *list = ft__arena_array(p->o->arena, from->n_attribute + 1, sizeof *list);
    if (!list) return ft__onnx_no_memory(p);
    for (size_t i = 0; i < from->n_attribute; i++) {
        const FtOnnx__Attribute *a = meant(from->attribute[i], outer);
        if (!a || !from->attribute[i]->name) continue;
        ft__onnx_clean(from->attribute[i]->name);
        if (a->has_g || a->n_graphs)
            return ft__fail(p->err, FT_E_UNSUPPORTED, "node \"%.*s\" (%.*s) holds a subgraph, \"%.*s\": not read",
                            SHOWN(n->name), SHOWN(n->op), SHOWN(from->attribute[i]->name));
        FT_TRY(read_attribute(p, a, from->attribute[i]->name, &list[n->attribute_count]));
        n->attribute_count++;
    }
    n->attributes = list;
    return FT_OK;
}

/* A constant is a value, not an operator. */
static ft_status constant(ft_onnx_parser *p, const ft_onnx_node *n)
{
    ft_onnx_value *v = n->out_count > 0 && n->out[0] >= 0 ? &p->o->values[n->out[0]] : NULL;
    if (!v) return FT_OK;
    v->literal = true;
    for (size_t i = 0; i < n->attribute_count; i++) {
        const ft_onnx_attribute *a = &n->attributes[i];
        if (a->tensor) {
            v->tensor = a->tensor;
            return FT_OK;
        }
        if (!strncmp(a->name, "value_", 6)) return ft__onnx_tensor_from(a, p->o->arena, &v->tensor, p->err);
    }
    return ft__fail(p->err, FT_E_MISSING, "constant \"%.*s\" has no value that is read", SHOWN(v->name));
}

static ft_status add_node(ft_onnx_parser *p, const ft_onnx_node *n)
{
    ft_onnx *o = p->o;
    if (o->node_count == o->node_room) {
        int32_t room = o->node_room ? 2 * o->node_room : 256;
        if (room > MOST_NODES) return ft__fail(p->err, FT_E_RANGE, "more than %d nodes", MOST_NODES);
        ft_onnx_node *wider = ft__arena_array(o->arena, (size_t)room, sizeof *wider);
        if (!wider) return ft__onnx_no_memory(p);
        if (o->node_count) memcpy(wider, o->nodes, (size_t)o->node_count * sizeof *wider);
        o->nodes = wider;
        o->node_room = room;
    }
    o->nodes[o->node_count++] = *n;
    return FT_OK;
}

static const FtOnnx__Function *function_of(const ft_onnx_parser *p, const char *domain, const char *op)
{
    for (size_t i = 0; i < p->model->n_functions; i++) {
        const FtOnnx__Function *f = p->model->functions[i];
        const char *home = f->domain && strcmp(f->domain, "ai.onnx") != 0 ? f->domain : "";
        if (f->name && !strcmp(f->name, op) && !strcmp(home, domain)) return f;
    }
    return NULL;
}

/* The body stands where the call stood: its parameters are the call's values, what else it names is its own. */
static ft_status inlined(ft_onnx_parser *p, const FtOnnx__Function *f, const FtOnnx__Node *call, const ft_onnx_node *n,
                         const caller *outer, int depth)
{
    ft_onnx_names scope = {0};
    caller here = {call->attribute, f->attribute_proto, call->n_attribute, f->n_attribute_proto, outer};
    if (depth >= MOST_DEPTH)
        return ft__fail(p->err, FT_E_RANGE, "function \"%.*s\" calls itself, or %d others inside each other",
                        SHOWN(n->op), MOST_DEPTH);
    if ((size_t)n->in_count > f->n_input || (size_t)n->out_count > f->n_output)
        return ft__fail(p->err, FT_E_RANGE,
                        "node \"%.*s\" gives function \"%.*s\" %d inputs and takes %d outputs of it", SHOWN(n->name),
                        SHOWN(n->op), (int)n->in_count, (int)n->out_count);
    for (size_t i = 0; i < f->n_input + f->n_output; i++) {
        bool output = i >= f->n_input;
        size_t k = output ? i - f->n_input : i;
        int32_t count = output ? n->out_count : n->in_count;
        char *name = output ? f->output[k] : f->input[k];
        if (k >= (size_t)count && output) continue;
        if (!name || !*name)
            return ft__fail(p->err, FT_E_MISSING, "function \"%.*s\" has a parameter without a name", SHOWN(n->op));
        ft__onnx_clean(name);
        if (!ft__onnx_names_grow(&scope, p->o->arena)) return ft__onnx_no_memory(p);
        size_t at = ft__onnx_slot(&scope, name);
        if (scope.key[at] && output && scope.value[at] >= 0 && n->out[k] >= 0) {
            /* An output that is an input: the call's value is passed on. */
            int32_t in[2] = {scope.value[at], n->out[k]};
            int32_t *both = ft__arena_array(p->o->arena, 2, sizeof *both);
            if (!both) return ft__onnx_no_memory(p);
            memcpy(both, in, sizeof in);
            ft_onnx_node pass = {.op = "Identity",
                                 .domain = "",
                                 .name = n->name,
                                 .in = both,
                                 .out = both + 1,
                                 .in_count = 1,
                                 .out_count = 1,
                                 .bias = -1,
                                 .core = -1};
            pass.rule = ft__onnx_rule("", "Identity");
            FT_TRY(add_node(p, &pass));
            p->o->values[in[1]].maker = p->o->node_count - 1;
            continue;
        }
        if (!scope.key[at]) scope.count++;
        scope.key[at] = name;
        scope.value[at] = k < (size_t)count ? (output ? n->out[k] : n->in[k]) : -1;
    }
    return ft__onnx_read_nodes(p, &scope, f->node, f->n_node, &here, depth + 1);
}

static ft_status read_ends(ft_onnx_parser *p, ft_onnx_names *scope, char *const *list, size_t count,
                           const int32_t **out)
{
    int32_t *ends = ft__arena_array(p->o->arena, count + 1, sizeof *ends);
    if (!ends) return ft__onnx_no_memory(p);
    for (size_t i = 0; i < count; i++) FT_TRY(ft__onnx_value_of(p, scope, list[i], &ends[i]));
    *out = ends;
    return FT_OK;
}

static ft_status read_node(ft_onnx_parser *p, ft_onnx_names *scope, FtOnnx__Node *from, const caller *outer, int depth)
{
    ft__onnx_clean(from->op_type);
    ft__onnx_clean(from->domain);
    ft__onnx_clean(from->name);
    ft_onnx_node n = {.op = from->op_type ? from->op_type : "",
                      .domain = from->domain && strcmp(from->domain, "ai.onnx") != 0 ? from->domain : "",
                      .bias = -1,
                      .core = -1,
                      .in_count = (int32_t)from->n_input,
                      .out_count = (int32_t)from->n_output};
    n.name = from->name && *from->name ? from->name : "?";
    if (++p->steps > MOST_STEPS)
        return ft__fail(p->err, FT_E_RANGE, "its functions call more than %d nodes", MOST_STEPS);
    if (!*n.op)
        return ft__fail(p->err, FT_E_MISSING, "node %d (\"%.*s\") has no op_type", (int)p->o->node_count + 1,
                        SHOWN(n.name));
    FT_TRY(read_ends(p, scope, from->input, from->n_input, &n.in));
    FT_TRY(read_ends(p, scope, from->output, from->n_output, &n.out));
    if (!from->name || !*from->name) n.name = n.out_count && n.out[0] >= 0 ? p->o->values[n.out[0]].name : "?";
    const FtOnnx__Function *f = function_of(p, n.domain, n.op);
    if (f) return inlined(p, f, from, &n, outer, depth);
    const char *refusal = ft__onnx_refusal(n.domain, n.op);
    if (refusal)
        return ft__fail(p->err, FT_E_UNSUPPORTED, "node \"%.*s\" (%.*s): %s", SHOWN(n.name), SHOWN(n.op), refusal);
    for (int32_t i = 0; i < n.out_count; i++) {
        if (n.out[i] < 0) continue;
        ft_onnx_value *v = &p->o->values[n.out[i]];
        if (ft__onnx_made(v))
            return ft__fail(p->err, FT_E_NAME, "\"%.*s\", a result of node \"%.*s\" (%.*s), is made twice",
                            SHOWN(v->name), SHOWN(n.name), SHOWN(n.op));
        v->maker = p->o->node_count;
    }
    FT_TRY(read_attributes(p, from, outer, &n));
    if (!strcmp(n.op, "Constant") && !*n.domain) {
        for (int32_t i = 0; i < n.out_count; i++)
            if (n.out[i] >= 0) p->o->values[n.out[i]].maker = -1;
        return constant(p, &n);
    }
    n.rule = ft__onnx_rule(n.domain, n.op);
    return add_node(p, &n);
}

ft_status ft__onnx_read_nodes(ft_onnx_parser *p, ft_onnx_names *scope, FtOnnx__Node *const *list, size_t count,
                              const caller *outer, int depth)
{
    for (size_t i = 0; i < count; i++) FT_TRY(read_node(p, scope, list[i], outer, depth));
    return FT_OK;
}

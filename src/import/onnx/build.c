/* build.c: the nodes of an ONNX file become a graph, with the request's batch and seq. A node's rule gives its
 * results their shapes, folds what is arithmetic on shapes, and calls the graph's builder for the rest. Backward,
 * fusion and memory follow as for any model. */
#include <string.h>

#include "base/text.h"
#include "import/onnx/run.h"
#include "import/site.h"

/* -- sizes ----------------------------------------------------------------------------------------- */

static bool size_of_word(const ft_onnx_run *r, const char *word, size_t length, int64_t *out)
{
    char text[24];
    if (length > 0 && length < sizeof text) { /* "past_sequence_length + 1" */
        memcpy(text, word, length);
        text[length] = 0;
        if (ft__whole_parse(text, out)) return *out >= 0;
    }
    for (int32_t i = 0; i < r->o->word_count; i++) {
        const ft_onnx_word *w = &r->o->words[i];
        if (strlen(w->word) != length || memcmp(w->word, word, length) != 0) continue;
        *out = w->meaning == FT_ONNX_BATCH  ? r->m->work->batch
               : w->meaning == FT_ONNX_SEQ  ? r->m->work->seq
               : w->meaning == FT_ONNX_PAST ? 0
                                            : w->size;
        return true;
    }
    return false;
}

static bool size_of(const ft_onnx_run *r, const ft_onnx_size *s, int64_t *out)
{
    *out = s->fixed;
    if (s->fixed >= 0) return true;
    if (!s->word) return false;
    if (size_of_word(r, s->word, strlen(s->word), out)) return true;
    double sum = 0;
    for (const char *at = s->word; *at;) {
        size_t n = strcspn(at, "+"), length = n;
        int64_t part;
        const char *word = at;
        while (length && *word == ' ') {
            word++;
            length--;
        }
        while (length && word[length - 1] == ' ') length--;
        if (!length || !size_of_word(r, word, length, &part)) return false;
        sum += (double)part;
        at += n + (at[n] == '+');
    }
    *out = sum < 1e12 ? (int64_t)sum : -1;
    return *out >= 0;
}

bool ft__onnx_declared(const ft_onnx_run *r, int32_t value, int *dims, int64_t *dim)
{
    const ft_onnx_value *v = &r->o->values[value];
    *dims = v->dims;
    for (int i = 0; i < v->dims; i++)
        if (!size_of(r, &v->size[i], &dim[i])) return false;
    return v->dims >= 0;
}

/* -- building -------------------------------------------------------------------------------------- */

static void input_failed(ft_onnx_run *r, const ft_onnx_value *v, const char *what)
{
    ft__build_fail(r->b, FT_E_UNSUPPORTED, "input \"%.*s\" %s", (int)ft__utf8_cut(v->name, 80), v->name, what);
}

static void lay_picture(const ft_onnx_run *r, ft_onnx_item *x)
{
    static const uint8_t last[4] = {0, 2, 3, 1};
    if (r->nhwc && x->dims == 4 && ft__onnx_type_floats(x->type)) memcpy(x->order, last, sizeof last);
}

static void make_inputs(ft_onnx_run *r)
{
    for (int32_t i = 0; i < r->o->input_count && !ft__onnx_failed(r); i++) {
        const ft_onnx_value *v = &r->o->values[r->o->inputs[i]];
        ft_onnx_item *x = &r->items[r->o->inputs[i]];
        int64_t rows, cols;
        bool strided;
        double bytes;
        *x = (ft_onnx_item){.kind = FT_ONNX_MADE, .type = v->type, .ref = FT_NONE, .source = -1};
        if (ft__onnx_type_bytes(v->type) <= 0)
            input_failed(r, v,
                         v->type == FT_ONNX_STRING ? "is text, which is not handled on a "
                                                     "GPU"
                                                   : "has no type that is read");
        else if (v->dims < 0)
            input_failed(r, v, "has no shape: onnx.tools.update_model_dims gives it one");
        else if (!ft__onnx_declared(r, r->o->inputs[i], &x->dims, x->dim))
            input_failed(r, v, "has a size that is a formula of words that no input has");
        if (ft__onnx_failed(r)) return;
        for (int axis = 0; axis < x->dims; axis++) x->order[axis] = (uint8_t)axis;
        if (ft__onnx_count(x) > 1e15) {
            input_failed(r, v, "is too large for any machine with this batch and seq");
            return;
        }
        if (ft__onnx_count(x) < 1) continue;
        ft_dtype dtype = ft__onnx_dtype(r, x->type, &bytes);
        lay_picture(r, x);
        ft__onnx_extent(x, &rows, &cols, &strided);
        x->ref = ft__input(r->b, rows, cols, bytes);
        if (x->ref != FT_NONE) r->b->g->tensors[x->ref].dtype = dtype;
    }
}

static void make_tensors(ft_onnx_run *r)
{
    for (int32_t i = 0; i < r->o->value_count; i++) {
        const ft_onnx_value *v = &r->o->values[i];
        ft_onnx_item *x = &r->items[i];
        *x = (ft_onnx_item){.ref = FT_NONE, .source = -1};
        if (!v->tensor) continue;
        x->kind = v->weight ? FT_ONNX_WEIGHT : FT_ONNX_FIXED;
        x->type = v->tensor->type;
        x->dims = v->tensor->dims;
        memcpy(x->dim, v->tensor->dim, sizeof x->dim);
        for (int axis = 0; axis < x->dims; axis++) x->order[axis] = (uint8_t)axis;
        x->known = v->tensor->known;
        x->source = i;
    }
}

void ft__onnx_other(ft_onnx_run *r, const char *op, double flops)
{
    double bytes = 0, each;
    int64_t dim[FT_ONNX_DIMS], rows, cols;
    int dims;
    bool strided;
    ft_node n = ft__node_of(FT_DO_OTHER, r->label);
    for (int k = 0; k < r->at->in_count && !ft__onnx_failed(r); k++) {
        ft_onnx_item *x = ft__onnx_optional(r, k);
        if (!x || ft__onnx_count(x) < 1 || (x->kind == FT_ONNX_FIXED && x->ref == FT_NONE && ft__onnx_count(x) <= 1))
            continue;
        ft_ref ref = ft__onnx_ref(r, x);
        bytes += ft__tensor_bytes(ft__tensor_of(r->b, ref));
        ft__node_in(&n, ref);
    }
    for (int k = 0; k < r->at->out_count && !ft__onnx_failed(r); k++) {
        if (r->at->out[k] < 0) continue;
        const ft_onnx_value *v = &r->o->values[r->at->out[k]];
        ft_onnx_item *y = &r->items[r->at->out[k]];
        if (!v->readers && !v->output && k) continue;
        if (y->kind == FT_ONNX_NOTHING) {
            if (!ft__onnx_declared(r, r->at->out[k], &dims, dim)) {
                ft__onnx_fail(r, FT_E_UNSUPPORTED,
                              "the shape of its result is not known: onnx.shape_inference.infer_shapes writes it into "
                              "the file where it can");
                return;
            }
            const ft_onnx_item *x = ft__onnx_optional(r, 0);
            y = ft__onnx_result(r, k, v->type ? v->type : x ? x->type : FT_ONNX_FLOAT, dims, dim);
            if (!y) return;
        }
        if (ft__onnx_count(y) < 1) continue;
        ft_dtype dtype = ft__onnx_dtype(r, y->type, &each);
        ft__onnx_extent(y, &rows, &cols, &strided);
        if (n.out_count == FT_NODE_OUTPUTS) { /* more than a node has: made beside it */
            ft__onnx_filled(r, "copy", y);
            continue;
        }
        y->ref = ft__node_out(r->b, &n, rows, cols, dtype, each);
        bytes += ft__tensor_bytes(ft__tensor_of(r->b, y->ref));
    }
    if (ft__onnx_failed(r) || bytes < 1) return;
    n.op = ft__bytes_kernel(op, r->b->stored, bytes, flops);
    if (!n.in_count) n.verb = FT_DO_FILL; /* made of nothing: no gradient goes back to it */
    ft__emit(r->b, &n);
}

/* Ends every node: each result that somebody reads has a shape and, unless it is known or empty, a tensor. */
static void check_results(ft_onnx_run *r)
{
    for (int k = 0; k < r->at->out_count && !ft__onnx_failed(r); k++) {
        if (!ft__onnx_has(r, k)) continue;
        ft_onnx_item *y = &r->items[r->at->out[k]];
        if (y->kind == FT_ONNX_NOTHING) ft__onnx_fail(r, FT_E_UNSUPPORTED, "its result %d is not read", k + 1);
        if (y->kind == FT_ONNX_MADE && y->ref == FT_NONE && ft__onnx_count(y) > 0) ft__onnx_filled(r, "copy", y);
    }
}

static void build_node(ft_onnx_run *r, const ft_onnx_node *n)
{
    r->at = n;
    r->label = ft__import_site(r->b->g, n->label);
    if (!r->label) {
        r->label = FT_AT(NONE);
        ft__build_fail(r->b, FT_E_MEMORY, "out of memory");
        return;
    }
    if (n->rule && n->in_count < n->rule->least) {
        ft__onnx_fail(r, FT_E_MISSING, "it takes at least %d operands, got %d", n->rule->least, (int)n->in_count);
        return;
    }
    r->deferred = false;
    if (n->rule) n->rule->build(r);
    if (!n->rule || r->deferred) ft__onnx_other(r, "unknown", 0);
    check_results(r);
}

/* Attention that was written out: in one, or node by node where its shapes are not attention's after all. */
static void build_core(ft_onnx_run *r, int32_t core, int32_t last)
{
    const ft_onnx_core *c = &r->o->cores[core];
    r->at = &r->o->nodes[c->last];
    r->label = ft__import_site(r->b->g, r->at->label);
    if (!r->label) {
        r->label = FT_AT(NONE);
        ft__build_fail(r->b, FT_E_MEMORY, "out of memory");
        return;
    }
    if (ft__onnx_attend(r, c)) return;
    for (int32_t i = c->start; i <= last && !ft__onnx_failed(r); i++)
        if (r->o->nodes[r->o->order[i]].core == core) build_node(r, &r->o->nodes[r->o->order[i]]);
}

/* Where the gradient starts: the first result that depends on a parameter. A file has no loss as a rule; then it is the
 * cross-entropy of that result's last axis. */
static ft_ref finish(ft_onnx_run *r)
{
    ft_ref first = FT_NONE;
    for (int32_t i = 0; i < r->o->output_count && !ft__onnx_failed(r); i++) {
        ft_onnx_item *y = &r->items[r->o->outputs[i]];
        if (y->kind == FT_ONNX_FIXED || ft__onnx_count(y) < 1) continue;
        ft_ref ref = ft__onnx_ref(r, y);
        bool trained = ft__tensor_of(r->b, ref)->trained;
        if (first != FT_NONE && (!r->b->training || !trained || ft__tensor_of(r->b, first)->trained)) continue;
        first = ref;
        if (!r->b->training || !trained || ft__onnx_count(y) <= 1) continue;
        int64_t rows, cols;
        bool strided;
        ft__onnx_dense(r, y);
        ft__onnx_extent(y, &rows, &cols, &strided);
        first = ft__loss(r->b, FT_AT(LOSS), ft__onnx_ref_as(r, y, rows, cols), false);
    }
    return first;
}

static bool has_pictures(const ft_onnx *o)
{
    for (int32_t i = 0; i < o->node_count; i++)
        if (!strcmp(o->nodes[i].op, "Conv")) return true;
    return false;
}

static bool refuse(ft_maker *m)
{
    const ft_workload *w = m->work;
    if (w->task == FT_DECODE || w->task == FT_PREFILL)
        ft__build_fail(&m->b, FT_E_UNSUPPORTED,
                       "an ONNX file has no cache of ours: it takes the tasks train and forward");
    else if (w->lora_rank > 0)
        ft__build_fail(&m->b, FT_E_UNSUPPORTED,
                       "\"lora_rank\" needs a config.json: an ONNX file does not say where its "
                       "layers are");
    else if (w->task == FT_TRAIN && w->recompute != FT_RECOMPUTE_NONE)
        ft__build_fail(&m->b, FT_E_UNSUPPORTED,
                       "\"recompute\" needs layers: an ONNX file is one list of operators; a config.json or a graph "
                       "file (python -m foretell export) has them");
    else if (w->execution == FT_RUN_FUSED)
        ft__build_fail(&m->b, FT_E_UNSUPPORTED,
                       "\"execution\" fused needs a config.json: hand-fused kernels replace modules that an ONNX file "
                       "does not name; compile fuses what the file has");
    return m->b.status != FT_OK;
}

void ft__make_onnx(ft_maker *m)
{
    const ft_onnx *o = m->arch->file;
    if (refuse(m)) return;
    ft_onnx_run r = {.m = m, .b = &m->b, .o = o, .label = FT_AT(NONE), .fuse = m->work->attention != FT_EAGER};
    r.items = ft__arena_array(m->b.g->arena, (size_t)o->value_count + 1, sizeof *r.items);
    if (!r.items) {
        ft__build_fail(&m->b, FT_E_MEMORY, "out of memory");
        return;
    }
    r.nhwc = !m->work->nchw && has_pictures(o);
    m->b.channels_last = r.nhwc;
    make_tensors(&r);
    const ft_block_info whole = {.name = "graph"};
    ft__block_open(&m->b, &whole, 1, FT_NONE);
    make_inputs(&r);
    for (int32_t i = 0; i < o->node_count && !ft__onnx_failed(&r); i++) {
        const ft_onnx_node *n = &o->nodes[o->order[i]];
        if (!r.fuse || n->core < 0)
            build_node(&r, n);
        else if (n == &o->nodes[o->cores[n->core].last])
            build_core(&r, n->core, i);
    }
    ft_ref last = ft__onnx_failed(&r) ? FT_NONE : finish(&r);
    if (!ft__onnx_failed(&r) && last == FT_NONE)
        ft__build_fail(&m->b, FT_E_UNSUPPORTED, "nothing is left to run: every result is known beforehand, or empty");
    ft__block_close(&m->b, last);
    if (m->b.status != FT_OK && m->b.err && !m->b.err->where[0]) strcpy(m->b.err->where, "model");
}

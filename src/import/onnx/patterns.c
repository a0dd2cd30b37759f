/* patterns.c: what exporters write out and frameworks run as one: a bias behind a product, and attention as
 * product, scale, mask, softmax, product. The first is always one kernel; the second becomes fused attention where the
 * request asks for it and stays as written where it asks for eager. */
#include <string.h>

#include "import/onnx/graph.h"

enum { LONGEST_PATH = 32, MASK_VALUES = 200 };

static bool is(const ft_onnx_node *n, const char *op) { return !strcmp(n->op, op) && !*n->domain; }

static const ft_onnx_node *maker(const ft_onnx *o, int32_t value)
{
    return value >= 0 && o->values[value].maker >= 0 ? &o->nodes[o->values[value].maker] : NULL;
}

/* Read once, and not part of the answer: nobody misses it. */
static bool private(const ft_onnx *o, int32_t value)
{
    return value >= 0 && o->values[value].readers == 1 && !o->values[value].output;
}

static bool scalar(const ft_onnx *o, int32_t value)
{
    const ft_onnx_tensor *t = value >= 0 ? o->values[value].tensor : NULL;
    if (!t || o->values[value].weight) return false;
    for (int i = 0; i < t->dims; i++)
        if (t->dim[i] != 1) return false;
    return true;
}

/* -- biases ---------------------------------------------------------------------------------------- */

static bool leads_to_weight(const ft_onnx *o, int32_t value)
{
    static const char *const through[] = {"Identity", "Transpose", "Cast", "DequantizeLinear", "Reshape"};
    for (int step = 0; step < 6 && value >= 0; step++) {
        if (o->values[value].weight) return true;
        const ft_onnx_node *n = maker(o, value);
        bool passes = false;
        for (size_t i = 0; n && i < sizeof through / sizeof *through; i++) passes |= is(n, through[i]);
        value = passes && n->in_count ? n->in[0] : -1;
    }
    return false;
}

static void absorb_bias(ft_onnx *o, ft_onnx_node *n)
{
    if (!is(n, "MatMul") || n->in_count != 2 || n->out_count < 1 || !private(o, n->out[0])) return;
    if (!leads_to_weight(o, n->in[1]) || leads_to_weight(o, n->in[0])) return;
    ft_onnx_node *add = &o->nodes[o->values[n->out[0]].reader];
    if (!is(add, "Add") || add->in_count != 2 || add->in[0] < 0 || add->in[1] < 0) return;
    int32_t other = add->in[0] == n->out[0] ? add->in[1] : add->in[0];
    /* Through the identities that exporters leave where weights are shared. */
    while (maker(o, other) && is(maker(o, other), "Identity") && maker(o, other)->in_count)
        other = maker(o, other)->in[0];
    const ft_onnx_value *v = other >= 0 ? &o->values[other] : NULL;
    if (!v || !v->weight || !v->tensor || v->tensor->dims != 1) return;
    n->bias = other;
    add->absorbed = true;
}

/* -- attention ------------------------------------------------------------------------------------- */

typedef struct search {
    const ft_onnx *o;
    int32_t path[LONGEST_PATH]; /* nodes that the fused operator replaces */
    int count;
    int32_t mask;
} search;

static bool take(search *s, const ft_onnx_node *n)
{
    if (s->count == LONGEST_PATH) return false;
    s->path[s->count++] = (int32_t)(n - s->o->nodes);
    return true;
}

/* From the softmax back to the product of queries and keys. */
static const ft_onnx_node *scores(search *s, int32_t value, int depth)
{
    const ft_onnx *o = s->o;
    const ft_onnx_node *n = maker(o, value), *found = NULL;
    int before = s->count;
    int32_t mask = s->mask;
    if (!n || depth > 8 || !private(o, value) || !take(s, n)) return NULL;
    if (is(n, "MatMul") && n->in_count == 2 && !leads_to_weight(o, n->in[0]) && !leads_to_weight(o, n->in[1])) return n;
    bool scales = (is(n, "Mul") || is(n, "Div")) && n->in_count == 2, adds = is(n, "Add") && n->in_count == 2;
    if (scales && scalar(o, n->in[1])) return scores(s, n->in[0], depth + 1);
    if (scales && scalar(o, n->in[0]) && is(n, "Mul")) return scores(s, n->in[1], depth + 1);
    if ((is(n, "Cast") || is(n, "Identity")) && n->in_count) return scores(s, n->in[0], depth + 1);
    if (adds || (is(n, "Where") && n->in_count == 3))
        for (int32_t k = adds ? 0 : 1; k < n->in_count && !found; k++) {
            s->count = before + 1;
            s->mask = mask >= 0 ? mask : adds ? n->in[1 - k] : n->in[0];
            found = scores(s, n->in[k], depth + 1);
        }
    if (!found) {
        s->count = before;
        s->mask = mask;
    }
    return found;
}

/* Rows that are masked out entirely are set to zero: Where(IsNaN(p), 0, p). */
static const ft_onnx_node *without_nan(search *s, int32_t value)
{
    const ft_onnx *o = s->o;
    if (o->values[value].readers != 2 || o->values[value].output) return NULL;
    const ft_onnx_node *check = &o->nodes[o->values[value].reader];
    if (!is(check, "IsNaN") || check->out_count < 1 || !private(o, check->out[0])) return NULL;
    const ft_onnx_node *choice = &o->nodes[o->values[check->out[0]].reader];
    if (!is(choice, "Where") || choice->in_count != 3 || choice->in[2] != value) return NULL;
    return take(s, check) && take(s, choice) ? choice : NULL;
}

/* From the softmax on to the product with the values. */
static const ft_onnx_node *values_product(search *s, const ft_onnx_node *softmax)
{
    const ft_onnx *o = s->o;
    const ft_onnx_node *at = softmax;
    for (int step = 0; step < 6 && at->out_count > 0 && at->out[0] >= 0; step++) {
        int32_t value = at->out[0];
        const ft_onnx_node *next = without_nan(s, value);
        if (!next) {
            if (!private(o, value)) return NULL;
            next = &o->nodes[o->values[value].reader];
            if (is(next, "MatMul") && next->in_count == 2 && next->in[0] == value) return next;
            if (!is(next, "Cast") && !is(next, "Identity") && !is(next, "Dropout")) return NULL;
            if (next->in[0] != value || !take(s, next)) return NULL;
        }
        at = next;
    }
    return NULL;
}

/* Scales of queries and keys before their product go into the kernel. */
static int32_t unscaled(search *s, int32_t value)
{
    const ft_onnx_node *n = maker(s->o, value);
    if (!n || !is(n, "Mul") || n->in_count != 2 || !private(s->o, value)) return value;
    int32_t from = scalar(s->o, n->in[1]) ? n->in[0] : scalar(s->o, n->in[0]) ? n->in[1] : -1;
    return from >= 0 && take(s, n) ? from : value;
}

/* A transposition that swaps the last two axes alone; torch.onnx puts batch and heads together for it. */
static int32_t untransposed(search *s, int32_t value, bool *across)
{
    const ft_onnx_node *n = maker(s->o, value), *outer = n && is(n, "Reshape") ? n : NULL, *inner = NULL;
    int64_t perm[FT_ONNX_DIMS];
    if (outer) {
        if (!private(s->o, value) || outer->in_count < 1) return value;
        n = maker(s->o, outer->in[0]);
        inner = n && n->in_count ? maker(s->o, n->in[0]) : NULL;
        if (!inner || !is(inner, "Reshape") || !private(s->o, n->in[0]) || !private(s->o, outer->in[0])) return value;
    }
    if (!n || !is(n, "Transpose") || (!outer && !private(s->o, value)) || n->in_count < 1) return value;
    int count = ft__onnx_ints(n, "perm", FT_ONNX_DIMS, perm);
    bool swaps = count >= 2 && perm[count - 1] == count - 2 && perm[count - 2] == count - 1;
    for (int i = 0; swaps && i < count - 2; i++) swaps = perm[i] == i;
    int before = s->count;
    if (!swaps || !take(s, n) || (outer && (!take(s, outer) || !take(s, inner)))) {
        s->count = before;
        return value;
    }
    *across = !*across;
    return inner ? inner->in[0] : n->in[0];
}

/* Reshape(Expand(Unsqueeze(x))): keys or values repeated for groups of queries. */
static int32_t unrepeated(search *s, int32_t value)
{
    static const char *const steps[] = {"Reshape", "Expand", "Unsqueeze"};
    int32_t at = value;
    int before = s->count;
    for (size_t i = 0; i < 3; i++) {
        const ft_onnx_node *n = maker(s->o, at);
        if (!n || !is(n, steps[i]) || n->in_count < 1 || !private(s->o, at) || !take(s, n)) {
            s->count = before;
            return value;
        }
        at = n->in[0];
    }
    return at;
}

/* Whether a mask is made by comparing positions with each other, or by cutting along the diagonal. */
static bool looks_causal(const ft_onnx *o, int32_t mask)
{
    int32_t seen[MASK_VALUES];
    int count = 0;
    const ft_onnx_tensor *t = mask >= 0 ? o->values[mask].tensor : NULL;
    if (t) { /* a table: square, and the same for every sequence and head */
        for (int i = 0; i < t->dims - 2; i++)
            if (t->dim[i] != 1) return false;
        return t->dims >= 2 && t->dim[t->dims - 1] == t->dim[t->dims - 2] && t->dim[t->dims - 1] > 1;
    }
    if (mask >= 0) seen[count++] = mask;
    for (int at = 0; at < count; at++) { /* the nearest first */
        const ft_onnx_node *n = maker(o, seen[at]);
        if (!n) continue;
        bool compares = is(n, "LessOrEqual") || is(n, "GreaterOrEqual") || is(n, "Less") || is(n, "Greater");
        if (is(n, "Trilu")) return true;
        if (compares && n->in_count == 2 && !scalar(o, n->in[0]) && !scalar(o, n->in[1])) return true;
        for (int32_t k = 0; k < n->in_count && count < MASK_VALUES; k++) {
            bool known = n->in[k] < 0;
            for (int i = 0; i < count && !known; i++) known = seen[i] == n->in[k];
            if (!known) seen[count++] = n->in[k];
        }
    }
    return false;
}

static void find_core(ft_onnx *o, const ft_onnx_node *softmax, ft_onnx_core *core, search *s)
{
    int64_t axis = ft__onnx_int(softmax, "axis", -1);
    core->last = -1;
    if (softmax->in_count < 1 || (axis != -1 && axis != 3) || !take(s, softmax)) return;
    const ft_onnx_node *first = scores(s, softmax->in[0], 0), *last = first ? values_product(s, softmax) : NULL;
    if (!last) return;
    core->mask = s->mask;
    core->q = unscaled(s, first->in[0]);
    core->k_across = true;
    core->k = untransposed(s, unscaled(s, first->in[1]), &core->k_across);
    core->v = last->in[1];
    int before = s->count;
    int32_t k = core->k_across ? core->k : unrepeated(s, core->k), v = unrepeated(s, core->v);
    core->grouped = k != core->k && v != core->v;
    if (core->grouped) {
        core->k = k;
        core->v = v;
    } else {
        s->count = before;
    }
    core->causal = looks_causal(o, core->mask);
    if (take(s, last)) core->last = (int32_t)(last - o->nodes);
}

ft_status ft__onnx_patterns(ft_onnx *o, ft_error *err)
{
    int32_t *place = ft__arena_array(o->arena, (size_t)o->node_count + 1, sizeof *place);
    int32_t softmaxes = 0;
    if (!place) return ft__no_memory(err);
    for (int32_t i = 0; i < o->node_count; i++) {
        place[o->order[i]] = i;
        softmaxes += is(&o->nodes[i], "Softmax");
        absorb_bias(o, &o->nodes[i]);
    }
    o->cores = ft__arena_array(o->arena, (size_t)softmaxes + 1, sizeof *o->cores);
    if (!o->cores) return ft__no_memory(err);
    for (int32_t i = 0; i < o->node_count; i++) {
        search s = {.o = o, .mask = -1};
        ft_onnx_core core = {0};
        if (!is(&o->nodes[i], "Softmax")) continue;
        find_core(o, &o->nodes[i], &core, &s);
        bool free = core.last >= 0;
        for (int k = 0; free && k < s.count; k++) free = o->nodes[s.path[k]].core < 0 && !o->nodes[s.path[k]].absorbed;
        if (!free) continue;
        core.start = place[core.last];
        for (int k = 0; k < s.count; k++) {
            o->nodes[s.path[k]].core = o->core_count;
            if (place[s.path[k]] < core.start) core.start = place[s.path[k]];
        }
        o->cores[o->core_count++] = core;
    }
    return FT_OK;
}

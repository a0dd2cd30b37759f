/* groups.c: who owns the time. */
#include "trace/groups.h"

#include <stdlib.h>
#include <string.h>

typedef struct collecting {
    ft_record *r;
    ft_trace_groups *out;
    size_t room;
    int32_t *slot; /* open addressing; group + 1 */
    size_t slots;
    uint8_t *seen; /* one per operator: its call was counted */
    ft_error *err;
} collecting;

static ft_status begin(collecting *c, const ft_record *r, ft_trace_groups *out, ft_error *err)
{
    memset(out, 0, sizeof *out);
    c->out = out;
    c->err = err;
    c->slots = 1024;
    c->slot = calloc(c->slots, sizeof *c->slot);
    c->seen = calloc(r->op_count + 1, 1);
    return c->slot && c->seen ? FT_OK : ft__no_memory(err);
}

static void end(collecting *c)
{
    free(c->slot);
    free(c->seen);
}

static size_t place(const collecting *c, ft_trace_group_kind kind, int32_t name, int32_t inputs)
{
    uint64_t h = ((uint64_t)(uint32_t)name << 32 | (uint32_t)inputs) * UINT64_C(0x9E3779B97F4A7C15) + (uint64_t)kind;
    size_t k = (h >> 20) & (c->slots - 1);
    while (c->slot[k]) {
        const ft_trace_group *g = &c->out->at[c->slot[k] - 1];
        if (g->kind == kind && g->name == name && g->inputs == inputs) break;
        k = (k + 1) & (c->slots - 1);
    }
    return k;
}

/* The group, made where there is none yet; NULL: out of memory. */
static ft_trace_group *group(collecting *c, ft_trace_group_kind kind, int32_t name, int32_t inputs)
{
    size_t k = place(c, kind, name, inputs);
    if (c->slot[k]) return &c->out->at[c->slot[k] - 1];
    if (c->out->count * 2 >= c->slots) {
        free(c->slot);
        c->slots *= 2;
        c->slot = calloc(c->slots, sizeof *c->slot);
        if (!c->slot) {
            c->slots = 0;
            return NULL;
        }
        for (size_t i = 0; i < c->out->count; i++) {
            const ft_trace_group *g = &c->out->at[i];
            c->slot[place(c, g->kind, g->name, g->inputs)] = (int32_t)i + 1;
        }
        k = place(c, kind, name, inputs);
    }
    if (c->out->count == c->room) {
        size_t room = c->room ? 2 * c->room : 256;
        ft_trace_group *fresh = realloc(c->out->at, room * sizeof *fresh);
        if (!fresh) return NULL;
        c->out->at = fresh;
        c->room = room;
    }
    ft_trace_group *g = &c->out->at[c->out->count++];
    memset(g, 0, sizeof *g);
    g->kind = kind;
    g->name = name;
    g->inputs = inputs;
    g->kernel = FT_TRACE_NONE;
    c->slot[k] = (int32_t)c->out->count;
    return g;
}

/* The operator that answers for the work: the innermost with recorded inputs, or one around it that the forecasts know
 * as a whole. */
static int32_t owner_of(const ft_record *r, int32_t op)
{
    int32_t best = op;
    for (int depth = 0; op >= 0 && depth < 12; op = r->ops[op].parent, depth++)
        if (!r->ops[op].annotation && r->ops[op].inputs >= 0 && ft__aten_whole(r->names[r->ops[op].name])) best = op;
    return best;
}

static bool is_wrapper(const char *name) /* of the autograd engine: no operator */
{
    return !strncmp(name, "autograd::", 10) || strstr(name, "Backward0") || !strncmp(name, "torch::autograd", 15);
}

static ft_trace_group *group_of(collecting *c, const ft_trace_work *w, int32_t *owner)
{
    const ft_record *r = c->r;
    const char *name = ft__record_name(r, w->name);
    *owner = FT_TRACE_NONE;
    if (w->exchange) return group(c, FT_GROUP_EXCHANGE, w->name, FT_TRACE_NONE);
    if (w->kind == FT_EVENT_MEMCPY && strstr(name, "HtoD")) return group(c, FT_GROUP_UP, FT_TRACE_NONE, FT_TRACE_NONE);
    if (w->kind == FT_EVENT_MEMCPY && strstr(name, "DtoH"))
        return group(c, FT_GROUP_DOWN, FT_TRACE_NONE, FT_TRACE_NONE);
    int32_t op = owner_of(r, w->op);
    if (op >= 0 && r->ops[op].inputs >= 0 && !is_wrapper(r->names[r->ops[op].name])) {
        *owner = op;
        return group(c, FT_GROUP_OP, r->ops[op].name, r->ops[op].inputs);
    }
    if (w->kind != FT_EVENT_KERNEL) return group(c, FT_GROUP_AROUND, FT_TRACE_NONE, FT_TRACE_NONE);
    return group(c, FT_GROUP_KERNEL, w->name, FT_TRACE_NONE);
}

/* The number format of the longest products, for lists and what else does not say its own. */
static ft_dtype usual_format(const ft_record *r, const ft_trace_groups *out)
{
    double ms[FT_DTYPE_COUNT] = {0};
    ft_inputs in;
    for (size_t i = 0; i < out->count; i++) {
        const ft_trace_group *g = &out->at[i];
        if (g->kind != FT_GROUP_OP || g->inputs < 0) continue;
        ft__inputs_read(&r->signatures[g->inputs], &in);
        for (int k = 0; k < in.count; k++)
            if (in.at[k].floating && in.at[k].numel > 1 && in.at[k].element_bytes > 0) {
                ms[in.at[k].dtype] += g->product_ms > 0 ? 10 * g->ms : g->ms > 0 ? g->ms : 1e-6 * g->calls;
                break;
            }
    }
    int most = FT_FP32;
    for (int i = 0; i < FT_DTYPE_COUNT; i++)
        if (ms[i] > ms[most]) most = i;
    return (ft_dtype)most;
}

static void call_all(const ft_record *r, ft_trace_groups *out)
{
    ft_inputs in;
    out->usual = usual_format(r, out);
    for (size_t i = 0; i < out->count; i++) {
        ft_trace_group *g = &out->at[i];
        g->called.class = FT_CALLED_OTHER;
        if (g->kind == FT_GROUP_KERNEL && ft__kernel_is_product(ft__record_name(r, g->name)))
            g->called.class = FT_CALLED_PRODUCT;
        if (g->kind == FT_GROUP_UP || g->kind == FT_GROUP_DOWN || g->kind == FT_GROUP_AROUND)
            g->called.class = FT_CALLED_MEMORY;
        if (g->kind != FT_GROUP_OP) continue;
        ft__inputs_read(&r->signatures[g->inputs], &in);
        const char *kernel = g->kernel >= 0 ? ft__record_name(r, g->kernel) : NULL;
        ft__aten_call(ft__record_name(r, g->name), &in, kernel, g->calls > 0 ? g->blocks / g->calls : 0, out->usual,
                      &g->called);
    }
}

ft_status ft__groups_of(ft_record *r, ft_trace_groups *out, ft_error *err)
{
    collecting c = {.r = r};
    ft_status status = begin(&c, r, out, err);
    for (size_t i = 0; i < r->work_count && status == FT_OK; i++) {
        ft_trace_work *w = &r->work[i];
        int32_t owner;
        if (w->step < 0) continue;
        ft_trace_group *g = group_of(&c, w, &owner);
        if (!g) {
            status = ft__fail(err, FT_E_MEMORY, "out of memory for the groups of a trace");
            break;
        }
        w->group = (int32_t)(g - out->at);
        const char *kernel = ft__record_name(r, w->name);
        double ms = (double)(w->end - w->start) * 1e-6;
        if (owner < 0 || !c.seen[owner]) g->calls++;
        if (owner >= 0) c.seen[owner] = 1;
        g->kernels++;
        g->ms += ms;
        g->bytes += w->bytes;
        g->blocks += (double)w->blocks;
        if (w->kind == FT_EVENT_KERNEL) {
            bool product = ft__kernel_is_product(kernel);
            if (product) g->product_ms += ms;
            if (product && ft__kernel_on_tensor_cores(kernel)) g->tensor_ms += ms;
            if (product && (strstr(kernel, "align1") || strstr(kernel, "align2"))) g->unaligned = true;
            if (ms > g->longest_ms) g->longest_ms = ms, g->kernel = w->name;
        }
    }
    if (status == FT_OK) call_all(r, out);
    end(&c);
    return status;
}

/* The outermost operator that the table knows (but for those that only wrap a known one), or the innermost of all where
 * it knows none of them. */
ft_status ft__groups_of_ops(const ft_record *r, ft_trace_groups *out, ft_error *err)
{
    /* itself or one around it; others; others that are known; its own name again, as autocast does in another format */
    enum { COUNTED = 1, CALLS = 2, CALLS_KNOWN = 4, CALLS_SAME = 8 };
    collecting c = {0};
    ft_status status = begin(&c, r, out, err);
    uint8_t *marks = status == FT_OK ? calloc(r->op_count + 1, 1) : NULL;
    if (status == FT_OK) out->of_op = calloc(r->op_count + 1, sizeof *out->of_op);
    if (status == FT_OK && (!marks || !out->of_op)) status = ft__no_memory(err);
    for (size_t i = r->op_count; i > 0 && status == FT_OK; i--) { /* parents stand before their children */
        const ft_trace_op *op = &r->ops[i - 1];
        if (op->parent < 0) continue;
        marks[op->parent] |= CALLS;
        if (op->name == r->ops[op->parent].name && op->inputs >= 0) marks[op->parent] |= CALLS_SAME;
        if ((marks[i - 1] & CALLS_KNOWN) || (op->inputs >= 0 && ft__aten_runs(r->names[op->name])))
            marks[op->parent] |= CALLS_KNOWN;
    }
    for (size_t i = 0; i < r->op_count && status == FT_OK; i++) {
        const ft_trace_op *op = &r->ops[i];
        const char *name = r->names[op->name];
        out->of_op[i] = FT_OP_INSIDE;
        if (op->parent >= 0 && (marks[op->parent] & COUNTED)) marks[i] |= COUNTED;
        if (!r->whole && r->step_count > 0 &&
            (op->start < r->steps[0].host_start || op->start > r->steps[r->step_count - 1].host_end))
            continue;
        if ((marks[i] & COUNTED) || op->annotation || op->inputs < 0 || is_wrapper(name)) continue;
        bool runs = ft__aten_runs(name), leaf = !(marks[i] & CALLS);
        if (leaf && ft__aten_free(name)) out->of_op[i] = FT_OP_VIEW;
        if (!runs && (!leaf || ft__aten_free(name))) continue;
        if (runs && (marks[i] & CALLS_KNOWN) && ft__aten_wraps(name)) continue;
        if (runs && (marks[i] & CALLS_SAME)) continue;
        marks[i] |= COUNTED;
        ft_trace_group *g = group(&c, FT_GROUP_OP, op->name, op->inputs);
        if (g) {
            g->calls++;
            out->of_op[i] = (int32_t)(g - out->at);
        } else
            status = ft__fail(err, FT_E_MEMORY, "out of memory for the groups of a trace");
    }
    if (status == FT_OK) call_all(r, out);
    free(marks);
    end(&c);
    return status;
}

void ft__groups_free(ft_trace_groups *g)
{
    free(g->at);
    free(g->of_op);
    memset(g, 0, sizeof *g);
}

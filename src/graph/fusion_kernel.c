/* fusion_kernel.c: what a group of nodes is as one kernel: every distinct tensor from outside is read once, what others
 * need is written, and each element passes through the instructions of all members. */
#include <math.h>
#include <string.h>

#include "graph/fusion.h"
#include "graph/fusion_constants.h"

static bool named(const ft_node *n, const char *name) { return !strcmp(n->op.name, name); }

/* -- nodes --------------------------------------------------------------------------------------- */

void ft__fusion_emit(ft_fusion *f, const ft_node *n)
{
    if (f->count == f->room) {
        int32_t room = f->room * 2;
        ft_node *wider = ft__arena_array(f->g->arena, (size_t)room, sizeof *wider);
        if (!wider) {
            f->failed = true;
            return;
        }
        memcpy(wider, f->nodes, (size_t)f->count * sizeof *wider);
        f->nodes = wider;
        f->room = room;
    }
    f->nodes[f->count++] = *n;
}

ft_node ft__fusion_node(ft_verb verb, ft_phase phase, ft_at at, ft_dtype dtype, double space, double bytes, double work)
{
    ft_node n = {
        .verb = verb, .phase = phase, .at = at, .name = at->name, .count = 1, .traffic = 1, .effort = 1, .members = 1};
    n.op.kind = FT_OP_ELEMENTWISE;
    n.op.name = "fused"; /* one name for all, so that equal kernels are forecast once */
    n.op.dtype = n.op.kv_dtype = dtype;
    n.op.u.elementwise.numel = space >= 1 ? (int64_t)space : 1;
    n.op.u.elementwise.inputs = 1;
    n.op.u.elementwise.bytes = bytes > 1 ? bytes : 1;
    n.op.u.elementwise.ops_per_element = work > 0.5 ? work : 0.5;
    return n;
}

ft_at ft__fusion_site(ft_fusion *f, const char *name)
{
    ft_site_info fused = {.name = name, .site = FT_SITE_FUSED};
    return ft__graph_site(f->g, &fused);
}

void ft__fusion_emit_wide(ft_fusion *f, ft_node *n, const ft_ref *in, int32_t ins, const ft_ref *out, int32_t outs)
{
    int32_t i = 0, o = 0;
    n->in_count = n->out_count = 0;
    while (i < ins && n->in_count < FT_NODE_INPUTS) n->in[n->in_count++] = in[i++];
    while (o < outs && n->out_count < FT_NODE_OUTPUTS) n->out[n->out_count++] = out[o++];
    ft__fusion_emit(f, n);
    while (i < ins || o < outs) {
        ft_node more = {
            .verb = FT_DO_VIEW, .phase = n->phase, .at = n->at, .name = n->name, .count = 1, .traffic = 1, .effort = 1};
        more.op.kind = FT_OP_OTHER;
        more.op.name = "view";
        while (i < ins && more.in_count < FT_NODE_INPUTS) more.in[more.in_count++] = in[i++];
        while (o < outs && more.out_count < FT_NODE_OUTPUTS) more.out[more.out_count++] = out[o++];
        ft__fusion_emit(f, &more);
    }
}

void ft__fusion_hold(ft_fusion *f, ft_ref x)
{
    ft_node n = {.verb = FT_DO_VIEW, .phase = FT_BACKWARD, .at = FT_AT(HELD), .count = 1, .traffic = 1, .effort = 1};
    n.name = n.at->name;
    n.op.kind = FT_OP_OTHER;
    n.op.name = "view";
    n.in[n.in_count++] = x;
    ft__fusion_emit(f, &n);
}

/* To the end of the block. */
static void hold_on(ft_fusion *f, ft_ref x)
{
    if (f->held_count < FT_HELD) f->held[f->held_count++] = x;
}

/* -- a group's kernel ---------------------------------------------------------------------------- */

typedef struct making {
    ft_fusion *f;
    ft_fused *k;
    int32_t mark, block;
    char name[96];
    size_t length;
    int names;
    const char *last;
    ft_phase phase;
    bool loss_back;
    double running; /* bytes of a running sum that comes out; 0: none does */
    ft_dtype dtype;
    double widest;
} making;

static void read_one(making *m, ft_ref x, double bytes)
{
    ft_fusion *f = m->f;
    ft_ref r = f->root[x];
    double all = ft__tensor_bytes(&f->g->tensors[r]);
    if (bytes > all) bytes = all; /* a broadcast view */
    if (bytes > m->widest) {
        m->widest = bytes;
        m->dtype = f->g->tensors[r].dtype;
    }
    if (f->stamp[r] != m->mark) {
        f->stamp[r] = m->mark;
        f->slot[r] = m->k->in_count;
        m->k->in[m->k->in_count] = x;
        m->k->in_bytes[m->k->in_count++] = bytes;
        return;
    }
    int32_t at = f->slot[r];
    if (m->k->in[at] == x) return;
    m->k->in_bytes[at] = m->k->in_bytes[at] + bytes > all ? all : m->k->in_bytes[at] + bytes;
}

/* Reads what x is computed from instead of x, and computes it; every step once per kernel. */
static void compute_again(making *m, ft_ref x)
{
    ft_fusion *f = m->f;
    ft_ref r = f->root[x];
    if (!(f->flags[r] & FT_RECOMPUTED_BY_READERS)) {
        read_one(m, x, ft__tensor_bytes(&f->g->tensors[x]));
        return;
    }
    if (f->stamp[r] == m->mark) return;
    f->stamp[r] = m->mark;
    const ft_node *n = &f->g->nodes[f->maker[r]];
    double work = ft__fusion_work(f, n);
    if (named(n, "dropout")) work = 2;                 /* the mask is there */
    if (n->op.kind == FT_OP_ROW && work > 6) work = 6; /* and so is what the row adds up to */
    m->k->work += work;
    ft_ref from[FT_FUSION_OPERANDS];
    int count = ft__fusion_operands(n, from);
    for (int k = 0; k < count; k++) compute_again(m, from[k]);
}

static void read_input(making *m, const ft_node *n, int k)
{
    ft_fusion *f = m->f;
    ft_ref x = n->in[k], r = f->root[x];
    if ((f->flags[r] & FT_RECOMPUTED_BY_READERS) && f->home[r] != m->block) {
        compute_again(m, x);
        return;
    }
    double bytes = ft__tensor_bytes(&f->g->tensors[x]);
    bool table = (n->verb == FT_DO_EMBEDDING && k == 1) || (n->verb == FT_DO_GATHER && k == 0 && named(n, "embedding"));
    if (table && n->out_count) bytes = ft__tensor_bytes(&f->g->tensors[n->out[0]]); /* the rows it looks up */
    read_one(m, x, bytes);
}

/* The name grows by what it does not say yet: "fused_add_layernorm". Copies and changes of format go without saying. */
static void say(making *m, const ft_node *n)
{
    const char *op = n->op.name;
    if (m->names >= 5 || n->verb == FT_DO_FILL || n->verb == FT_DO_COPY || !strncmp(op, "cast_", 5)) return;
    if (m->last == op) return;
    m->last = op;
    bool back = n->op.kind == FT_OP_ROW && n->op.pass == FT_PASS_BWD;
    char word[64] = "_";
    size_t length = strlen(op), tail = back ? strlen("_backward") : 0;
    if (1 + length + tail >= sizeof word || m->length + 1 + length + tail >= sizeof m->name) return;
    memcpy(word + 1, op, length);
    memcpy(word + 1 + length, "_backward", tail);
    length += 1 + tail;
    word[length] = 0;
    if (strstr(m->name, word)) return;
    memcpy(m->name + m->length, word, length + 1);
    m->length += length;
    m->names++;
}

/* Sums over rows inside a kernel that walks along them come out as one partial sum per 16 rows, in fp32; a library's
 * sum over those follows, and a cast where the gradient is in a low format. */
static void finish_sums(ft_fusion *f, ft_phase phase, ft_at at, int64_t rows, ft_ref out)
{
    const ft_tensor *t = &f->g->tensors[out];
    ft_node n = {.verb = FT_DO_ROW, .phase = phase, .at = at, .name = at->name, .count = 1, .traffic = 1, .effort = 1};
    n.op.kind = FT_OP_ROW;
    n.op.name = "sum_cols";
    n.op.dtype = n.op.kv_dtype = FT_FP32;
    n.op.u.row.rows = rows > 1 ? rows : 1;
    n.op.u.row.cols = (int64_t)ft__tensor_numel(t);
    n.out[n.out_count++] = out;
    ft__fusion_emit(f, &n);
    if (t->element_bytes >= 4) return;
    double numel = ft__tensor_numel(t);
    ft_node cast = ft__fusion_node(FT_DO_POINTWISE, phase, at, FT_FP32, numel, numel * (4 + t->element_bytes), 2);
    cast.in[cast.in_count++] = out;
    ft__fusion_emit(f, &cast);
}

static bool sums_down(const ft_node *n, ft_part part, const ft_tensor *t)
{
    if (part == FT_DOWN) return true;
    return n->verb == FT_DO_ROW && n->op.kind == FT_OP_ROW && n->op.pass == FT_PASS_BWD && t->rows == 1 &&
           t->cols == n->op.u.row.cols && n->op.u.row.rows > 1;
}

/* Rows that do not begin at multiples of 16 bytes are read an element at a time. */
static bool odd_rows(const ft_node *n) { return n->op.kind == FT_OP_ROW && n->op.u.row.cols % 8; }

static ft_ref like(ft_fusion *f, ft_ref x, int32_t block)
{
    ft_tensor t = f->g->tensors[x];
    t.storage = FT_NONE;
    t.role = FT_ACTIVATION;
    t.block = block;
    t.name = "";
    t.expert = FT_NO_EXPERT;
    ft_ref at = ft__graph_tensor(f->g, &t);
    if (at == FT_NONE) f->failed = true;
    return at;
}

/* Sums down the columns that a kernel along the rows takes along. */
typedef struct sums {
    ft_ref out[FT_NODE_INPUTS];
    int64_t rows[FT_NODE_INPUTS];
    int count;
} sums;

static double narrowest_operand(const ft_graph *g, const ft_node *n, double most)
{
    for (int i = 0; i < n->in_count; i++)
        if (n->in[i] >= 0) most = fmin(most, ft__tensor_bytes(&g->tensors[n->in[i]]));
    return most;
}

static void write_results(making *m, const ft_node *n, ft_part part, bool closed, sums *s)
{
    ft_fusion *f = m->f;
    ft_fused *k = m->k;
    for (int i = 0; i < n->out_count; i++) {
        ft_ref x = n->out[i], r = f->root[x];
        const ft_tensor *t = &f->g->tensors[r];
        if (!ft__fusion_written(f, r) || f->out_stamp[r] == m->mark) continue;
        f->out_stamp[r] = m->mark;
        if (!closed && sums_down(n, part, t) && s->count < FT_NODE_INPUTS && r == x) {
            s->rows[s->count] = n->op.u.row.rows / 16;
            k->bytes += ft__tensor_numel(t) * (double)s->rows[s->count] * 4;
            s->out[s->count++] = x;
            continue;
        }
        k->out[k->out_count++] = x;
        k->bytes += ft__tensor_bytes(&f->g->tensors[x]);
        /* A running sum of which nobody wants the value itself: see docs. */
        if (!f->inference || !named(n, "add")) continue;
        k->summand = narrowest_operand(f->g, n, ft__tensor_bytes(t));
        if (!(f->flags[r] & FT_WHOLE_COPY)) m->running = ft__tensor_bytes(t);
    }
}

static void add_members(making *m, int32_t group, sums *s)
{
    ft_fusion *f = m->f;
    const ft_graph *g = f->g;
    const ft_group *p = &f->groups[group];
    int32_t first = g->blocks[m->block].first;
    double odd = 0;
    for (int32_t i = p->head; i >= 0; i = f->next[i]) {
        const ft_node *n = &g->nodes[first + i];
        ft_part part = f->part[first + i];
        for (int k = 0; k < n->in_count; k++) {
            int32_t w = f->from[i][k];
            if (w >= 0 && f->group_of[w] >= 0 && ft__group_find(f, f->group_of[w]) == group) continue;
            if (w >= 0) m->k->outside_only = false;
            read_input(m, n, k);
        }
        /* What is done once per row does not count. */
        if (!(p->rows && ft__fusion_space(g, n) <= (double)p->rows)) m->k->work += ft__fusion_work(f, n);
        if (part == FT_ALONG && odd_rows(n)) odd = 12;
        say(m, n);
        if (n->phase == FT_BACKWARD) m->phase = FT_BACKWARD;
        m->loss_back |= n->op.kind == FT_OP_ROW && n->op.pass == FT_PASS_BWD && named(n, "log_softmax");
        write_results(m, n, part, p->closed, s);
    }
    m->k->work += odd;
}

/* The logits are a result of the compiled model beside the loss: the caller holds them, and their own gradient, all
 * zeros, comes in and is added. */
static ft_ref logits_gradient(making *m)
{
    ft_fusion *f = m->f;
    ft_fused *k = m->k;
    if (f->how & FT_FUSE_LOSS_ALONE) {
        ft__fusion_over_logits(f, k);
        return FT_NONE;
    }
    if (k->in_count) hold_on(f, k->in[ft__fusion_widest(k)]);
    if (!k->out_count || f->g->tensors[k->out[0]].cols % 8) return FT_NONE; /* padded: its own compiled piece */
    ft_ref zeros = like(f, k->out[0], m->block);
    if (zeros == FT_NONE) return zeros;
    double bytes = ft__tensor_bytes(&f->g->tensors[zeros]);
    ft_node fill = ft__fusion_node(FT_DO_FILL, m->phase, FT_AT(ZERO_GRADIENT), m->dtype, k->space, bytes, 0);
    fill.out[fill.out_count++] = zeros;
    ft__fusion_emit(f, &fill);
    k->in_bytes[k->in_count] = bytes;
    k->in[k->in_count++] = zeros;
    k->bytes += bytes;
    return zeros;
}

int32_t ft__fusion_kernel(ft_fusion *f, int32_t b, int32_t group, ft_fused *out)
{
    const ft_graph *g = f->g;
    const ft_group *p = &f->groups[group];
    int32_t first = g->blocks[b].first;
    making m = {.f = f, .k = out, .mark = ++f->mark, .block = b, .name = "fused", .length = 5, .dtype = g->dtype};
    m.phase = g->nodes[first + p->head].phase;
    *out = (ft_fused){.in = out->in, .in_bytes = out->in_bytes, .out = out->out, .space = p->space, .rows = p->rows};
    out->outside_only = true;
    sums s = {.count = 0};
    add_members(&m, group, &s);
    if (!out->out_count && !s.count) return -1;
    for (int32_t i = 0; i < out->in_count; i++) out->read += out->in_bytes[i];
    out->bytes += out->read;
    for (int32_t i = p->head; i >= 0; i = f->next[i])
        if (g->nodes[first + i].verb == FT_DO_BATCHNORM) ft__fusion_moments(f, out, b, group, i);
    if (p->rows && m.running > 0 && g->blocks[b].repeat > 1) {
        out->bytes += FT_RUNNING_SUM_BYTES(m.running, out->summand);
        for (int32_t i = 0; i < out->in_count; i++)
            if (out->in_bytes[i] >= m.running) hold_on(f, out->in[i]);
    }
    ft__fusion_over(f, out, b, group);
    ft_ref zeros = m.loss_back ? logits_gradient(&m) : FT_NONE;
    ft_at name = ft__fusion_site(f, m.names ? m.name : "fused_copy");
    if (!name || f->failed) {
        f->failed = true;
        return -1;
    }
    ft_node n = ft__fusion_node(p->rows || p->closed ? FT_DO_ROW : FT_DO_POINTWISE, m.phase, name, m.dtype, p->space,
                                out->bytes, out->work);
    n.count = p->count;
    n.members = p->size;
    ft__fusion_apart(f, b, group, out, &n, s.count);
    n.op.u.elementwise.bytes = out->bytes > 1 ? out->bytes : 1;
    int32_t at = f->count;
    ft__fusion_emit_wide(f, &n, out->in, out->in_count, out->out, out->out_count);
    if (zeros != FT_NONE) ft__fusion_hold(f, zeros); /* the caller's: its memory is not taken over by the result */
    if (p->closed && out->out_count) {
        /* Long columns are summed in parts, some 64 of them; the parts follow. */
        double cols = ft__tensor_numel(&f->g->tensors[out->out[0]]), parts = p->space / cols / 64;
        if (parts > FT_K_FUSION_PARTS) parts = FT_K_FUSION_PARTS;
        ft_node rest = ft__fusion_node(FT_DO_ROW, m.phase, name, FT_FP32, cols * parts, cols * parts * 4, 2);
        rest.count = p->count;
        if (parts >= 2) ft__fusion_emit(f, &rest);
    }
    for (int i = 0; i < s.count; i++) finish_sums(f, m.phase, name, s.rows[i], s.out[i]);
    return f->failed ? -1 : at;
}

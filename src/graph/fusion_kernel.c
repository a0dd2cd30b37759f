/* fusion_kernel.c: what a group of nodes is as one kernel: every distinct tensor from outside is read once, what others
 * need is written, and each element passes through the instructions of all members.
 *
 * Instructions were read off kernels that Inductor generated for GPT-2 and Llama on an H200 (docs/models/fusion.md), in
 * the unit of kernel/elementwise.c: what a lane issues per element beyond loads, stores and addresses. */
#include <stdio.h>
#include <string.h>

#include "graph/fusion.h"

static bool named(const ft_node *n, const char *name) { return !strcmp(n->op.name, name); }

ft_part ft__fusion_part(const ft_node *n)
{
    if (n->synced) return FT_LIBRARY;
    switch (n->verb) {
    case FT_DO_VIEW:
    case FT_DO_SLICE:
    case FT_DO_SPLIT:
    case FT_DO_EXPAND: return ft__node_runs(n) ? FT_LIBRARY : FT_GLUE;
    case FT_DO_POINTWISE:
    case FT_DO_COPY:
    case FT_DO_CAT:
    case FT_DO_FILL:
    case FT_DO_BATCHNORM: return FT_POINT;
    case FT_DO_EMBEDDING:
    case FT_DO_GATHER: return n->op.kind == FT_OP_ROW && n->op.pass == FT_FWD ? FT_POINT : FT_LIBRARY;
    case FT_DO_LOSS: return n->in_place ? FT_POINT : FT_ALONG;
    case FT_DO_ROW:
        if (n->op.kind != FT_OP_ROW) return FT_POINT;
        if (named(n, "sum_cols")) return FT_DOWN;
        return named(n, "transpose_copy") || named(n, "bias_add") ? FT_POINT : FT_ALONG;
    default: return FT_LIBRARY;
    }
}

double ft__fusion_space(const ft_graph *g, const ft_node *n)
{
    double most = 1;
    if (n->op.kind == FT_OP_ROW) most = (double)n->op.u.row.rows * (double)n->op.u.row.cols;
    for (int i = 0; i < n->out_count; i++) {
        double numel = ft__tensor_numel(&g->tensors[n->out[i]]);
        if (numel > most && !(n->verb == FT_DO_ROW && n->op.kind == FT_OP_ROW)) most = numel;
    }
    if (n->verb == FT_DO_LOSS && n->in_count) most = ft__tensor_numel(&g->tensors[n->in[0]]);
    return most;
}

double ft__fusion_work(const ft_node *n)
{
    static const struct {
        const char *name;
        float forward, backward;
    } work[] = {
        {"add", 1, 1},
        {"mul", 1, 1},
        {"mulu", 1, 1},
        {"addu", 1, 1},
        {"cast_bf16", 2, 2},
        {"cast_fp32", 1, 1},
        {"cast_fp16", 2, 2},
        {"copy", 0, 0},
        {"fill", 0, 0},
        {"dropout", 185, 1}, /* Philox for every element, three of its four numbers thrown away */
        {"cos", 45, 45},     /* fp32 with exact reduction of the argument */
        {"sin", 45, 45},
        {"tanh", 30, 30},
        {"gelu", 26, 26},
        {"gelu_backward", 36, 36},
        {"silu", 12, 12},
        {"silu_backward", 18, 18},
        {"sigmoid", 12, 12},
        {"exp", 8, 8},
        {"div", 6, 6},
        {"powu", 3, 3}, /* squares and cubes become products */
        {"pow", 8, 8},
        {"softmax", 20, 8},
        {"log_softmax", 40, 40}, /* maximum and sum in one pass: an exponential for each */
        {"layernorm", 10, 10},
        {"rmsnorm", 6, 8},
        {"nll_loss", 2, 2},
        {"nll_loss_backward", 2, 2},
        {"embedding", 6, 6},
        {"batchnorm", 4, 8},
    };
    for (size_t i = 0; i < sizeof work / sizeof *work; i++)
        if (named(n, work[i].name)) return (double)(n->op.pass == FT_FWD ? work[i].forward : work[i].backward);
    return 2;
}

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

ft_node ft__fusion_node(ft_verb verb, ft_phase phase, const char *name, ft_dtype dtype, double space, double bytes,
                        double work)
{
    ft_node n = {.verb = verb, .phase = phase, .name = name, .count = 1, .traffic = 1, .members = 1};
    n.op.kind = FT_OP_ELEMENTWISE;
    n.op.name = "fused"; /* one name for all, so that equal kernels are forecast once */
    n.op.dtype = n.op.kv_dtype = dtype;
    n.op.u.elementwise.numel = space >= 1 ? (int64_t)space : 1;
    n.op.u.elementwise.inputs = 1;
    n.op.u.elementwise.bytes = bytes > 1 ? bytes : 1;
    n.op.u.elementwise.ops_per_element = work > 0.5 ? work : 0.5;
    return n;
}

void ft__fusion_emit_wide(ft_fusion *f, ft_node *n, const ft_ref *in, int32_t ins, const ft_ref *out, int32_t outs)
{
    int32_t i = 0, o = 0;
    n->in_count = n->out_count = 0;
    while (i < ins && n->in_count < FT_NODE_INPUTS) n->in[n->in_count++] = in[i++];
    while (o < outs && n->out_count < FT_NODE_OUTPUTS) n->out[n->out_count++] = out[o++];
    ft__fusion_emit(f, n);
    while (i < ins || o < outs) {
        ft_node more = {.verb = FT_DO_VIEW, .phase = n->phase, .name = n->name, .count = 1, .traffic = 1};
        more.op.kind = FT_OP_OTHER;
        more.op.name = "view";
        while (i < ins && more.in_count < FT_NODE_INPUTS) more.in[more.in_count++] = in[i++];
        while (o < outs && more.out_count < FT_NODE_OUTPUTS) more.out[more.out_count++] = out[o++];
        ft__fusion_emit(f, &more);
    }
}

void ft__fusion_hold(ft_fusion *f, ft_ref x)
{
    ft_node n = {.verb = FT_DO_VIEW, .phase = FT_BACKWARD, .name = "held", .count = 1, .traffic = 1};
    n.op.kind = FT_OP_OTHER;
    n.op.name = "view";
    n.in[n.in_count++] = x;
    ft__fusion_emit(f, &n);
}

/* -- a group's kernel ---------------------------------------------------------------------------- */

typedef struct making {
    ft_fusion *f;
    ft_fused *k;
    int32_t mark, block;
    char name[96];
    size_t length;
    int names;
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

static void read_input(making *m, const ft_node *n, int k)
{
    ft_fusion *f = m->f;
    ft_ref x = n->in[k], r = f->root[x];
    if ((f->flags[r] & FT_AGAIN) && f->home[r] != m->block) {
        if (f->stamp[r] != m->mark) m->k->work += (double)f->leaf_work[r];
        f->stamp[r] = m->mark;
        for (int l = 0; l < f->leaf_count[r]; l++) {
            ft_ref leaf = f->leaves[f->leaf_first[r] + l];
            read_one(m, leaf, ft__tensor_bytes(&f->g->tensors[leaf]));
        }
        return;
    }
    double bytes = ft__tensor_bytes(&f->g->tensors[x]);
    bool table = (n->verb == FT_DO_EMBEDDING && k == 1) || (n->verb == FT_DO_GATHER && k == 0);
    if (table && n->out_count) bytes = ft__tensor_bytes(&f->g->tensors[n->out[0]]); /* the rows it looks up */
    read_one(m, x, bytes);
}

static void say(making *m, const ft_node *n)
{
    const char *op = n->op.name;
    if (!strncmp(op, "cast_", 5) || !strcmp(op, "copy") || !strcmp(op, "fill") || m->names >= 5) return;
    const char *pass = n->op.kind == FT_OP_ROW && n->op.pass == FT_BWD ? "_backward" : "";
    char word[48];
    int length = snprintf(word, sizeof word, "_%s%s", op, pass);
    if (length <= 0 || m->length + (size_t)length >= sizeof m->name) return;
    if (strstr(m->name, word)) return;
    memcpy(m->name + m->length, word, (size_t)length + 1);
    m->length += (size_t)length;
    m->names++;
}

/* Sums over rows inside a kernel that walks along them come out as one partial sum per 16 rows, in fp32; a library's sum
 * over those follows, and a cast where the gradient is in a low format. */
static void finish_sums(ft_fusion *f, ft_phase phase, const char *name, int64_t rows, ft_ref out)
{
    const ft_tensor *t = &f->g->tensors[out];
    ft_node n = {.verb = FT_DO_ROW, .phase = phase, .name = name, .count = 1, .traffic = 1};
    n.op.kind = FT_OP_ROW;
    n.op.name = "sum_cols";
    n.op.dtype = n.op.kv_dtype = FT_FP32;
    n.op.u.row.rows = rows / 16 > 1 ? rows / 16 : 1;
    n.op.u.row.cols = (int64_t)ft__tensor_numel(t);
    n.out[n.out_count++] = out;
    ft__fusion_emit(f, &n);
    if (t->element_bytes >= 4) return;
    double numel = ft__tensor_numel(t);
    ft_node cast = ft__fusion_node(FT_DO_POINTWISE, phase, name, FT_FP32, numel, numel * (4 + t->element_bytes), 2);
    cast.in[cast.in_count++] = out;
    ft__fusion_emit(f, &cast);
}

static bool sums_down(const ft_node *n, ft_part part, const ft_tensor *t)
{
    if (part == FT_DOWN) return true;
    return n->verb == FT_DO_ROW && n->op.kind == FT_OP_ROW && n->op.pass == FT_BWD && t->rows == 1 &&
           t->cols == n->op.u.row.cols && n->op.u.row.rows > 1;
}

/* Batch norms of a training step look at everything twice: moments first, then the result. */
static void emit_moments(ft_fusion *f, const ft_node *n)
{
    double bytes = 0, space = ft__fusion_space(f->g, n);
    bool back = n->phase == FT_BACKWARD;
    for (int k = 0; k < n->in_count && k < (back ? 2 : 1); k++) bytes += ft__tensor_bytes(&f->g->tensors[n->in[k]]);
    if (n->op.u.elementwise.bytes < 1.4 * bytes + 1) return; /* moments are given */
    ft_node m = ft__fusion_node(FT_DO_ROW, n->phase, "fused_moments", n->op.dtype, space, bytes, 6);
    ft_ref in[2] = {n->in[0], n->in[n->in_count > 1 ? 1 : 0]};
    ft__fusion_emit_wide(f, &m, in, back ? 2 : 1, NULL, 0);
}

static ft_ref like(ft_fusion *f, ft_ref x, int32_t block)
{
    ft_tensor t = f->g->tensors[x];
    t.storage = FT_NONE;
    t.role = FT_ACTIVATION;
    t.block = block;
    t.name = "";
    ft_ref at = ft__graph_tensor(f->g, &t);
    if (at == FT_NONE) f->failed = true;
    return at;
}

int32_t ft__fusion_kernel(ft_fusion *f, int32_t b, int32_t group, ft_fused *out)
{
    const ft_graph *g = f->g;
    const ft_block *block = &g->blocks[b];
    const ft_group *p = &f->groups[group];
    making m = {.f = f, .k = out, .mark = ++f->mark, .block = b, .name = "fused", .length = 5, .dtype = g->dtype};
    out->in_count = out->out_count = 0;
    out->bytes = out->work = 0;
    out->space = p->space;
    out->rows = p->rows;
    out->outside_only = true;
    ft_ref sums[FT_NODE_INPUTS];
    int64_t sum_rows[FT_NODE_INPUTS];
    int sum_count = 0;
    bool loss_back = false, back = false;
    ft_phase phase = g->nodes[block->first + p->head].phase;
    for (int32_t i = p->head; i >= 0; i = f->next[i]) {
        const ft_node *n = &g->nodes[block->first + i];
        ft_part part = f->part[block->first + i];
        for (int k = 0; k < n->in_count; k++) {
            int32_t w = f->from[i][k];
            if (w >= 0 && f->group_of[w] >= 0 && ft__group_find(f, f->group_of[w]) == group) continue;
            if (w >= 0) out->outside_only = false;
            read_input(&m, n, k);
        }
        double space = ft__fusion_space(g, n);
        if (!(p->rows && space <= (double)p->rows)) out->work += ft__fusion_work(n);
        say(&m, n);
        back |= n->phase == FT_BACKWARD;
        loss_back |= n->op.kind == FT_OP_ROW && n->op.pass == FT_BWD && named(n, "log_softmax");
        for (int k = 0; k < n->out_count; k++) {
            ft_ref x = n->out[k], r = f->root[x];
            const ft_tensor *t = &g->tensors[r];
            bool kept = (f->flags[r] & FT_FAR) || f->outside[r] || t->role == FT_GRADIENT;
            if (!kept || f->out_stamp[r] == m.mark) continue;
            f->out_stamp[r] = m.mark;
            if (sums_down(n, part, t) && sum_count < FT_NODE_INPUTS && r == x) {
                sum_rows[sum_count] = n->op.u.row.rows;
                sums[sum_count++] = x;
                out->bytes += ft__tensor_numel(t) * (double)n->op.u.row.rows / 4; /* 4 bytes, 16 rows */
                continue;
            }
            out->out[out->out_count++] = x;
            out->bytes += ft__tensor_bytes(&g->tensors[x]);
        }
    }
    if (!out->out_count && !sum_count) return -1;
    if (back) phase = FT_BACKWARD;
    for (int32_t i = 0; i < out->in_count; i++) out->bytes += out->in_bytes[i];
    for (int32_t i = p->head; i >= 0; i = f->next[i])
        if (g->nodes[block->first + i].verb == FT_DO_BATCHNORM) emit_moments(f, &g->nodes[block->first + i]);
    /* The logits are a result of the compiled model beside the loss: their own gradient, all zeros, comes in and is
     * added. */
    double most = 0;
    for (int32_t i = 0; i < out->in_count && loss_back; i++) {
        if (out->in_bytes[i] > most) f->held = out->in[i];
        if (out->in_bytes[i] > most) most = out->in_bytes[i];
    }
    if (loss_back && out->out_count && f->g->tensors[out->out[0]].cols % 8 == 0) {
        ft_ref zeros = like(f, out->out[0], b);
        if (zeros == FT_NONE) return -1;
        double bytes = ft__tensor_bytes(&f->g->tensors[zeros]);
        ft_node fill = ft__fusion_node(FT_DO_FILL, phase, "zero_gradient", m.dtype, p->space, bytes, 0);
        ft__fusion_emit_wide(f, &fill, NULL, 0, &zeros, 1);
        out->in[out->in_count++] = zeros;
        out->bytes += bytes;
    }
    char *name = ft__arena_copy(g->arena, m.names ? m.name : "fused_copy", m.names ? m.length : 10);
    if (!name) {
        f->failed = true;
        return -1;
    }
    ft_node n = ft__fusion_node(p->rows || p->closed ? FT_DO_ROW : FT_DO_POINTWISE, phase, name, m.dtype, p->space,
                                out->bytes, out->work);
    n.count = p->count;
    n.members = p->size;
    int32_t at = f->count;
    ft__fusion_emit_wide(f, &n, out->in, out->in_count, out->out, out->out_count);
    for (int i = 0; i < sum_count; i++) finish_sums(f, phase, name, sum_rows[i], sums[i]);
    return f->failed ? -1 : at;
}

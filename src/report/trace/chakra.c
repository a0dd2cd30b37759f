/* chakra.c: from a step to the graph that every rank runs.
 *
 * A rank's file holds its pieces of work in the order of the pipeline's schedule: a receive, kernels and exchanges in
 * the order of the streams, a send. Kernels wait for the kernel before and for the exchange whose result they read; an
 * exchange waits for the kernel before and for the one before it among the same ranks; what is sent waits for the last
 * kernel. Nothing else orders them: what overlaps is the simulator's to find.
 *
 * Kernels between two exchanges are one node where every kernel for itself would make a file too large.
 *
 * Leaves out: the host, memory nodes, gathers of parameters ahead of their layer (they wait for the layer before). */
#include "report/trace/chakra.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/json_write.h"
#include "report/trace/chakra_rank.h"

/* -- nodes ------------------------------------------------------------------------------------- */

static void close_kernels(ranker *r)
{
    if (!r->is_open) return;
    r->kernel = ft__chakra_add(&r->file, &r->open);
    r->is_open = false;
}

static void add_kernel(ranker *r, const ft_graph *g, int32_t i, const ft_node_cost *b, const ft_timed *t,
                       int64_t awaits)
{
    const ft_node *n = &g->nodes[i];
    double times = (b->count > 0 ? b->count : 1) * r->share;
    if (r->is_open && awaits && awaits != r->open.after[1]) close_kernels(r);
    if (!r->is_open) {
        r->open = (ft_chakra_node){.type = FT_CHAKRA_COMP, .name = n->name && *n->name ? n->name : n->op.name};
        r->open.after[0] = r->kernel;
        r->open.after[1] = awaits;
        r->is_open = true;
    }
    r->open.ms += b->gpu * times;
    r->open.flops += t ? t->forecast.flops * times : 0;
    r->open.bytes += t ? t->forecast.bytes * times : 0;
    if (!r->merged) close_kernels(r);
}

int64_t ft__chakra_exchange(ranker *r, const char *name, ft_exchange_kind kind, int set, double bytes, double ms,
                            int64_t awaits)
{
    int axis = set < FT_AXIS_COUNT ? set : FT_AXIS_DATA;
    close_kernels(r);
    ft_chakra_node n = {.type = FT_CHAKRA_COLL, .name = name, .ms = ms, .bytes = bytes, .exchange = kind};
    n.group = ft__chakra_group(ft__chakra_layout(r->v), set, r->rank);
    n.after[0] = r->kernel;
    n.after[1] = r->lane[axis];
    n.after[2] = awaits;
    r->lane[axis] = ft__chakra_add(&r->file, &n);
    return r->lane[axis];
}

/* What a weights' gradient reads is gathered again under sequence parallelism: the size that it had going forward. */
static double gathered_bytes(const ft_graph *g, const ft_node *n)
{
    for (int k = 0; k < n->in_count; k++)
        for (int32_t i = 0; i < g->node_count; i++) {
            const ft_node *from = &g->nodes[i];
            if (from->verb == FT_DO_COMM && from->exchange.kind == FT_EXCHANGE_ALL_GATHER && from->out_count &&
                from->out[0] == n->in[k])
                return from->exchange.bytes;
        }
    return 0;
}

static void add_iteration(ranker *r, const ft_graph *g, const ft_lanes *l, const ft_pace *pace, int64_t stage,
                          int32_t b, bool scatters)
{
    const ft_block *block = &g->blocks[b];
    ft__chakra_gather(r, g, l, b);
    const ft_sharded *sharded = l ? l->sharded : NULL;
    double fetched = sharded ? ft__chakra_block_ms(g, l, b, true) : 0,
           reduced = sharded ? ft__chakra_block_ms(g, l, b, false) : 0;
    for (int32_t i = block->first; i < block->first + block->count; i++) {
        const ft_node *n = &g->nodes[i];
        if (sharded && scatters) ft__chakra_of_tensor(r, g, b, false, reduced_ms(&sharded[i].before), reduced);
        if (sharded && r->gathers) ft__chakra_of_tensor(r, g, b, true, fetched_ms(&sharded[i]), fetched);
        int32_t from = l ? l->awaits[i] : -1;
        int64_t awaits = from >= 0 ? r->made[from] : 0;
        if (l && l->again[i] > 0)
            awaits = ft__chakra_exchange(r, "gather again", FT_EXCHANGE_ALL_GATHER, FT_AXIS_TENSOR,
                                         gathered_bytes(g, n), l->again[i], awaits);
        if (l && l->comm[i] > 0)
            r->made[i] = ft__chakra_exchange(r, n->name ? n->name : "exchange", n->exchange.kind, n->exchange.axis,
                                             n->exchange.bytes * (double)n->count, l->comm[i] * (double)n->count,
                                             awaits);
        else if (pace->costs[i].gpu > 0)
            add_kernel(r, g, i, &pace->costs[i], r->timed[stage][i], awaits);
        if (sharded && scatters) ft__chakra_of_tensor(r, g, b, false, reduced_ms(&sharded[i].behind), reduced);
    }
    if (scatters) ft__chakra_reduce(r, g, l, b);
}

/* Does this chunk of the stage run the block, and how often? Whole iterations: of a pattern of layers that is not taken
 * apart, the chunk in which most of it lies. */
static int64_t iterations(const ft_stage *s, const ft_graph *g, int32_t b, int64_t chunk)
{
    double repeat = (double)g->blocks[b].repeat, before = 0;
    if (!s || s->chunks.count < 2 || g->blocks[b].phase == FT_UPDATE) return g->blocks[b].repeat;
    for (int64_t c = 0; c < chunk; c++) before += ft__chunk_part(&s->chunks, g, c, b);
    double after = before + ft__chunk_part(&s->chunks, g, chunk, b);
    return (int64_t)(floor(after * repeat + 0.5) - floor(before * repeat + 0.5));
}

static void add_pass(ranker *r, int64_t place_stage, ft_phase phase, int64_t chunk, bool scatters)
{
    const ft_stage *s = r->v->ranked ? &r->v->ranked->stages[place_stage] : NULL;
    const ft_graph *g = s ? s->g : r->v->graph;
    const ft_pace *pace = s ? s->step.pace : r->v->step->pace;
    memset(r->made, 0, (size_t)g->node_count * sizeof *r->made);
    for (int32_t b = 0; b < g->block_count; b++) {
        if (g->blocks[b].phase != phase) continue;
        for (int64_t i = iterations(s, g, b, chunk); i > 0; i--)
            add_iteration(r, g, s ? s->lanes : NULL, pace, place_stage, b, scatters);
    }
    close_kernels(r);
}

/* Gradients of every iteration that a chunk goes back through. */
static void add_reduces(ranker *r, const ft_stage *s, int64_t chunk)
{
    for (int32_t b = 0; b < s->g->block_count; b++) {
        double all = s->lanes->sharded ? ft__chakra_block_ms(s->g, s->lanes, b, false) : 0;
        for (int64_t i = s->g->blocks[b].phase == FT_BACKWARD ? iterations(s, s->g, b, chunk) : 0; i > 0; i--) {
            ft__chakra_reduce(r, s->g, s->lanes, b);
            ft__chakra_of_tensor(r, s->g, b, false, all, all);
        }
    }
}

/* Half a backward pass. The first has every kernel and exchange, and of their time what is no weight's gradient; the
 * second is one node, and what it makes leaves behind it. */
static void add_half(ranker *r, int64_t place_stage, const ft_pipe_op *op, bool scatters)
{
    const ft_stage *s = &r->v->ranked->stages[place_stage];
    if (op->kind != FT_PIPE_WEIGHTS) {
        r->share = 1 - ft__weights_share;
        add_pass(r, place_stage, FT_BACKWARD, op->chunk, false);
        r->share = 1;
        return;
    }
    ft_chakra_node n = {.type = FT_CHAKRA_COMP, .name = "gradients of weights", .after = {r->kernel}};
    for (int32_t b = 0; b < s->g->block_count; b++) {
        const ft_block *block = &s->g->blocks[b];
        if (block->phase != FT_BACKWARD) continue;
        double times = (double)iterations(s, s->g, b, op->chunk) * ft__weights_share;
        for (int32_t i = block->first; i < block->first + block->count; i++) {
            const ft_timed *t = r->timed[place_stage][i];
            double each = times * fmax(s->step.pace->costs[i].count, 1);
            n.ms += s->step.pace->costs[i].gpu * each;
            n.flops += t ? t->forecast.flops * each : 0;
            n.bytes += t ? t->forecast.bytes * each : 0;
        }
    }
    r->kernel = ft__chakra_add(&r->file, &n);
    if (scatters) add_reduces(r, s, op->chunk);
}

/* -- pieces ------------------------------------------------------------------------------------ */

static void add_send(ranker *r, bool receives, bool forward, int64_t place, int64_t other_stage, int64_t micro,
                     double bytes)
{
    const ft_parallel *p = ft__chakra_layout(r->v);
    int64_t same = p->tp * p->cp * p->dp, other = r->rank % same + other_stage * same;
    ft_chakra_node n = {.type = receives ? FT_CHAKRA_RECV : FT_CHAKRA_SEND, .bytes = bytes};
    n.name = receives ? "receive" : "send";
    n.from = receives ? other : r->rank;
    n.to = receives ? r->rank : other;
    n.tag = (place * 2 + forward) * r->micros + micro; /* place: the boundary's lower side */
    n.after[0] = receives ? 0 : r->kernel;
    int64_t id = ft__chakra_add(&r->file, &n);
    if (!receives) return;
    /* The first kernel waits for what arrives and for the kernel before: an empty node joins the two. */
    ft_chakra_node join = {.type = FT_CHAKRA_COMP, .name = "received", .after = {r->kernel, id}};
    r->kernel = ft__chakra_add(&r->file, &join);
    double gather = r->v->ranked ? r->v->ranked->gather_received_ms : 0; /* sent in parts */
    if (gather > 0)
        r->kernel = ft__chakra_exchange(r, "gather received", FT_EXCHANGE_ALL_GATHER, FT_AXIS_TENSOR,
                                        bytes * (double)p->tp, gather, 0);
}

static void add_piece(ranker *r, const ft_pipe_op *op, bool last)
{
    const ft_parallel *p = ft__chakra_layout(r->v);
    bool dual = p->schedule == FT_DUALPIPE, forward = op->kind == FT_PIPE_FORWARD;
    int64_t place = dual ? (op->chunk == 0 ? r->stage : r->stages - 1 - r->stage) : op->chunk * r->stages + r->stage;
    int64_t places = dual ? r->stages : r->stages * r->parts, held = dual ? place : r->stage;
    bool cut = r->v->ranked && r->v->ranked->gather_received_ms > 0;
    double bytes = (double)r->v->work->batch * (double)r->v->work->seq * (double)r->v->arch->hidden *
                   fmax(2, ft_dtype_bytes(r->v->work->dtype)) / (double)(p->cp * (p->sp || cut ? p->tp : 1));
    int64_t before = forward ? place - 1 : place + 1, after = forward ? place + 1 : place - 1;
    bool weights = op->kind == FT_PIPE_WEIGHTS;
    if (!weights && before >= 0 && before < places)
        add_send(r, true, forward, forward ? before : place,
                 dual ? (op->chunk == 0 ? before : r->stages - 1 - before) : before % r->stages, op->micro, bytes);
    bool first = forward && (op->micro == 0 || (dual && op->chunk == 1 && op->micro == r->micros / 2));
    r->gathers = p->zero >= 3 ? first || ft__ranks_gathers_each(p, r->v->work) : first && p->gather_ahead;
    if (op->kind == FT_PIPE_FORWARD || op->kind == FT_PIPE_BACKWARD) {
        add_pass(r, held, forward ? FT_FORWARD : FT_BACKWARD, op->chunk, !forward && last);
    } else {
        add_half(r, held, op, last);
    }
    if (!weights && after >= 0 && after < places)
        add_send(r, false, forward, forward ? place : after,
                 dual ? (op->chunk == 0 ? after : r->stages - 1 - after) : after % r->stages, op->micro, bytes);
}

/* A table that both ends of the pipeline hold: each sends the other its gradient. */
static void add_tied(ranker *r)
{
    int64_t same = ft__chakra_layout(r->v)->tp * ft__chakra_layout(r->v)->cp * ft__chakra_layout(r->v)->dp;
    int64_t other = r->rank % same + (r->stage == 0 ? r->stages - 1 : 0) * same;
    int64_t tag = 2 * r->stages * (r->parts + 1) * r->micros; /* behind every micro-batch's */
    ft_chakra_node send = {.type = FT_CHAKRA_SEND, .name = "send the tied table's gradient", .after = {r->kernel}};
    ft_chakra_node receive = {.type = FT_CHAKRA_RECV, .name = "receive the tied table's gradient"};
    send.bytes = receive.bytes = (double)r->v->arch->vocab * (double)r->v->arch->hidden /
                                 (double)ft__chakra_layout(r->v)->tp * ft__chakra_gradient_bytes(r->v);
    send.from = receive.to = r->rank;
    send.to = receive.from = other;
    send.tag = receive.tag = tag;
    ft__chakra_add(&r->file, &send);
    ft_chakra_node join = {.type = FT_CHAKRA_COMP, .name = "received", .after = {r->kernel}};
    join.after[1] = ft__chakra_add(&r->file, &receive);
    r->kernel = ft__chakra_add(&r->file, &join);
}

/* What a stage that the rank holds does after its last backward pass. */
static void add_tail(ranker *r, int64_t stage)
{
    const ft_stage *s = r->v->ranked ? &r->v->ranked->stages[stage] : NULL;
    const ft_graph *g = s ? s->g : r->v->graph;
    if (s && s->tail_ms > s->tied_ms && ft__chakra_layout(r->v)->tp > 1)
        r->kernel = ft__chakra_exchange(r, "gradients held by several ranks", FT_EXCHANGE_ALL_REDUCE, FT_AXIS_TENSOR,
                                        s->replicated * ft__chakra_gradient_bytes(r->v), s->tail_ms - s->tied_ms, 0);
    if (s && s->tied_ms > 0 && stage == r->stage) add_tied(r);
    add_pass(r, stage, FT_UPDATE, 0, false);
    if (s && s->gather_ms > 0)
        ft__chakra_data(r, "gather updated parameters", FT_EXCHANGE_ALL_GATHER,
                        g->trained_parameters * fmax(2, ft_dtype_bytes(r->v->work->dtype)), s->gather_ms);
}

static void add_end(ranker *r)
{
    int64_t reduced = r->lane[FT_AXIS_DATA];
    if (reduced > 0) { /* the update waits for all gradients */
        ft_chakra_node join = {.type = FT_CHAKRA_COMP, .name = "gradients complete", .after = {r->kernel, reduced}};
        r->kernel = ft__chakra_add(&r->file, &join);
    }
    add_tail(r, r->stage);
    if (ft__chakra_layout(r->v)->schedule == FT_DUALPIPE && r->stages > 1) add_tail(r, r->stages - 1 - r->stage);
}

/* Nodes of one micro-batch, kernel by kernel. */
static double nodes_of(const ft_graph *g)
{
    double sum = 0;
    for (int32_t b = 0; b < g->block_count; b++) sum += (double)g->blocks[b].count * (double)g->blocks[b].repeat;
    return sum;
}

static const int64_t most_nodes = 20 * (int64_t)FT_CHAKRA_NODES;

static ft_status add_rank(ranker *r, int64_t rank, ft_error *err)
{
    const ft_parallel *p = ft__chakra_layout(r->v);
    int64_t same = p->tp * p->cp * p->dp;
    r->rank = rank;
    r->stage = rank / same;
    r->kernel = 0;
    memset(r->lane, 0, sizeof r->lane);
    const ft_graph *g = r->v->ranked ? r->v->ranked->stages[r->stage].g : r->v->graph;
    r->merged = nodes_of(g) * (double)r->micros > FT_CHAKRA_NODES;
    ft__chakra_begin(&r->file, "forecast by Foretell: durations are forecasts, sizes are exact");
    if (r->v->ranked) {
        const ft_piped *pipe = &r->v->ranked->pipe;
        for (int64_t c = 0; c < r->parts + 1; c++) r->last[c] = -1;
        for (int32_t i = 0; i < pipe->op_count[r->stage]; i++)
            if (pipe->ops[r->stage][i].kind == FT_PIPE_BACKWARD || pipe->ops[r->stage][i].kind == FT_PIPE_WEIGHTS)
                r->last[pipe->ops[r->stage][i].chunk] = i;
        for (int32_t i = 0; i < pipe->op_count[r->stage] && !r->file.text.failed; i++) {
            const ft_pipe_op *op = &pipe->ops[r->stage][i];
            add_piece(r, op, ft__ranks_reduces_each(p, r->v->work) || i == r->last[op->chunk]);
        }
    } else {
        for (int64_t m = 0; m < r->micros && !r->file.text.failed && r->file.count <= most_nodes; m++) {
            add_pass(r, 0, FT_FORWARD, 0, false);
            add_pass(r, 0, FT_BACKWARD, 0, false);
        }
    }
    add_end(r);
    if (r->file.count > most_nodes)
        return ft__fail(err, FT_E_RANGE, "rank %" PRId64 " has more than %" PRId64 " nodes: too many for a trace", rank,
                        most_nodes);
    return r->file.text.failed ? ft__fail(err, FT_E_MEMORY, "out of memory for a Chakra trace") : FT_OK;
}

static ft_status prepare(ranker *r, ft_error *err)
{
    const ft_step_view *v = r->v;
    size_t most = 1;
    r->timed = ft__arena_array(v->arena, (size_t)r->stages, sizeof *r->timed);
    r->last = ft__arena_array(v->arena, (size_t)r->parts + 1, sizeof *r->last); /* dualpipe has two */
    if (!r->timed || !r->last) return ft__fail(err, FT_E_MEMORY, "out of memory for a Chakra trace");
    for (int64_t s = 0; s < r->stages; s++) {
        const ft_graph *g = v->ranked ? v->ranked->stages[s].g : v->graph;
        const ft_step *step = v->ranked ? &v->ranked->stages[s].step : v->step;
        bool twin = s > 0 && v->ranked && g == v->ranked->stages[s - 1].g;
        if (twin) r->timed[s] = r->timed[s - 1];
        if (twin) continue;
        r->timed[s] = ft__arena_array(v->arena, (size_t)g->node_count + 1, sizeof **r->timed);
        if (!r->timed[s]) return ft__fail(err, FT_E_MEMORY, "out of memory for a Chakra trace");
        for (int32_t i = 0; i < step->kernel_count; i++) r->timed[s][step->kernels[i].node] = &step->kernels[i];
        if ((size_t)g->node_count + 1 > most) most = (size_t)g->node_count + 1;
    }
    r->made = ft__arena_array(v->arena, most, sizeof *r->made);
    return r->made ? FT_OK : ft__fail(err, FT_E_MEMORY, "out of memory for a Chakra trace");
}

ft_status ft__chakra(const ft_step_view *v, ft_file_sink sink, void *user, ft_error *err)
{
    const ft_parallel *p = ft__chakra_layout(v);
    ranker r = {.v = v, .share = 1, .stages = v->ranked ? v->ranked->stage_count : 1};
    if (v->memory_only) return ft__fail(err, FT_E_UNSUPPORTED, "a request for memory has no times to trace");
    if (v->ranked && v->ranked->stage_count > 1 && ft__schedule_folds(p->schedule))
        return ft__fail(err, FT_E_UNSUPPORTED, "the schedule \"%s\" is not written as a Chakra trace",
                        ft__schedule_name(p->schedule));
    r.micros = v->work->accumulate > 1 ? v->work->accumulate : 1;
    r.parts = v->ranked && p->schedule == FT_INTERLEAVED && p->vpp > 1 ? p->vpp : 1;
    if (v->ranked && v->ranked->pipe.skipped > 0) /* who runs such a trace needs every one of them */
        return ft__fail(err, FT_E_RANGE,
                        "a Chakra trace lists every micro-batch: %" PRId64 " are too many, %" PRId64 " would do",
                        r.micros, r.micros - v->ranked->pipe.skipped);
    FT_TRY(prepare(&r, err));
    int64_t ranks = ft__parallel_ranks(p), same = p->tp * p->cp * p->dp, step = ranks <= FT_CHAKRA_RANKS ? 1 : same;
    ft_text groups = {0};
    ft__json_open(&groups);
    ft_status status = FT_OK;
    for (int64_t rank = 0; rank < ranks && status == FT_OK; rank += step) {
        char name[48];
        ft_text t = {.cap = sizeof name - 1};
        ft__text_addf(&t, "step.%" PRId64 ".et", rank);
        memcpy(name, t.at ? t.at : "", t.at ? t.length + 1 : 1);
        ft__text_free(&t);
        status = add_rank(&r, rank, err);
        ft__chakra_groups(p, rank, step > 1 ? rank : 0, &groups);
        if (status == FT_OK && !sink(user, name, r.file.text.at, r.file.text.length))
            status = ft__fail(err, FT_E_FILE, "cannot write %s", name);
        ft__text_free(&r.file.text);
    }
    ft__text_add(&groups, "\n");
    ft__json_close(&groups);
    ft__text_add(&groups, "\n");
    if (status == FT_OK && groups.failed) status = ft__fail(err, FT_E_MEMORY, "out of memory for a Chakra trace");
    if (status == FT_OK && !sink(user, "groups.json", groups.at, groups.length))
        status = ft__fail(err, FT_E_FILE, "cannot write groups.json");
    ft__text_free(&groups);
    return status;
}

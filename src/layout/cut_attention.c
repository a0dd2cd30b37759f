/* cut_attention.c: attention of one rank, and what context ranks send each other for it.
 *
 * Every rank holds two slices of each sequence, an early and a late one, so that causal work is even. Keys and values
 * come to the queries in one of three ways, or all of them change places:
 *
 *     ring     Keys and values travel while the ones that are there are used: in sum an all-gather; going back they
 *              travel again, with their gradients (Liu et al. 2023; Transformer Engine's p2p). Two parts are there at a
 *              time: the one in use and the one that comes. What the parts found is merged in the results' own format
 *              (AttnFuncWithCPAndKVP2P of its context_parallel.py, 2.x).
 *     gather   They are gathered first (Llama 3, Dubey et al. 2024, section 3.3.2; Transformer Engine's all_gather).
 *              Going back they are gathered again and their gradients scattered.
 *     pytorch  torch/distributed/tensor/experimental/_attention.py of PyTorch 2.6 to 2.11, as its options stand:
 *              rotate_method allgather, enable_load_balance, convert_to_f32. Keys and values are gathered at once, and
 *              used in cp steps all the same, each a kernel whose results are merged in fp32. Going back they are
 *              gathered again, and their gradients go round in fp32, cp times. They are those of all query heads:
 *              it takes no grouped ones, and models repeat theirs before (torchtitan's repeat_kv).
 *     ulysses  Tokens are traded for heads and back (Jacobs et al. 2023): the whole sequence, some of the heads. */
#include "graph/emit.h"
#include "layout/cutter.h"

const char *const ft__context_words[FT_CONTEXT_COUNT] = {"ring", "ulysses", "gather", "pytorch"};

const char *ft__context_name(ft_context_kind kind)
{
    return (unsigned)kind < FT_CONTEXT_COUNT ? ft__context_words[kind] : "?";
}

static ft_node *last_node(cutter *c) { return &c->g->nodes[c->g->node_count - 1]; }

/* The n-th operand, gathered. A rank keeps its own part: the rest is made again where it is read again. */
static void gather_operand(cutter *c, ft_node *n, int i, ft_exchange_kind gradient, double gradient_scale)
{
    share all = c->of[n->in[i]];
    all.rows *= (double)c->p->cp;
    exchanged how = {.at = n->at,
                     .axis = FT_AXIS_CONTEXT,
                     .kind = FT_EXCHANGE_ALL_GATHER,
                     .gradient = gradient,
                     .borrowed = true,
                     .gradient_scale = gradient_scale};
    n->in[i] = ft__cut_exchange(c, n->in[i], all, &how);
    if (c->status == FT_OK) cut_tensor(c, n->in[i])->rows = cut_tensor(c, last_node(c)->in[0])->rows;
}

/* What was gathered is there while attention runs. */
static void held_by(ft_node *n, ft_node *gathers)
{
    n->workspace += gathers->workspace;
    gathers->workspace = 0;
}

static void ring(cutter *c, ft_node *n)
{
    for (int i = 1; i < 3; i++) {
        gather_operand(c, n, i, FT_EXCHANGE_REDUCE_SCATTER, 2);
        if (c->status == FT_OK) last_node(c)->workspace *= (float)(2 / (double)c->p->cp);
    }
}

static void gather(cutter *c, ft_node *n)
{
    for (int i = 1; i < 3; i++) {
        gather_operand(c, n, i, FT_EXCHANGE_REDUCE_SCATTER, 2);
        if (c->status == FT_OK) held_by(n, last_node(c));
    }
}

static void pytorch(cutter *c, ft_node *n)
{
    double cp = (double)c->p->cp, fp32 = 4;
    int64_t heads = n->op.u.attention.heads, kv = n->op.u.attention.kv_heads;
    double repeats = kv > 0 && kv < heads ? (double)heads / (double)kv : 1;
    for (int i = 1; i < 3; i++) {
        gather_operand(c, n, i, FT_EXCHANGE_ALL_GATHER, 1);
        if (c->status != FT_OK) return;
        ft_node *gathers = last_node(c);
        gathers->exchange.bytes *= repeats;
        gathers->exchange.gradient_bytes *= repeats;
        gathers->workspace *= (float)repeats;
        held_by(n, gathers);
        double wider = fp32 / cut_tensor(c, n->in[i])->element_bytes;
        exchanged round = {.at = n->at,
                           .axis = FT_AXIS_CONTEXT,
                           .kind = FT_EXCHANGE_NONE,
                           .gradient = FT_EXCHANGE_SEND_RECV,
                           .gradient_scale = repeats * wider};
        n->in[i] = ft__cut_exchange(c, n->in[i], whole_share(), &round);
        if (c->status == FT_OK) last_node(c)->count = (float)cp;
    }
    n->op.u.attention.kv_heads = heads;
}

/* Of causal work half of the pairs, as a rectangle. */
static void rectangle(cutter *c, ft_node *n)
{
    n->op.u.attention.q_len = cut_divided(n->op.u.attention.q_len, (double)c->p->cp);
    if (!n->op.u.attention.causal) return;
    int64_t seen = (n->op.u.attention.kv_len + 1) / 2, window = n->op.u.attention.window;
    n->op.u.attention.causal = false;
    n->op.u.attention.kv_len = window > 0 && window < seen ? window : seen;
    n->op.u.attention.window = 0;
}

/* What a step found is merged into what is there. */
typedef struct merging {
    double launches, bytes; /* of a layer, all steps */
    double back;            /* bytes going back over these */
} merging;

/* PyTorch's: reads both, the latter in fp32, and writes that, in one kernel of a compiler's. Those of the gradients
 * take about twice that. */
static merging merges_of_pytorch(const cutter *c, ft_ref y)
{
    const ft_tensor *t = cut_tensor(c, y);
    double steps = (double)c->p->cp - 1, fp32 = 4;
    return (merging){
        .launches = steps, .bytes = steps * ft__tensor_numel(t) * (2 * fp32 + t->element_bytes), .back = 2};
}

/* Transformer Engine's: keys and values are copied into one buffer; the first result is scaled, each further one is
 * added to it, and their statistics are merged in small kernels (the rank whose queries are the last has all of them
 * whole, and the others wait for it). Going back the buffer is copied, and every step's three gradients are added to
 * what is there, the first copied. */
static merging merges_of_ring(const cutter *c, const ft_node *n, ft_ref y)
{
    double cp = (double)c->p->cp, queries = ft__tensor_bytes(cut_tensor(c, y)), copied = 2, added = 3;
    double keys = ft__tensor_bytes(cut_tensor(c, n->in[1])) + ft__tensor_bytes(cut_tensor(c, n->in[2]));
    double results = (copied + added * (cp - 1)) * queries, kept = copied * keys;
    return (merging){.launches = 2 * cp + 1,
                     .bytes = results + kept,
                     .back = 1 + (copied + added * (cp - 1)) * keys / (results + kept)};
}

static void merge_parts(cutter *c, ft_ref y, merging m)
{
    if (c->status != FT_OK) return;
    ft_tensor t = *cut_tensor(c, y);
    t.name = "";
    t.expert = FT_NO_EXPERT;
    ft_ref out = ft__graph_tensor(c->g, &t);
    if (out == FT_NONE) {
        c->status = ft__no_memory(c->err);
        return;
    }
    ft_node n = {.verb = FT_DO_OTHER, .at = FT_AT(ATTN_MERGE_PARTS), .traffic = 1, .effort = 1, .in_place = true};
    n.name = n.at->name;
    n.count = (float)m.launches;
    n.back = (float)m.back;
    n.op = ft__bytes_kernel("merge", t.dtype, m.bytes / m.launches, 6 * ft__tensor_numel(&t));
    n.in[n.in_count++] = y;
    n.out[n.out_count++] = out;
    ft__cut_emit(c, &n);
    c->alias[y] = out;
}

/* A serving engine's decoding over latents, which every rank holds all of. Context parallelism shares them out. */
static void latents(cutter *c, ft_node *n)
{
    share s = c->of[n->in[0]];
    double heads = s.split ? s.part : 1;
    n->op.u.mla.heads = ft__cut_part(n->op.u.mla.heads, heads);
    n->op.u.mla.kv_len = cut_divided(n->op.u.mla.kv_len, (double)c->p->cp);
    ft__cut_give(c, n->out[0],
                 (share){.rows = s.rows / heads, .cols = heads, .part = heads, .split = s.split, .in_cols = true});
    ft__cut_emit(c, n);
}

/* Keys and values of an earlier layer come from outside of this one: a rank has those of its own heads there, too. */
static void cut_shared_keys(cutter *c, const ft_node *n)
{
    const double part = ft__cut_kv_part(c);
    for (int i = 1; i < 3 && i < n->in_count; i++) {
        share s = c->of[n->in[i]];
        if (s.split) continue;
        s.cols *= part;
        s.part = part;
        s.split = s.in_cols = true;
        ft__cut_give(c, n->in[i], s);
    }
}

void ft__cut_attention(cutter *c, ft_node *n)
{
    if (n->op.kind == FT_OP_MLA) {
        latents(c, n);
        return;
    }
    share s = c->of[n->in[0]];
    double heads = s.split ? s.part : 1, cp = (double)c->p->cp;
    ft_context_kind kind = c->p->context;
    bool trade = cp > 1 && kind == FT_CONTEXT_ULYSSES;
    ft_ref y = n->out[0];
    n->op.u.attention.heads = ft__cut_part(n->op.u.attention.heads, heads);
    if (s.split) cut_shared_keys(c, n);
    if (s.split) n->op.u.attention.kv_heads = ft__cut_part(n->op.u.attention.kv_heads, c->of[n->in[1]].part);
    share o = {.rows = s.rows / heads, .cols = heads, .part = heads, .split = s.split, .in_cols = true};
    o.tokens = s.tokens;
    if (trade) {
        for (int i = 0; i < 3; i++) n->in[i] = ft__cut_trade(c, n->at, n->in[i], FT_AXIS_CONTEXT);
        n->op.u.attention.heads = cut_divided(n->op.u.attention.heads, cp);
        n->op.u.attention.kv_heads = cut_divided(n->op.u.attention.kv_heads, cp);
    } else if (cp > 1) {
        (kind == FT_CONTEXT_GATHER ? gather : kind == FT_CONTEXT_PYTORCH ? pytorch : ring)(c, n);
        rectangle(c, n);
    }
    ft__cut_give(c, y, o);
    for (int i = 1; i < n->out_count; i++)
        ft__cut_give(c, n->out[i], (share){.rows = heads, .cols = 1 / cp, .part = heads, .split = s.split});
    ft__cut_emit(c, n);
    if (trade) c->alias[y] = ft__cut_trade(c, n->at, y, FT_AXIS_CONTEXT);
    if (cp > 1 && kind == FT_CONTEXT_PYTORCH) merge_parts(c, y, merges_of_pytorch(c, y));
    if (cp > 1 && kind == FT_CONTEXT_RING) merge_parts(c, y, merges_of_ring(c, n, y));
}

/* kernels.c: what an engine launches for a layer, forecast kernel by kernel.
 *
 * Products take operands that the norm or activation before them has quantised; a pass is such a fused kernel. Key and
 * value heads are replicated where there are fewer than tensor ranks. Latent attention is absorbed: keys stay
 * compressed, queries and outputs go through batched products of the heads. */
#include "serving/kernels.h"

#include <math.h>

#include "comm/collective.h"
#include "graph/operator.h"
#include "kernel/energy.h"
#include "serving/states.h"
#include "serving/step_constants.h"
#include "study/step.h"
#include "timeline/memo.h"

ft_status ft__pricer_open(ft_pricer *p, ft_error *err)
{
    if (!p->scratch->memo) p->scratch->memo = ft__memo_new();
    if (!p->scratch->memo) return ft__no_memory(err);
    p->quantile = ft__context_quantile(p->ft);
    ft__memo_focus(p->scratch->memo, ft__context_predictor(p->ft), p->m->device, p->quantile);
    return FT_OK;
}

/* -- single kernels ---------------------------------------------------------------------------- */

ft_status ft__price_op(ft_pricer *p, const ft_op *op, ft_priced *sum, ft_error *err)
{
    const ft_forecast *f = NULL;
    FT_TRY(ft__memo_find(p->scratch->memo, ft__context_predictor(p->ft), p->m->device, op, p->quantile, &f, err));
    sum->ms += f->ms;
    sum->joules += ft__kernel_joules(p->m->device, op, f->flops, f->bytes, f->ms, f->launch_ms);
    p->ms += f->ms;
    p->low_ms += f->low_ms;
    p->high_ms += f->high_ms;
    if (f->source > p->source) p->source = f->source;
    return FT_OK;
}

static int64_t whole(double x) { return x < 1 ? 1 : (int64_t)ceil(x); }

/* y[m, n] = x[m, k] W; weights that are stored narrower are read as they are stored. */
static ft_status product_of(ft_pricer *p, double m, double n, double k, ft_dtype dtype, ft_storage storage,
                            ft_priced *sum, ft_error *err)
{
    ft_op op;
    ft__op_init("linear", &op);
    op.dtype = op.kv_dtype = dtype;
    op.u.gemm.m = whole(m), op.u.gemm.n = whole(n), op.u.gemm.k = whole(k);
    op.u.gemm.bias = false;
    op.u.gemm.quantized = ft_dtype_bytes(dtype) < 2;
    if (ft_dtype_bytes(dtype) >= 2) op.weights = storage;
    return ft__price_op(p, &op, sum, err);
}

/* A fused kernel that moves so many bytes once. */
void ft__price_pass(const ft_pricer *p, double times, double bytes, ft_priced *sum)
{
    const ft_device *d = p->m->device;
    ft_op op;
    ft__op_init("rmsnorm", &op);
    double launch = FT_K_STEP_PASS_US / 1e3, ms = launch + bytes / (FT_K_STEP_PASS_BANDWIDTH * d->memory_gbps * 1e6);
    sum->ms += times * ms;
    sum->joules += times * ft__kernel_joules(d, &op, 0, bytes, ms, launch);
}

/* Where weights have a scale for every block, so have activations: a kernel of its own reads them in 16 bits and writes
 * them in eight, since norms and activations do not know blocks. */
static ft_status scaled_product(ft_pricer *p, double m, double n, double k, ft_dtype dtype, ft_storage storage,
                                ft_priced *sum, ft_error *err)
{
    if (p->m->blocks && dtype == FT_FP8) ft__price_pass(p, 1, 3 * m * k, sum);
    return product_of(p, m, n, k, dtype, storage, sum, err);
}

ft_status ft__price_product(ft_pricer *p, double m, double n, double k, ft_dtype dtype, ft_priced *sum, ft_error *err)
{
    return scaled_product(p, m, n, k, dtype, p->m->storage, sum, err);
}

/* The router and the head stay in 16 bits. */
static ft_status wide_product(ft_pricer *p, double m, double n, double k, ft_priced *sum, ft_error *err)
{
    ft_dtype wide = p->m->device->peak_tflops[FT_BF16] > 0 ? FT_BF16 : FT_FP16;
    return product_of(p, m, n, k, wide, FT_STORED_AS_COMPUTED, sum, err);
}

static ft_status batched(ft_pricer *p, double b, double m, double n, double k, ft_priced *sum, ft_error *err)
{
    ft_op op;
    ft__op_init("bmm", &op);
    op.dtype = op.kv_dtype = p->m->device->peak_tflops[FT_BF16] > 0 ? FT_BF16 : FT_FP16;
    op.u.gemm.b = whole(b), op.u.gemm.m = whole(m), op.u.gemm.n = whole(n), op.u.gemm.k = whole(k);
    return ft__price_op(p, &op, sum, err);
}

static ft_status exchange_apart(ft_pricer *p, ft_collective kind, double bytes, int64_t ranks, int64_t stride,
                                ft_priced *sum, ft_error *err)
{
    ft_engine own = p->m->engine->library_sums ? FT_ENGINE_BARE : p->m->engine->kernels;
    ft_group group = {.size = ranks, .stride = stride, .engine = own, .in_step = true};
    ft_comm c;
    if (ranks < 2) return FT_OK;
    FT_TRY(ft__collective_forecast(ft__context_predictor(p->ft), p->m->device, &p->m->cluster, kind, fmax(bytes, 1),
                                   &group, p->quantile, &c, err));
    sum->ms += c.ms;
    sum->joules += ft__exchange_joules(p->m->device, c.ms);
    p->ms += c.ms;
    p->low_ms += c.low_ms;
    p->high_ms += c.high_ms;
    return FT_OK;
}

static ft_status exchange(ft_pricer *p, ft_collective kind, double bytes, int64_t ranks, ft_priced *sum, ft_error *err)
{
    return exchange_apart(p, kind, bytes, ranks, 1, sum, err);
}

/* -- parts of a layer -------------------------------------------------------------------------- */

static double cut(int64_t heads, int64_t ranks) { return fmax(1, ceil((double)heads / (double)ranks)); }

/* Adapters beside a product: down to their rank and up again, a kernel each for all of them (vLLM's punica kernels).
 * `parts`: of a fused product, each with an adapter. Every
 * adapter that some token has is read; what a product made is read and written again. */
static void adapt(const ft_pricer *p, double tokens, double in, double parts, double out, ft_priced *sum)
{
    const ft_served *m = p->m;
    if (m->adapters <= 0) return;
    double awake = m->adapters * (1 - pow(1 - 1 / m->adapters, tokens)), rank = m->adapter_rank;
    ft__price_pass(p, 1, 2 * (tokens * (in + parts * rank) + awake * parts * rank * in), sum);
    ft__price_pass(p, 1, 2 * (tokens * (parts * rank + 2 * out) + awake * rank * out), sum);
}

/* An indexer's own products (DeepSeek V3.2): queries of narrow heads, a key for all of them and the heads' weights,
 * whole on each rank (vLLM's and SGLang's Indexer: ReplicatedLinear); then rotation and what narrows both to 8 bits. */
static ft_status index_projections(ft_pricer *p, double tokens, ft_priced *sum, ft_error *err)
{
    const ft_served *m = p->m;
    const ft_arch *a = m->arch;
    const double wide = (double)a->index_heads * (double)a->index_dim, key = (double)a->index_dim;
    const double low = (double)(a->q_lora > 0 ? a->q_lora : a->hidden);
    FT_TRY(ft__price_product(p, tokens, wide, low, m->qkv_dtype, sum, err));
    FT_TRY(ft__price_product(p, tokens, key + (double)a->index_heads, (double)a->hidden, m->qkv_dtype, sum, err));
    ft__price_pass(p, 2, tokens * (2 + 1) * (wide + key), sum);
    return FT_OK;
}

static ft_status latent_projections(ft_pricer *p, double tokens, ft_priced *sum, ft_error *err)
{
    const ft_served *m = p->m;
    const ft_arch *a = m->arch;
    double heads = cut(a->heads, m->tp), hidden = (double)a->hidden,
           query = heads * (double)(a->nope_dim + a->rope_dim);
    double down = (double)(a->q_lora + a->kv_lora + a->rope_dim), latent = (double)a->kv_lora;
    FT_TRY(ft__price_product(p, tokens, a->q_lora > 0 ? down : down + query, hidden, m->qkv_dtype, sum, err));
    if (a->q_lora > 0) FT_TRY(ft__price_product(p, tokens, query, (double)a->q_lora, m->qkv_dtype, sum, err));
    if (a->index_topk > 0) FT_TRY(index_projections(p, tokens, sum, err));
    FT_TRY(batched(p, heads, tokens, latent, (double)a->nope_dim, sum, err));
    FT_TRY(batched(p, heads, tokens, (double)a->v_dim, latent, sum, err));
    FT_TRY(ft__price_product(p, tokens, hidden, heads * (double)a->v_dim, m->out_dtype, sum, err));
    adapt(p, tokens, hidden, 2, down, sum);
    adapt(p, tokens, heads * (double)a->v_dim, 1, hidden, sum);
    ft__price_pass(p, 3, 4 * tokens * hidden, sum);
    return FT_OK;
}

ft_status ft__price_projections(ft_pricer *p, double tokens, ft_priced *out, ft_error *err)
{
    const ft_served *m = p->m;
    const ft_arch *a = m->arch;
    double hidden = (double)a->hidden;
    ft_priced layer = {0};
    if (m->latent) {
        FT_TRY(latent_projections(p, tokens, &layer, err));
    } else {
        double heads = cut(a->heads, m->tp), keys = cut(a->kv_heads, m->tp), dim = (double)a->head_dim;
        FT_TRY(ft__price_product(p, tokens, (heads + 2 * keys) * dim, hidden, m->qkv_dtype, &layer, err));
        if (ft__narrows_attended(m)) ft__price_pass(p, 1, 3 * tokens * heads * dim, &layer);
        FT_TRY(ft__price_product(p, tokens, hidden, heads * dim, m->out_dtype, &layer, err));
        adapt(p, tokens, hidden, 3, (heads + 2 * keys) * dim, &layer);
        adapt(p, tokens, heads * dim, 1, hidden, &layer);
        ft__price_pass(p, ft__sums_norm(m) ? 1 : 2, 6 * tokens * hidden, &layer);
        if (ft__head_norms(m) > 0) ft__price_pass(p, ft__head_norms(m), 4 * tokens * (heads + keys) * dim, &layer);
    }
    FT_TRY(exchange(p, FT_COLLECTIVE_ALL_REDUCE, 2 * tokens * hidden, m->tp, &layer, err));
    *out = (ft_priced){layer.ms * m->attention_layers, layer.joules * m->attention_layers};
    if (m->states.layers <= 0) return FT_OK;
    ft_priced state = {0};
    FT_TRY(ft__price_state_products(p, tokens, &state, err));
    FT_TRY(exchange(p, FT_COLLECTIVE_ALL_REDUCE, 2 * tokens * hidden, m->tp, &state, err));
    out->ms += m->states.layers * state.ms;
    out->joules += m->states.layers * state.joules;
    return FT_OK;
}

static ft_status dense_mlp(ft_pricer *p, double tokens, double width, ft_priced *sum, ft_error *err)
{
    const ft_served *m = p->m;
    double hidden = (double)m->arch->hidden, inner = fmax(1, width / (double)(m->tp * m->dp));
    double into = (m->arch->gated ? 2 : 1) * inner;
    FT_TRY(scaled_product(p, tokens, into, hidden, m->mlp_dtype, m->mlp_storage, sum, err));
    FT_TRY(scaled_product(p, tokens, hidden, inner, m->mlp_dtype, m->mlp_storage, sum, err));
    adapt(p, tokens, hidden, m->arch->gated ? 2 : 1, into, sum);
    adapt(p, tokens, inner, 1, hidden, sum);
    ft__price_pass(p, 1, 5 * tokens * inner, sum);
    return FT_OK;
}

/* Experts of tp x dp ranks: their sums are added over all of them, or, where attention is data parallel and experts are
 * whole, tokens travel to their experts and back. */
static ft_status expert_mlp(ft_pricer *p, double tokens, ft_priced *sum, ft_error *err)
{
    const ft_served *m = p->m;
    const ft_arch *a = m->arch;
    double hidden = (double)a->hidden;
    FT_TRY(wide_product(p, tokens, (double)a->experts, hidden, sum, err));
    sum->ms += FT_K_STEP_ROUTER_US / 1e3;
    if (a->shared_ffn > 0) FT_TRY(dense_mlp(p, tokens, (double)a->shared_ffn, sum, err));
    FT_TRY(ft__price_experts(p, tokens, sum, err));
    if (m->dp < 2 || m->ep < 2)
        return exchange(p, FT_COLLECTIVE_ALL_REDUCE, 2 * tokens * hidden, m->tp * m->dp, sum, err);
    double sent = tokens / (double)m->dp * fmin((double)a->topk, (double)m->ep) * hidden;
    FT_TRY(exchange(p, FT_COLLECTIVE_ALL_TO_ALL, sent * ft_dtype_bytes(m->mlp_dtype), m->ep, sum, err));
    return exchange(p, FT_COLLECTIVE_ALL_TO_ALL, 2 * sent, m->ep, sum, err);
}

ft_status ft__price_mlp(ft_pricer *p, double tokens, ft_priced *out, ft_error *err)
{
    const ft_served *m = p->m;
    const ft_arch *a = m->arch;
    ft_priced dense = {0}, experts = {0};
    double reduced = 2 * tokens * (double)a->hidden;
    if (m->dense_layers > 0) {
        FT_TRY(dense_mlp(p, tokens, (double)a->ffn, &dense, err));
        FT_TRY(exchange(p, FT_COLLECTIVE_ALL_REDUCE, reduced, m->tp * m->dp, &dense, err));
    }
    if (m->expert_layers > 0) FT_TRY(expert_mlp(p, tokens, &experts, err));
    *out = (ft_priced){dense.ms * m->dense_layers + experts.ms * m->expert_layers,
                       dense.joules * m->dense_layers + experts.joules * m->expert_layers};
    return FT_OK;
}

ft_status ft__price_head(ft_pricer *p, double rows, ft_priced *out, ft_error *err)
{
    const ft_served *m = p->m;
    *out = (ft_priced){0};
    return wide_product(p, rows, (double)m->arch->vocab / (double)m->tp, (double)m->arch->hidden, out, err);
}

/* -- attention --------------------------------------------------------------------------------- */

/* An indexer (DeepSeek V3.2) scores every key by a few narrow heads, in eight bits and whole on each rank, and leaves a
 * query the best: a decoding sequence reads all narrow keys, a prompt multiplies by half of them. */
static ft_status pick_keys(ft_pricer *p, double batch, double queries, double keys, ft_priced *sum, ft_error *err)
{
    const ft_arch *a = p->m->arch;
    double dim = (double)a->index_dim, heads = (double)a->index_heads;
    if (queries > 1) FT_TRY(batched(p, batch, queries, keys / 2, heads * dim / 2, sum, err)); /* twice 16 bits' rate */
    ft__price_pass(p, 2, batch * (keys * (dim + 4) + 4 * queries * (queries > 1 ? keys / 2 : keys)), sum);
    return FT_OK;
}

static ft_status attend(ft_pricer *p, double batch, double queries, double keys, int64_t window, ft_priced *ms,
                        ft_error *err)
{
    const ft_served *m = p->m;
    const ft_arch *a = m->arch;
    ft_op op;
    ft__op_init(m->latent ? "mla" : "attention", &op);
    op.dtype = m->device->peak_tflops[FT_BF16] > 0 ? FT_BF16 : FT_FP16;
    op.kv_dtype = m->kv_dtype;
    op.engine = m->engine->kernels;
    if (m->latent) {
        bool picked = a->index_topk > 0 && keys > (double)a->index_topk;
        if (a->index_topk > 0) FT_TRY(pick_keys(p, batch, queries, keys, ms, err)); /* however few there are */
        if (picked) keys = (double)a->index_topk;
        op.u.mla.batch = whole(batch), op.u.mla.heads = (int64_t)cut(a->heads, m->tp);
        op.u.mla.q_len = whole(queries), op.u.mla.kv_len = whole(keys);
        op.u.mla.kv_lora = a->kv_lora, op.u.mla.rope_dim = a->rope_dim, op.u.mla.nope_dim = a->nope_dim;
        op.u.mla.v_dim = a->v_dim, op.u.mla.causal = queries > 1 && !picked;
    } else {
        double heads = cut(a->heads, m->tp), groups = cut(a->kv_heads, m->tp);
        op.u.attention.batch = whole(batch), op.u.attention.kv_heads = (int64_t)groups;
        op.u.attention.heads = (int64_t)(ceil(heads / groups) * groups);
        op.u.attention.q_len = whole(queries), op.u.attention.kv_len = whole(keys);
        op.u.attention.head_dim = op.u.attention.v_dim = a->head_dim;
        op.u.attention.window = window > 0 && (double)window < keys ? window : 0;
        op.u.attention.causal = queries > 1;
        if (queries <= 1 && op.u.attention.window > 0) { /* a decoding sequence reads its window alone */
            op.u.attention.kv_len = window;
            op.u.attention.window = 0;
        }
    }
    return m->latent ? ft__price_op(p, &op, ms, err) : ft__price_attention(p, &op, ms, err);
}

static ft_status both_kinds(ft_pricer *p, double batch, double queries, double keys, ft_priced *out, ft_error *err)
{
    const ft_served *m = p->m;
    ft_priced full = {0}, windowed = {0};
    if (m->full_layers > 0) FT_TRY(attend(p, batch, queries, keys, 0, &full, err));
    if (m->window_layers > 0) FT_TRY(attend(p, batch, queries, keys, m->arch->window, &windowed, err));
    *out = (ft_priced){full.ms * m->full_layers + windowed.ms * m->window_layers,
                       full.joules * m->full_layers + windowed.joules * m->window_layers};
    return FT_OK;
}

/* Bytes of a token that ranks of one sequence tell each other in a layer: heads' partial results with their weights, or
 * keys and values of a prompt. */
static double partial_bytes(const ft_served *m)
{
    const ft_arch *a = m->arch;
    double wide = m->latent ? (double)a->kv_lora : (double)a->head_dim;
    return 4 * cut(a->heads, m->tp) * (wide + 1);
}

static double key_bytes(const ft_served *m)
{
    const ft_arch *a = m->arch;
    double each = m->latent ? (double)(a->kv_lora + a->rope_dim) : 2 * cut(a->kv_heads, m->tp) * (double)a->head_dim;
    return each * ft_dtype_bytes(m->kv_dtype);
}

/* Ranks of one sequence have a part of its cache each: all attend, and what they found is brought together. */
ft_status ft__price_decode(ft_pricer *p, double sequences, double context, ft_priced *out, ft_error *err)
{
    const ft_served *m = p->m;
    double layers = m->full_layers + m->window_layers;
    ft_priced told = {0};
    FT_TRY(both_kinds(p, sequences, 1, fmax(1, context / fmax(1, (double)m->cp)), out, err));
    if (m->states.layers > 0) ft__price_state_update(p, sequences, out);
    if (m->cp < 2) return FT_OK;
    FT_TRY(exchange_apart(p, FT_COLLECTIVE_ALL_REDUCE, sequences * partial_bytes(m), m->cp, m->tp, &told, err));
    out->ms += layers * told.ms;
    out->joules += layers * told.joules;
    return FT_OK;
}

/* Short prompts run together: one's share of as many as fill a usual budget. Ranks of one sequence compute an even part
 * of its queries each (zigzag), on keys that they send around. */
ft_status ft__price_prompt(ft_pricer *p, double length, ft_priced *out, ft_error *err)
{
    const ft_served *m = p->m;
    double together = fmax(1, floor(FT_K_STEP_TOGETHER / length)), layers = m->full_layers + m->window_layers;
    double ranks = fmax(1, (double)m->cp);
    ft_priced sent = {0};
    FT_TRY(both_kinds(p, together, length, length, out, err));
    if (m->states.layers > 0) ft__price_scan(p, together * length, out);
    if (m->cp > 1)
        FT_TRY(exchange_apart(p, FT_COLLECTIVE_ALL_GATHER, together * length * key_bytes(m), m->cp, m->tp, &sent, err));
    out->ms = (out->ms / ranks + layers * sent.ms) / together;
    out->joules = (out->joules / ranks + layers * sent.joules) / together;
    return FT_OK;
}

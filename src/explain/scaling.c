/* scaling.c: the closed forms with the numbers put in.
 *
 * Data parallel and FSDP. A parameter needs 4 FLOPs per token going back (2 more where the forward pass runs again), 2
 * going forward. Its gradient of g bytes is reduced once, which for an all-reduce is g twice over the wire, for a
 * reduce-scatter once; FSDP gathers its p bytes forward and again back. Equal times:
 *     data parallel  t = C/W * 2g / 4       ZeRO-1  t = C/W * max(g/4, p/2)
 *     FSDP           t = C/W * max(p/2, (p + g)/4)
 * which with p = g = 2 is C/W each. t counts the tokens of one rank between two exchanges; a rank holds 1/(tp pp) of
 * the parameters and shares its tokens with as many GPUs, so that tokens per GPU are t / (tp pp). W falls with tp: a
 * group with fewer members in a domain has fewer of its NICs.
 *
 * Tensor parallel. An MLP of two matrices D x F computes 4BDF/Y FLOPs against 4BD bytes gathered and scattered:
 * Y < F W/C. Over several domains only what comes from outside one passes the NICs: Y - domain of Y parts.
 *
 * Experts. 4BkDF/Z FLOPs against 4BD(Z-d)/Z bytes that leave their domain of d GPUs, times min(dk/Z, 1): a token goes
 * to k experts, and so to at most k of the Z/d domains, once to each.
 *
 * Pipeline. A hop sends eBD/n bytes from each of a stage's n GPUs, which compute 2BP/(S n) FLOPs meanwhile.
 *
 * Leaves out: latency, what links and kernels really reach, attention's quadratic part, the exchanges that have nothing
 * to hide behind (the first gather, the last scatter). The timeline has them; docs/models/scaling.md sets both side by
 * side. */
#include "explain/scaling.h"

#include <math.h>
#include <string.h>

#include "ranks/ranks.h"

/* -- what joins the GPUs ----------------------------------------------------------------------- */

static void read_cluster(const ft_cluster *c, ft_scaling *s)
{
    const ft_tier *inside = NULL, *outside = NULL;
    for (int i = 0; i < c->tiers; i++)
        if (c->tier[i].fabric < FT_INFINIBAND)
            inside = &c->tier[i];
        else if (!outside || c->tier[i].gbps / c->tier[i].oversubscription < outside->gbps / outside->oversubscription)
            outside = &c->tier[i]; /* the narrowest network tier bounds whoever crosses them all */
    s->tensor.domain = inside ? inside->gpus : 1;
    s->nic_rate = outside ? outside->gbps * 1e9 / fmax(outside->oversubscription, 1) : 0;
    s->inside_rate = inside ? inside->gbps * 1e9 : s->nic_rate;
    s->outside_rate = outside ? fmin(s->nic_rate * (double)s->tensor.domain, s->inside_rate) : s->inside_rate;
    s->inside_name = inside ? inside->name : outside ? outside->name : "";
    s->outside_name = outside ? outside->name : s->inside_name;
    s->inside_reduces = inside && inside->reduces;
    s->outside_reduces = outside && outside->reduces;
}

double ft__scaling_rate(const ft_scaling *s, int64_t size, int64_t stride)
{
    double domain = (double)s->tensor.domain;
    bool crosses = s->nic_rate > 0 && (double)(size - 1) * (double)stride >= domain;
    if (!crosses) return s->inside_rate;
    double local = fmin(fmax(floor(domain / (double)stride), 1), (double)size);
    return local > 1 ? fmin(local * s->nic_rate, s->inside_rate) : s->nic_rate;
}

/* -- data -------------------------------------------------------------------------------------- */

/* Bytes of a parameter and of a gradient on the wire, as the stack sends them at that stage. */
static void sent_bytes(const ft_scaling_case *c, int zero, double *weight, double *gradient)
{
    ft_parallel p = *c->parallel;
    p.zero = zero;
    *weight = ft__ranks_gather_bytes(&p, c->work);
    *gradient = ft__ranks_reduce_bytes(&p, c->work);
}

static void data_forms(const ft_scaling_case *c, ft_scaling *s)
{
    ft_scaling_data *d = &s->data;
    const ft_parallel *p = c->parallel;
    d->inside = s->flops / s->inside_rate;
    d->outside = s->flops / s->outside_rate;
    d->reduced_inside = d->inside / 2;
    d->reduced_outside = d->outside / 2;
    d->sparsity = c->arch->experts > 0 && c->arch->topk > 0 ? (double)c->arch->experts / (double)c->arch->topk : 1;
    d->sparse_outside = d->outside * d->sparsity;
    d->whole_sparsity = c->active_parameters > 0 ? fmax(c->parameters / c->active_parameters, 1) : 1;

    double weight, gradient;
    double back = c->work->recompute == FT_RECOMPUTE_FULL ? 6 : 4;
    double rate = ft__scaling_rate(s, p->dp * p->cp, p->tp);
    double tokens = s->flops / rate * d->whole_sparsity / (double)(p->tp * p->pp);
    sent_bytes(c, 0, &weight, &gradient);
    d->ddp = tokens * 2 * gradient / back;
    sent_bytes(c, 1, &weight, &gradient);
    d->zero1 = tokens * fmax(gradient / back, weight / 2);
    sent_bytes(c, 3, &weight, &gradient);
    d->fsdp = tokens * fmax(weight / 2, (weight + gradient) / back);
}

/* -- tensor ------------------------------------------------------------------------------------ */

/* What stands for F where a whole layer is counted. An MLP of two matrices has 2F multiply-adds per token and unit of
 * width for one pair of exchanges; a layer has those of its MLP and of attention for two pairs, and going back twice
 * the arithmetic for as many pairs again: three parts of it for four. */
static double attention_width(const ft_arch *a)
{
    double d = (double)a->hidden, heads = (double)a->heads,
           kv_heads = (double)(a->kv_heads > 0 ? a->kv_heads : a->heads);
    double head = a->head_dim > 0 ? (double)a->head_dim : d / fmax(heads, 1);
    if (a->kv_lora < 1) return 2 * (heads + kv_heads) * head;
    /* Latent attention: down to the latents, up to the heads, and out (DeepSeek-AI 2024, "DeepSeek-V2", 2.1). */
    double q = (double)a->q_lora, kv = (double)a->kv_lora, rope = (double)a->rope_dim, v = (double)a->v_dim;
    double key = (double)a->nope_dim + rope;
    double queries = q > 0 ? q + q * heads * key / d : heads * key;
    return queries + kv + rope + kv * heads * ((double)a->nope_dim + v) / d + heads * v;
}

static double layer_width(const ft_arch *a, double ffn)
{
    return (attention_width(a) + ffn * (a->gated ? 3 : 2)) * 3 / 8;
}

static void tensor_forms(const ft_scaling_case *c, ft_scaling *s)
{
    ft_scaling_tensor *t = &s->tensor;
    const ft_arch *a = c->arch;
    t->ffn = a->experts > 0 ? s->ffn * (double)(a->topk > 0 ? a->topk : 1) + (double)a->shared_ffn : s->ffn;
    t->inside = t->ffn * s->inside_rate / s->flops;
    t->outside = (double)t->domain + t->ffn * s->outside_rate / s->flops;
    t->layer = layer_width(a, t->ffn) * s->inside_rate / s->flops;
    t->limit = s->nic_rate > 0 ? fmin((double)t->domain, t->inside) : t->inside;
}

double ft__scaling_tensor_ratio(const ft_scaling *s, int64_t y, bool layer)
{
    double limit = layer ? s->tensor.layer : s->tensor.inside, d = (double)s->tensor.domain;
    if (y < 2) return 0;
    double inside = (double)y / limit;
    if ((double)y <= d || !(s->nic_rate > 0)) return inside;
    return fmax(inside, ((double)y - d) / (limit * s->outside_rate / s->inside_rate));
}

/* -- experts and stages ------------------------------------------------------------------------ */

double ft__scaling_expert_ratio(const ft_scaling *s, const ft_arch *arch, int64_t z)
{
    double d = (double)s->tensor.domain, k = (double)(arch->topk > 0 ? arch->topk : 1), ways = (double)z;
    if (z < 2 || !(s->ffn > 0)) return 0;
    /* Within a domain every token leaves its GPU for k others, less its own: the links of one GPU carry that. */
    double inside = s->flops / (s->inside_rate * s->ffn) * (ways - 1) / ways;
    if (ways <= d || !(s->nic_rate > 0)) return inside;
    double outside = s->flops / (s->outside_rate * s->ffn * k) * (ways - d) * fmin(d * k / ways, 1);
    return fmax(inside, outside);
}

static void expert_forms(const ft_scaling_case *c, ft_scaling *s)
{
    ft_scaling_expert *e = &s->expert;
    double d = (double)s->tensor.domain, k = (double)(c->arch->topk > 0 ? c->arch->topk : 1);
    double alpha = s->flops / s->outside_rate;
    e->any = c->arch->experts > 0;
    if (!e->any) return;
    e->few = fmin(d + k * s->ffn / alpha, d * k);
    e->wide_ffn = d * alpha;
    e->wide = s->ffn > e->wide_ffn;
    e->wide_limit = e->wide ? INFINITY : d * d * alpha / (d * alpha - s->ffn);
}

static void pipeline_forms(const ft_scaling_case *c, ft_scaling *s)
{
    const ft_parallel *p = c->parallel;
    double stages = (double)p->pp, micros = (double)(c->work->accumulate > 0 ? c->work->accumulate : 1);
    double element = fmax(ft_dtype_bytes(c->work->dtype), 2);
    if (p->pp < 2) return;
    /* Every GPU sends through its own NIC where a neighbour stage sits in another domain. */
    bool crosses = s->nic_rate > 0 && p->pp * p->tp * p->cp * p->dp > s->tensor.domain;
    double rate = crosses ? s->nic_rate : s->inside_rate;
    /* Tensor ranks hold the same activations; with sequence parallel each sends its own part, else each sends all. */
    double sent = element * (double)c->arch->hidden / (p->sp ? (double)p->tp : 1);
    double computed = 2 * c->active_parameters / (stages * (double)p->tp);
    s->pipeline.hop = sent / rate / (computed / s->flops);
    s->pipeline.share = s->pipeline.hop * (micros + stages - 2) / micros;
    s->pipeline.bubble = (stages - 1) / micros;
}

ft_status ft__scaling_of(const ft_scaling_case *c, ft_scaling *out, ft_error *err)
{
    memset(out, 0, sizeof *out);
    const ft_arch *a = c->arch;
    if ((a->design != FT_DECODER_ONLY && a->design != FT_ENCODER_ONLY) || a->hidden < 1)
        return ft__fail_at(err, FT_E_UNSUPPORTED, "model", 0, 0,
                           "scaling rooflines are those of a stack of transformer layers; \"%s\" has none: try "
                           "llama-3-70b",
                           a->model_type);
    out->flops = c->device->peak_tflops[c->work->dtype] * 1e12;
    if (!(out->flops > 0))
        return ft__fail_at(err, FT_E_UNSUPPORTED, "dtype", 0, 0, "%s has no %s peak to compare its links with",
                           c->device->name, ft_dtype_name(c->work->dtype));
    read_cluster(c->cluster, out);
    if (!(out->inside_rate > 0))
        return ft__fail_at(err, FT_E_UNSUPPORTED, "cluster", 0, 0, "nothing connects the GPUs of this cluster");
    out->ffn = (double)(a->experts > 0 && a->moe_ffn > 0 ? a->moe_ffn : a->ffn > 0 ? a->ffn : 4 * a->hidden);
    data_forms(c, out);
    tensor_forms(c, out);
    expert_forms(c, out);
    pipeline_forms(c, out);
    return FT_OK;
}

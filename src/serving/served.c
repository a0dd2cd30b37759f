/* served.c: a model as an engine holds it: which part is in which format, how many layers of each kind, what a rank
 * keeps of the weights and of the cache. */
#include <math.h>

#include "serving/checkpoint.h"
#include "serving/states.h"

/* A format that the GPU has no arithmetic for is a format of weights: products run in 16 bits. */
static ft_dtype computed(const ft_device *d, ft_dtype asked)
{
    return d->peak_tflops[asked] > 0 ? asked : ft__served_wide(d);
}

ft_dtype ft__served_wide(const ft_device *d) { return d->peak_tflops[FT_BF16] > 0 ? FT_BF16 : FT_FP16; }

bool ft__experts_alone(const ft_arch *a)
{
    const ft_weight_format *of = a->formats.of;
    return a->experts > 0 && (a->sinks || (of[FT_OF_EXPERTS].given && !of[FT_OF_ATTENTION].given));
}

/* A format that is no format of arithmetic here: how its weights are stored. */
static ft_storage stored_as(ft_dtype dtype)
{
    return dtype == FT_FP4 ? FT_STORED_NVFP4 : dtype == FT_INT8 ? FT_STORED_INT8 : FT_STORED_FP8;
}

/* Checkpoints in mxfp4 quantise their experts alone (gpt-oss: modules_to_not_convert names the rest); nvfp4 checkpoints
 * of latent attention leave its projections in 16 bits but for the last (ModelOpt's exclude_modules), and their fp8 is
 * in blocks. */
static void settle_formats(ft_served *m)
{
    const ft_arch *a = m->arch;
    bool narrow = ft_dtype_bytes(m->dtype) < 1, experts_alone = narrow && ft__experts_alone(a);
    ft_dtype math = computed(m->device, m->dtype);
    m->storage = m->stored;
    if (math != m->dtype && m->storage == FT_STORED_AS_COMPUTED) m->storage = stored_as(m->dtype);
    m->mlp_storage = m->expert_storage = m->storage;
    m->expert_dtype = m->mlp_dtype = m->out_dtype = m->qkv_dtype = math;
    const ft_weight_format *experts = &a->formats.of[FT_OF_EXPERTS], *attention = &a->formats.of[FT_OF_ATTENTION];
    bool said = experts->stored == FT_STORED_FP8_BLOCK || attention->stored == FT_STORED_FP8_BLOCK;
    m->blocks = math == FT_FP8 && (m->latent || said || m->engine->fp8_blocks);
    if (m->blocks) m->expert_storage = FT_STORED_FP8_BLOCK;
    if (narrow && m->latent) m->qkv_dtype = ft__served_wide(m->device);
    if (!experts_alone) return;
    m->mlp_dtype = m->out_dtype = m->qkv_dtype = ft__served_wide(m->device);
    m->storage = m->mlp_storage = FT_STORED_AS_COMPUTED;
    m->expert_storage = FT_STORED_MXFP4;
    /* activations meet them in mxfp8 where the matrix units take both */
    m->expert_dtype = m->device->peak_tflops[FT_FP4] > 0 ? FT_FP8 : ft__served_wide(m->device);
}

/* Layers one by one. Those that keep a state are states.c's; nothing of theirs grows with the context. */
static void count_layers(ft_served *m)
{
    const ft_arch *a = m->arch;
    for (int64_t i = 0; i < a->layers && i < FT_MOST_PLANNED; i++) {
        const ft_layer_shape *l = &a->kinds[a->order[i]];
        bool attends = l->mixer == FT_MIX_ATTENTION || l->mixer == FT_MIX_LATENT || l->mixer == FT_MIX_COMPRESSED ||
                       l->mixer == FT_MIX_BOTH;
        int64_t window = l->window ? l->window : a->window;
        bool keeps = ft__state_layer_of(a, l->mixer, &m->states);
        m->layers += l->mixer != FT_MIX_NONE;
        m->attention_layers += l->mixer != FT_MIX_NONE && (!keeps || l->mixer == FT_MIX_BOTH);
        m->full_layers += attends && window <= 0;
        m->window_layers += attends && window > 0;
        if (attends && window > 0) m->window = (double)window;
        m->dense_layers += l->feed == FT_FEED_DENSE || l->feed == FT_FEED_BOTH;
        m->expert_layers += l->feed == FT_FEED_EXPERTS || l->feed == FT_FEED_BOTH;
    }
}

static void settle_layers(ft_served *m)
{
    const ft_arch *a = m->arch;
    double layers = (double)a->layers, every = (double)(a->moe_every > 1 ? a->moe_every : 1);
    m->latent = a->kv_lora > 0;
    if (a->kind_count > 0) {
        count_layers(m);
        return;
    }
    m->layers = m->attention_layers = layers;
    m->full_layers = layers;
    if (a->window > 0) m->full_layers = a->window_every > 0 ? floor(layers / (double)a->window_every) : 0;
    m->window_layers = layers - m->full_layers;
    m->window = (double)a->window;
    m->expert_layers = a->experts > 0 ? floor((layers - (double)a->first_dense) / every) : 0;
    m->dense_layers = layers - m->expert_layers;
}

static double share(double whole, int64_t ranks) { return ranks > 1 ? fmax(1, whole / (double)ranks) : whole; }

/* Parameters of one layer's attention on one rank, by the part whose format differs. */
static void attention_parameters(const ft_served *m, double *qkv, double *out)
{
    const ft_arch *a = m->arch;
    double hidden = (double)a->hidden, heads = share((double)a->heads, m->tp), dim = (double)a->head_dim;
    if (!m->latent) {
        *qkv = hidden * dim * (heads + 2 * share((double)a->kv_heads, m->tp));
        *out = hidden * dim * heads;
        return;
    }
    double query = (double)(a->nope_dim + a->rope_dim) * heads, latent = (double)(a->kv_lora + a->rope_dim);
    *qkv = hidden * latent + (a->q_lora > 0 ? (double)a->q_lora * (hidden + query) : hidden * query) +
           (double)a->kv_lora * heads * (double)(a->nope_dim + a->v_dim);
    *out = hidden * heads * (double)a->v_dim;
}

static double stored(ft_storage storage, ft_dtype dtype)
{
    static const double bytes[FT_STORAGE_COUNT] = {
#define X(code, name, each) [code] = each,
        FT_STORAGE_LIST(X)
#undef X
    };
    return storage != FT_STORED_AS_COMPUTED && bytes[storage] < ft_dtype_bytes(dtype) ? bytes[storage]
                                                                                      : ft_dtype_bytes(dtype);
}

/* One adapter of every product but experts, in 16 bits, all layers, on one rank. */
static double adapter_bytes(const ft_served *m)
{
    const ft_arch *a = m->arch;
    double hidden = (double)a->hidden, qkv, out, inner = share((double)a->ffn, m->tp * m->dp);
    attention_parameters(m, &qkv, &out);
    double attention = 4 * hidden + (qkv + out) / hidden, gates = a->gated ? 2 : 1;
    double dense = (gates + 1) * (hidden + inner);
    return 2 * m->adapter_rank * (m->layers * attention + m->dense_layers * dense);
}

static void settle_bytes(ft_served *m)
{
    const ft_arch *a = m->arch;
    double hidden = (double)a->hidden, gates = a->gated ? 3 : 2, qkv, out;
    int64_t ranks = m->tp * m->dp;
    attention_parameters(m, &qkv, &out);
    double dense = gates * hidden * share((double)a->ffn, ranks);
    double width = (double)(a->moe_ffn > 0 ? a->moe_ffn : a->ffn);
    double experts = 3 * hidden * width * (double)a->experts / (double)ranks;
    double shared = gates * hidden * share((double)a->shared_ffn, ranks);
    double words = a->tied || m->pp > 1 ? 1 : 2; /* of a pipeline the first stage has the table, the last the head */
    double tables = (double)a->vocab * hidden * words * ft_dtype_bytes(ft__served_wide(m->device)) / (double)m->tp;
    double back = hidden * m->states.out / (double)m->tp;
    qkv = m->attention_layers * qkv + m->states.layers * ft__state_parameters(m);
    out = m->attention_layers * out + m->states.layers * back;
    double bytes = qkv * stored(m->storage, m->qkv_dtype) + out * stored(m->storage, m->out_dtype) +
                   m->dense_layers * dense * stored(m->mlp_storage, m->mlp_dtype) +
                   m->expert_layers * (shared * stored(m->mlp_storage, m->mlp_dtype) +
                                       experts * stored(m->expert_storage, m->expert_dtype));
    if (m->adapters > 0) bytes += m->adapters * adapter_bytes(m);
    m->weights_bytes = bytes / (double)m->pp + tables;
    double each = m->latent ? (double)(a->kv_lora + a->rope_dim)
                            : 2 * (double)a->head_dim * share((double)a->kv_heads, m->tp);
    /* layers with a window keep their window of a request, and no more of a longer one */
    double length = fmax(m->length, 1), kept = m->length > 0 ? fmin(1, m->window / length) : m->full_layers <= 0;
    if (!m->engine->window_cache) kept = 1;
    double growing = m->full_layers + m->window_layers * kept;
    double narrow = m->latent && a->index_topk > 0 ? (double)a->index_dim + 4 : 0; /* an indexer's keys and scales */
    m->kv_bytes_per_token = growing * (each * ft_dtype_bytes(m->kv_dtype) + narrow) / (double)m->pp /
                            fmax(1, (double)m->cp);
    m->state_bytes = ft__state_bytes(m);
    double active = m->expert_layers * (3 * hidden * width * (double)a->topk + shared * (double)ranks);
    m->active_parameters = (qkv + out) * (double)m->tp + m->dense_layers * dense * (double)ranks + active +
                           (double)a->vocab * hidden;
}

int64_t ft__served_gpus(const ft_served *m) { return m->tp * m->dp * m->pp * (m->cp > 1 ? m->cp : 1); }

void ft__served_settle(ft_served *m)
{
    settle_layers(m);
    if (m->by_module)
        ft__checkpoint_settle(m);
    else
        settle_formats(m);
    settle_bytes(m);
}

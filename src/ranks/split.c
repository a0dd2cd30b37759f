/* split.c: a step of which the host does a part, as llama.cpp splits a model.
 *
 * `gpu_layers` N (-ngl): the last N - 1 layers and the head are the GPU's, the first ones the host's, with their cache
 * (src/llama-model.cpp: the head counts as a layer). `cpu_experts` N (--n-cpu-moe): the experts of the first N layers
 * are the host's, all else stays. The table of words is the host's in either case.
 *
 * Few tokens are computed where their weights lie: the host reads what it multiplies by once, at what its memory
 * reaches, one operator after the other, and the GPU waits:
 *   T = sum of bytes / (share * channels) + operators * us + crossings * us
 * From 32 tokens on weights are copied to the GPU instead and multiplied there (ggml-backend.cpp, op_offload): of
 * experts those that a token has chosen. Attention over a cache that lies on the host stays with the host.
 *
 * Leaves out: hosts whose memory is too small (mmap reads drives then), several sockets, cores that are too few to ask
 * for all that the memory gives. */
#include "ranks/split.h"

#include <math.h>

#include "memory/verdict.h"
#include "ranks/offload_constants.h"
#include "ranks/split_constants.h"

/* Of one block's iterations: how many are the host's, and of how many more the experts are. */
typedef struct part {
    double layers, experts;
} part;

typedef struct moved {
    double gpu_ms;    /* of kernels that the GPU does not run any more */
    double host_ms;   /* what the host takes for them */
    double copies_ms; /* weights that go over for many tokens */
    double copied_bytes, crossings;
    double weights_bytes, cache_bytes; /* that leave the GPU */
} moved;

static double within(double x, double most) { return fmin(fmax(x, 0), most); }

static double layers_of(const ft_graph *g)
{
    double layers = 0;
    for (int32_t b = 0; b < g->block_count; b++)
        if (g->blocks[b].kind == FT_BLOCK_LAYERS) layers += (double)g->blocks[b].repeat;
    return layers;
}

/* Iterations of the graph that so many layers are: models of several kinds of layers have some in one. */
static double iterations(const ft_graph *g, const ft_workload *w, double layers)
{
    return w->split_layers > 0 ? layers * layers_of(g) / (double)w->split_layers : layers;
}

/* The first layers are the host's, the head is the last to leave it. */
static part part_of(const ft_graph *g, const ft_workload *w, int32_t block)
{
    const ft_block *own = &g->blocks[block];
    double before = 0, host = w->splits_layers ? (double)(w->split_layers + 1 - w->gpu_layers) : 0;
    if (own->kind == FT_BLOCK_HEAD && w->splits_layers && w->gpu_layers < 1) return (part){.layers = 1};
    if (own->kind != FT_BLOCK_LAYERS) return (part){0};
    for (int32_t b = 0; b < block; b++)
        if (g->blocks[b].kind == FT_BLOCK_LAYERS) before += (double)g->blocks[b].repeat;
    part p = {.layers = within(iterations(g, w, host) - before, (double)own->repeat)};
    p.experts = within(iterations(g, w, (double)w->cpu_experts) - before - p.layers, (double)own->repeat - p.layers);
    return p;
}

static bool reads_experts(const ft_graph *g, const ft_node *n)
{
    for (int i = 0; i < n->in_count; i++)
        if (n->in[i] != FT_NONE && g->tensors[n->in[i]].expert == FT_EXPERT_WEIGHT) return true;
    return false;
}

static bool reads_weights(const ft_graph *g, const ft_node *n)
{
    for (int i = 0; i < n->in_count; i++)
        if (n->in[i] != FT_NONE && g->tensors[n->in[i]].role == FT_PARAMETER) return true;
    return false;
}

/* Bytes per ms that the host's cores get of its memory. Cards with plain GDDR sit in desktops, as offload.c has it. */
static double memory_of(const ft_workload *w, const ft_device *device)
{
    const bool desktop = !device->memory_is_hbm && !device->inline_ecc;
    const double usual = desktop ? FT_K_OFFLOAD_DESKTOP_GBPS : FT_K_OFFLOAD_CHANNELS_GBPS4 / 2;
    return (w->host_memory_gbps > 0 ? w->host_memory_gbps : usual) * FT_K_SPLIT_OF_MEMORY * 1e6;
}

static void move_kernels(const ft_graph *g, const ft_workload *w, const ft_device *device, const ft_step *s, moved *out)
{
    const double memory = memory_of(w, device),
                 tokens = (double)w->batch * (w->task == FT_PREFILL ? (double)w->seq : 1);
    const double link = (device->pcie_gbps > 0 ? device->pcie_gbps : FT_K_OFFLOAD_USUAL_GBPS) * FT_K_OFFLOAD_OF_LINK;
    const bool copies = tokens >= FT_K_SPLIT_COPIED_TOKENS;
    for (int32_t i = 0; i < s->kernel_count; i++) {
        const ft_timed *k = &s->kernels[i];
        const ft_node *n = &g->nodes[k->node];
        const part p = part_of(g, w, k->block);
        const bool expert = reads_experts(g, n) || n->verb == FT_DO_EXPERTS;
        const double repeat = fmax((double)g->blocks[k->block].repeat, 1);
        const double times = k->times * (p.layers + (expert ? p.experts : 0)) / repeat;
        if (!(times > 0)) continue;
        if (copies && reads_weights(g, n)) {
            out->copied_bytes += k->forecast.bytes * times;
            out->copies_ms += k->forecast.bytes * times / (link * 1e6);
            continue;
        }
        out->gpu_ms += k->forecast.ms * times;
        out->host_ms += times * (fmax(k->forecast.bytes / memory, k->forecast.flops / FT_K_SPLIT_HOST_GFLOPS * 1e-6) +
                                 FT_K_SPLIT_OPERATOR_US * 1e-3);
    }
}

/* Activations cross once where the host's layers end, and to every layer's experts and back. */
static void count(const ft_graph *g, const ft_workload *w, const ft_memory *m, moved *out)
{
    double layers = 0, host = 0;
    const double each = layers_of(g) > 0 ? (double)w->split_layers / layers_of(g) : 1;
    for (int32_t b = 0; b < g->block_count; b++) {
        const part p = part_of(g, w, b);
        if (g->blocks[b].kind == FT_BLOCK_LAYERS) layers += (double)g->blocks[b].repeat, host += p.layers;
        out->crossings += (p.layers > 0 ? 1 : 0) + 2 * p.experts * each;
    }
    if (layers > 0) out->cache_bytes = m->kv_cache_bytes * host / layers;
}

/* Every weight once, by the first node that reads it. */
static void move_weights(const ft_graph *g, const ft_workload *w, ft_arena *arena, moved *out)
{
    bool *seen = ft__arena_alloc(arena, sizeof *seen * (size_t)g->tensor_count);
    if (!seen) return;
    for (int32_t t = 0; t < g->tensor_count; t++) seen[t] = false;
    for (int32_t b = 0; b < g->block_count; b++) {
        const ft_block *block = &g->blocks[b];
        const part p = part_of(g, w, b);
        for (int32_t i = block->first; i < block->first + block->count; i++)
            for (int j = 0; j < g->nodes[i].in_count; j++) {
                const ft_ref r = g->nodes[i].in[j];
                if (r == FT_NONE || g->tensors[r].role != FT_PARAMETER || seen[g->tensors[r].storage]) continue;
                const ft_tensor *x = &g->tensors[g->tensors[r].storage];
                seen[g->tensors[r].storage] = true;
                const double each = ft__tensor_numel(x) * x->element_bytes;
                out->weights_bytes += each * (p.layers + (x->expert == FT_EXPERT_WEIGHT ? p.experts : 0));
            }
    }
}

static void apply_memory(const ft_workload *w, const moved *x, ft_memory *m)
{
    const double away = x->weights_bytes + x->cache_bytes;
    m->weights_bytes = fmax(m->weights_bytes - x->weights_bytes, 0);
    m->kv_cache_bytes = fmax(m->kv_cache_bytes - x->cache_bytes, 0);
    m->peak_bytes = fmax(m->peak_bytes - away, 1);
    m->reserved_bytes = fmax(m->reserved_bytes - away, m->peak_bytes);
    m->host_bytes += away;
    ft__judge(m, w);
}

static void apply_time(const moved *x, ft_step *s)
{
    const double added = x->host_ms + x->copies_ms + x->crossings * FT_K_SPLIT_CROSSING_US * 1e-3;
    const double was = s->step_ms, rest = fmax(was - x->gpu_ms, 0), wide = exp(FT_K_SPLIT_LOG_WIDTH);
    s->low_ms = s->low_ms * rest / was + added / wide;
    s->high_ms = s->high_ms * rest / was + added * wide;
    s->step_ms = rest + added;
    const double longer = s->step_ms / was;
    s->tokens_per_s /= longer;
    s->model_tflops /= longer;
    s->mfu /= longer;
    s->hfu /= longer;
    s->offload.exposed_ms += added;
    s->offload.copies_ms += x->copies_ms;
    s->offload.copied_bytes += x->copied_bytes;
}

void ft__split_apply(const ft_graph *g, const ft_workload *work, const ft_device *device, bool memory, ft_step *step)
{
    moved x = {0};
    if (!work->splits_layers && work->cpu_experts < 1) return;
    if (!ft__generates_tokens(work)) return;
    count(g, work, &step->memory, &x);
    move_weights(g, work, g->arena, &x);
    apply_memory(work, &x, &step->memory);
    if (memory || !(step->step_ms > 0)) return;
    move_kernels(g, work, device, step, &x);
    apply_time(&x, step);
}

/* Of a mixture as few experts as must leave, else of the layers as few. */
bool ft__split_fit(const ft_graph *g, const ft_workload *work, const ft_device *device, int64_t count, bool memory,
                   bool experts, const ft_step *asked, ft_workload *out, ft_step *fitted)
{
    const int64_t layers = count;
    if (work->splits_layers || work->cpu_experts > 0 || !ft__generates_tokens(work)) return false;
    for (int64_t away = 1; away <= layers; away++) {
        *out = *work;
        *fitted = *asked;
        out->splits_layers = !experts;
        out->split_layers = layers;
        out->gpu_layers = layers + 1 - away;
        out->cpu_experts = experts ? away : 0;
        ft__split_apply(g, out, device, memory, fitted);
        if (fitted->memory.verdict == FT_FIT_YES) return true;
    }
    return false;
}

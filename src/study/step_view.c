/* step_view.c: a step's kernels and layers, added up for people. */
#include "study/step_view.h"

#include <string.h>

#include "base/file.h"

/* -- kernels ----------------------------------------------------------------------------------- */

static uint64_t kernel_hash(const ft_node *n, int32_t block, const ft_forecast *f)
{
    uint64_t h = ft__hash(&f->ms, sizeof f->ms, (uint64_t)block * 4 + (uint64_t)n->phase);
    return ft__hash(n->name, n->name ? strlen(n->name) : 0, h);
}

static bool same_text(const char *a, const char *b) { return a == b || (a && b && !strcmp(a, b)); }

/* What computes the same, moves the same and takes the same under the same name is the same kernel; of products also
 * the sides, as a gradient's may have them in another order. */
static bool same_kernel(const ft_merged *m, const ft_node *n, const ft_block *block, const ft_forecast *f)
{
    const ft_op *a = &m->node->op, *b = &n->op;
    if (m->block != block || m->node->phase != n->phase || !same_text(m->node->name, n->name)) return false;
    if (a->kind != b->kind || a->dtype != b->dtype || a->pass != b->pass || !same_text(a->name, b->name)) return false;
    if (m->forecast->ms != f->ms || m->forecast->flops != f->flops || m->forecast->bytes != f->bytes) return false;
    return a->kind != FT_OP_GEMM || (a->u.gemm.m == b->u.gemm.m && a->u.gemm.n == b->u.gemm.n &&
                                     a->u.gemm.k == b->u.gemm.k && !strcmp(a->u.gemm.layout, b->u.gemm.layout));
}

ft_merged *ft__merge_kernels(const ft_step_view *v, size_t *count)
{
    const ft_step *s = v->step;
    size_t room = 64, kernels = s->kernel_count > 0 ? (size_t)s->kernel_count : 0;
    while (room < 2 * kernels) room *= 2;
    ft_merged *merged = ft__arena_array(v->arena, kernels + 1, sizeof *merged);
    int32_t *slots = ft__arena_array(v->arena, room, sizeof *slots); /* number + 1; 0 is free */
    *count = 0;
    if (!merged || !slots) return NULL;
    for (size_t i = 0; i < kernels; i++) {
        const ft_timed *k = &s->kernels[i];
        const ft_node *n = &v->graph->nodes[k->node];
        const ft_block *block = &v->graph->blocks[k->block];
        size_t at = kernel_hash(n, k->block, &k->forecast) & (room - 1);
        while (slots[at] && !same_kernel(&merged[slots[at] - 1], n, block, &k->forecast)) at = (at + 1) & (room - 1);
        if (!slots[at]) {
            merged[*count] = (ft_merged){.node = n, .block = block, .forecast = &k->forecast};
            slots[at] = (int32_t)++ * count;
        }
        ft_merged *m = &merged[slots[at] - 1];
        m->count += k->times;
        m->total_ms += k->times * k->forecast.ms;
    }
    return merged;
}

/* -- layers ------------------------------------------------------------------------------------ */

/* Forward block of a block: itself, or the one that a backward block undoes; -1 for the update. */
static int32_t home_of(const ft_graph *g, int32_t block)
{
    const ft_block *b = &g->blocks[block];
    if (b->phase == FT_UPDATE) return -1;
    return b->mirror >= 0 ? b->mirror : block;
}

/* A parameter belongs to the first block that reads it; a saved activation to the block that made it. */
static void count_tensors(const ft_graph *g, bool *seen, const int32_t *row, ft_layer *layers)
{
    for (int32_t b = 0; b < g->block_count; b++) {
        const ft_block *block = &g->blocks[b];
        if (block->phase == FT_UPDATE) continue;
        for (int32_t i = block->first; i < block->first + block->count; i++) {
            const ft_node *n = &g->nodes[i];
            for (int k = 0; k < n->in_count; k++) {
                ft_ref r = n->in[k];
                if (r == FT_NONE) continue;
                const ft_tensor *t = &g->tensors[r];
                if (t->storage >= 0 && t->storage != r) t = &g->tensors[r = t->storage];
                bool parameter = t->role == FT_PARAMETER;
                bool saved = t->role == FT_ACTIVATION && n->phase != FT_FORWARD && t->block >= 0 &&
                             g->blocks[t->block].phase == FT_FORWARD;
                if (seen[r] || (!parameter && !saved)) continue;
                seen[r] = true;
                int32_t home = row[home_of(g, parameter ? b : t->block)];
                if (parameter)
                    layers[home].parameters += ft__tensor_numel(t) * (double)(t->copies > 0 ? t->copies : 1);
                else
                    layers[home].saved_bytes += ft__tensor_bytes(t) * (double)g->blocks[t->block].repeat;
            }
        }
    }
}

ft_layer *ft__layers(const ft_step_view *v, size_t *count)
{
    const ft_graph *g = v->graph;
    size_t blocks = g->block_count > 0 ? (size_t)g->block_count : 0;
    ft_layer *layers = ft__arena_array(v->arena, blocks + 2, sizeof *layers);
    int32_t *row = ft__arena_array(v->arena, blocks + 1, sizeof *row);
    bool *seen = ft__arena_array(v->arena, (size_t)g->tensor_count + 1, sizeof *seen);
    *count = 0;
    if (!layers || !row || !seen) return NULL;
    bool updates = false;
    for (size_t b = 0; b < blocks; b++) {
        if (home_of(g, (int32_t)b) != (int32_t)b) {
            updates = updates || g->blocks[b].phase == FT_UPDATE;
            continue;
        }
        row[b] = (int32_t)*count;
        layers[(*count)++] = (ft_layer){.name = g->blocks[b].name, .repeat = (double)g->blocks[b].repeat};
    }
    ft_layer *update = &layers[*count];
    if (updates) {
        *update = (ft_layer){.name = "update", .repeat = 1};
        ++*count;
    }
    for (int32_t i = 0; i < v->step->kernel_count; i++) {
        const ft_timed *k = &v->step->kernels[i];
        int32_t home = home_of(g, k->block);
        ft_phase phase = g->nodes[k->node].phase;
        ft_layer *l = home < 0 ? update : &layers[row[home]];
        double ms = k->times * k->forecast.ms;
        l->flops += k->times * k->forecast.flops;
        if (phase == FT_RECOMPUTE)
            l->recompute_ms += ms;
        else if (phase == FT_BACKWARD)
            l->backward_ms += ms;
        else
            l->forward_ms += ms;
    }
    count_tensors(g, seen, row, layers);
    double known = 0;
    for (size_t i = 0; i < *count; i++) known += layers[i].parameters;
    if (g->parameters - known > 0.5) /* that this task never reads: an encoder's, when decoding */
        layers[(*count)++] = (ft_layer){.name = "unread", .repeat = 1, .parameters = g->parameters - known};
    return layers;
}

ft_energy ft__view_energy(const ft_step_view *v)
{
    if (v->memory_only || !v->graph) return (ft_energy){0};
    return ft__step_energy(v->graph, v->step, v->device, v->quantile);
}

bool ft__view_attends(const ft_step_view *v)
{
    if (!v->arch || !v->graph || v->arch->design != FT_CUSTOM)
        return !v->arch ||
               (v->arch->design != FT_RESNET && v->arch->design != FT_CONVNEXT && v->arch->design != FT_STATE_SPACE);
    if (v->work->attention == FT_EAGER) return true; /* written out: nothing tells it from other products */
    for (int32_t i = 0; i < v->graph->node_count; i++)
        if (v->graph->nodes[i].verb == FT_DO_ATTENTION) return true;
    return false;
}

/* chunks.c: a stage's chunks where they differ: the first one of all holds the embedding and perhaps a layer
 * less, the last one the head and its logits, and a model may have layers of several kinds. */
#include <math.h>

#include "ranks/ranks.h"

static ft_status by_chunk(const ft_ranks *r, int64_t chunks, double **out, ft_error *err)
{
    *out = ft__arena_array(r->arena, (size_t)chunks, sizeof **out);
    return *out ? FT_OK : ft__fail(err, FT_E_MEMORY, "out of memory for a pipeline");
}

/* `whole` over the chunks as what is counted by block is; in equal parts where nothing is. */
static void divide(const ft_stage *s, ft_phase phase, const double *of_block, double whole, double *out)
{
    double sum = 0;
    for (int64_t c = 0; c < s->chunks.count; c++) {
        out[c] = 0;
        for (int32_t b = 0; b < s->g->block_count; b++)
            if (s->g->blocks[b].phase == phase) out[c] += ft__chunk_part(&s->chunks, s->g, c, b) * of_block[b];
        sum += out[c];
    }
    for (int64_t c = 0; c < s->chunks.count; c++)
        out[c] = sum > 0 ? out[c] * (whole / sum) : whole / (double)s->chunks.count;
}

ft_status ft__ranks_chunk_times(const ft_ranks *r, const double *spent, ft_stage *s, ft_error *err)
{
    FT_TRY(by_chunk(r, s->chunks.count, &s->chunk_forward_ms, err));
    FT_TRY(by_chunk(r, s->chunks.count, &s->chunk_backward_ms, err));
    divide(s, FT_FORWARD, spent, s->forward_ms, s->chunk_forward_ms);
    divide(s, FT_BACKWARD, spent, s->backward_ms, s->chunk_backward_ms);
    return FT_OK;
}

/* Bytes that each forward block makes and a backward block reads; what is only looked at again (a view) is its
 * storage. */
static ft_status saved_by_block(const ft_graph *g, ft_arena *arena, double **out, ft_error *err)
{
    bool *seen = ft__arena_array(arena, (size_t)g->tensor_count + 1, sizeof *seen);
    *out = ft__arena_array(arena, (size_t)g->block_count + 1, sizeof **out);
    if (!seen || !*out) return ft__fail(err, FT_E_MEMORY, "out of memory for a pipeline");
    for (int32_t b = 0; b < g->block_count; b++) {
        if (g->blocks[b].phase != FT_BACKWARD) continue;
        for (int32_t i = g->blocks[b].first; i < g->blocks[b].first + g->blocks[b].count; i++)
            for (int k = 0; k < g->nodes[i].in_count; k++) {
                ft_ref x = g->nodes[i].in[k];
                if (x < 0) continue;
                if (g->tensors[x].storage >= 0) x = g->tensors[x].storage;
                const ft_tensor *t = &g->tensors[x];
                bool kept = t->role == FT_ACTIVATION && t->block >= 0 && g->blocks[t->block].phase == FT_FORWARD;
                if (seen[x] || !kept) continue;
                seen[x] = true;
                (*out)[t->block] += ft__tensor_bytes(t) * (double)g->blocks[t->block].repeat;
            }
    }
    return FT_OK;
}

/* Elements of each forward block's trained parameters. */
static ft_status trained_by_block(const ft_graph *g, ft_arena *arena, double **out, ft_error *err)
{
    *out = ft__arena_array(arena, (size_t)g->block_count + 1, sizeof **out);
    if (!*out) return ft__fail(err, FT_E_MEMORY, "out of memory for a pipeline");
    for (ft_ref i = 0; i < g->tensor_count; i++) {
        const ft_tensor *t = &g->tensors[i];
        if (t->role == FT_PARAMETER && t->trained && t->storage == i && t->block >= 0)
            (*out)[t->block] += ft__tensor_numel(t) * (double)t->copies;
    }
    return FT_OK;
}

/* What a stage hands on: its last layer's result; the head's is the loss. */
static double boundary_bytes(const ft_graph *g)
{
    double bytes = 0;
    for (int32_t b = 0; b < g->block_count; b++) {
        const ft_block *block = &g->blocks[b];
        bool head = block->kind == FT_BLOCK_HEAD;
        if (block->phase == FT_FORWARD && block->carry_out != FT_NONE && !(head && bytes > 0))
            bytes = ft__tensor_bytes(&g->tensors[block->carry_out]);
    }
    return bytes;
}

ft_status ft__ranks_chunk_parts(const ft_ranks *r, int64_t index, ft_stage *s, ft_error *err)
{
    double *saved = NULL, *trained = NULL;
    s->boundary_bytes = boundary_bytes(s->g);
    s->receives = s->chunks.count - (index == 0);
    s->hands_on = s->chunks.count - (index == ft__parallel_end(r->parallel));
    s->open_gradients = 1;
    FT_TRY(by_chunk(r, s->chunks.count, &s->chunk_saved, err));
    FT_TRY(by_chunk(r, s->chunks.count, &s->chunk_trained, err));
    s->chunk_saved[0] = s->chunk_trained[0] = 1;
    if (s->chunks.count < 2) return FT_OK;
    FT_TRY(saved_by_block(s->g, r->arena, &saved, err));
    divide(s, FT_FORWARD, saved, 1, s->chunk_saved);
    FT_TRY(trained_by_block(s->g, r->arena, &trained, err));
    divide(s, FT_FORWARD, trained, 1, s->chunk_trained);
    return FT_OK;
}

ft_status ft__ranks_open_gradients(const ft_ranks *r, const ft_piped *pipe, int64_t stage, ft_stage *of, ft_error *err)
{
    const int64_t chunks = of->chunks.count;
    const ft_pipe_op *ops = pipe->ops[stage];
    of->open_gradients = 1;
    if (ft__parallel_chunks(r->parallel) < 2 || chunks < 2) return FT_OK;
    int32_t *first = ft__arena_array(r->arena, (size_t)chunks, sizeof *first);
    int32_t *last = ft__arena_array(r->arena, (size_t)chunks, sizeof *last);
    if (!first || !last) return ft__fail(err, FT_E_MEMORY, "out of memory for a pipeline");
    for (int64_t c = 0; c < chunks; c++) first[c] = last[c] = -1;
    for (int32_t i = 0; i < pipe->op_count[stage]; i++) {
        if (ops[i].kind == FT_PIPE_FORWARD || ops[i].chunk >= chunks) continue;
        if (first[ops[i].chunk] < 0) first[ops[i].chunk] = i;
        last[ops[i].chunk] = i;
    }
    double most = 0;
    for (int64_t c = 0; c < chunks; c++) { /* it is most when one of them begins */
        double open = 0;
        for (int64_t d = 0; d < chunks; d++)
            if (first[d] <= first[c] && last[d] >= first[c]) open += of->chunk_trained[d];
        most = fmax(most, open);
    }
    of->open_gradients = most;
    return FT_OK;
}

double ft__ranks_held(const ft_parallel *p, const ft_piped *pipe, int64_t stage, const ft_stage *of)
{
    if (ft__parallel_chunks(p) < 2) return pipe->in_flight[stage];
    return ft__pipeline_alive(pipe->ops[stage], pipe->op_count[stage], of->chunk_saved);
}

ft_status ft__ranks_layer_parts(const ft_ranks *r, double **out, ft_error *err)
{
    const ft_parallel *p = r->parallel;
    int64_t chunks = ft__parallel_chunks(p), places = p->pp * chunks, from, to;
    *out = NULL;
    if (chunks < 2) return FT_OK;
    *out = ft__arena_array(r->arena, (size_t)places, sizeof **out);
    if (!*out) return ft__fail(err, FT_E_MEMORY, "out of memory for a pipeline");
    for (int64_t s = 0; s < p->pp; s++) {
        double all = 0;
        for (int64_t c = 0; c < chunks; c++) {
            const int64_t place = ft__schedule_place(p->schedule, p->pp, s, c);
            ft__layout_range(r->arch->layers, places, p->rest, place, &from, &to);
            all += (double)(to - from);
            (*out)[place] = (double)(to - from);
        }
        for (int64_t c = 0; c < chunks; c++) (*out)[ft__schedule_place(p->schedule, p->pp, s, c)] /= fmax(all, 1);
    }
    return FT_OK;
}

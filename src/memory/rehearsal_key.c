/* rehearsal_key.c: everything that a rehearsal looks at, as two sums.
 *
 * A rehearsal takes longer than the rest of a forecast whose kernels are known. What it reads is hashed in the order in
 * which it reads it: sizes, lives and places of tensors, workspaces, states; nothing of the request's names. Two sums
 * of 64 bits are the key: one alone would meet another's by chance once in a long life. */
#include <string.h>

#include "memory/rehearse.h"
#include "timeline/states.h"

/* Two chains of one multiplication each: the processor runs them side by side. */
static inline void mix(uint64_t key[2], uint64_t word)
{
    key[0] = (key[0] ^ word) * UINT64_C(0x9E3779B97F4A7C15);
    key[0] ^= key[0] >> 29;
    key[1] = (key[1] ^ word) * UINT64_C(0xD6E8FEB86659FD93);
    key[1] ^= key[1] >> 32;
}

static inline void mix_double(uint64_t key[2], double x)
{
    uint64_t word;
    memcpy(&word, &x, sizeof word);
    mix(key, word);
}

static inline void mix_two(uint64_t key[2], int32_t a, int32_t b)
{
    mix(key, (uint64_t)(uint32_t)a << 32 | (uint32_t)b);
}

static void mix_states(uint64_t key[2], const ft_sweep *s, const ft_kept *k, const ft_tensor *t)
{
    double parts[FT_STATE_PARTS] = {0};
    const int count = ft__optimizer_states(s->work, t, parts);
    for (int p = 0; p < count; p++) mix_double(key, parts[p]);
    mix_two(key, count, s->work->master_weights && t->element_bytes < 4);
    mix_double(key, ft__tensor_held(t));
    mix_double(key, s->share->optimizer[ft__is_expert(t)]);
    if (k->kept_gradients) mix_double(key, ft__waiting_gradient(s->work, s->share, t));
}

static void mix_tensor(uint64_t key[2], const ft_sweep *s, const ft_kept *k, ft_ref i)
{
    const ft_tensor *t = &s->g->tensors[i];
    const double kept = ft__kept_bytes(s->g, s->share, &s->lives, k, i);
    const bool trained = s->lives.root[i] == i && t->role == FT_PARAMETER && t->trained;
    if (kept <= 0 && !trained) return;
    mix_two(key, i, trained);
    mix_double(key, kept);
    mix(key, (uint64_t)ft__kept_copies(t, s->share, k));
    if (!trained) return;
    mix(key, (uint64_t)t->copies);
    if (s->work->task == FT_TRAIN) mix_states(key, s, k, t);
}

/* Of what goes also whether the block that made it is another one: then the youngest does. */
static void mix_node(uint64_t key[2], const ft_sweep *s, const ft_block *block, int32_t n)
{
    const ft_node *node = &s->g->nodes[n];
    mix_two(key, (int32_t)node->verb, (int32_t)node->phase);
    mix_double(key, s->workspace[n]);
    mix_two(key, s->going[n] - s->made[n], s->made[n + 1] - s->going[n]);
    for (int32_t m = s->made[n]; m < s->made[n + 1]; m++) {
        const ft_move *one = &s->moves[m];
        const int32_t birth = s->lives.birth[one->tensor];
        const bool here = birth >= block->first && birth < block->first + block->count;
        mix_two(key, one->tensor, one->when | one->pooled << 8 | one->added << 9 | here << 10);
        mix_double(key, one->bytes);
    }
}

void ft__rehearsal_key(const ft_sweep *s, const ft_kept *k, double update, double handle, bool expandable,
                       uint64_t key[2])
{
    const ft_graph *g = s->g;
    key[0] = key[1] = UINT64_C(0x2545F4914F6CDD1D);
    mix_double(key, update);
    mix_double(key, handle);
    mix_double(key, k->trained);
    mix_double(key, s->share->flat_bucket_bytes);
    mix_double(key, s->share->update_elements);
    mix_double(key, k->main_elements);
    mix_double(key, k->widest ? ft__tensor_numel(k->widest) : 0);
    mix_two(key, (int32_t)s->work->task, ft__updates_on_host(s->work));
    mix_two(key, expandable, s->kept_gradients + 2 * k->kept_gradients);
    mix_two(key, g->block_count, g->tensor_count);
    mix_two(key, s->share->flat_third, 0);
    for (int32_t b = 0; b < g->block_count; b++) {
        mix_two(key, g->blocks[b].first, g->blocks[b].count);
        mix(key, (uint64_t)g->blocks[b].repeat);
        for (int32_t n = 0; n < g->blocks[b].count; n++) mix_node(key, s, &g->blocks[b], g->blocks[b].first + n);
    }
    for (ft_ref i = 0; i < g->tensor_count; i++) mix_tensor(key, s, k, i);
}

/* deal.c: which layers each chunk of each pipeline stage gets.
 *
 * The model stands in a row of places: chunk c of stage s is place c * stages + s, of a V the second chunks run back.
 * Where the places do not divide the
 * layers, embedding and loss count as a layer each (Megatron-LM's --account-for-embedding-in-pipeline-split and
 * --account-for-loss-in-pipeline-split, transformer_block.py's get_num_layers_to_build; torchtitan's
 * generate_llm_fqn_per_model_part with input_weight 1 and output_weight 1): 126 layers are 128 slots, so that 16 stages
 * of 8 chunks have one slot each, the first of them the embedding's, the last one the loss'. Or the loss alone counts.
 * What divides in none of these ways is dealt out one layer more from the front, which a stage of one chunk may be, or,
 * where that is said, so that the last chunk takes what remains: DeepSeek-V3's 61 layers over 16 places are fifteen
 * times 4 and 1, with the head (Megatron-Bridge, set_deepseek_v3_pipeline_model_parallel_layout). */
#include "layout/layout.h"

int64_t ft__parallel_chunks(const ft_parallel *p)
{
    if (p->pp > 1 && ft__schedule_folds(p->schedule)) return 2;
    return p->pp > 1 && p->schedule == FT_INTERLEAVED && p->vpp > 1 ? p->vpp : 1;
}

static int64_t most_of(int64_t layers, int64_t places) { return (layers + places - 1) / (places > 0 ? places : 1); }

ft_deal ft__layout_deal(int64_t layers, int64_t places, bool rest)
{
    if (places < 2 || layers % places == 0) return FT_DEAL_EVEN;
    if ((layers + 2) % places == 0) return FT_DEAL_ENDS;
    if ((layers + 1) % places == 0) return FT_DEAL_LOSS;
    return rest && (places - 1) * most_of(layers, places) < layers ? FT_DEAL_REST : FT_DEAL_FRONT;
}

static int64_t within(int64_t x, int64_t most) { return x < 0 ? 0 : x > most ? most : x; }

void ft__layout_range(int64_t layers, int64_t places, bool rest, int64_t place, int64_t *from, int64_t *to)
{
    ft_deal deal = ft__layout_deal(layers, places, rest);
    if (deal == FT_DEAL_REST) {
        int64_t most = most_of(layers, places);
        *from = place * most;
        *to = place + 1 < places ? *from + most : layers;
        return;
    }
    if (deal == FT_DEAL_FRONT) {
        int64_t each = layers / places, more = layers % places;
        *from = place * each + (place < more ? place : more);
        *to = *from + each + (place < more ? 1 : 0);
        return;
    }
    int64_t before = deal == FT_DEAL_ENDS, after = deal != FT_DEAL_EVEN;
    int64_t each = (layers + before + after) / (places > 0 ? places : 1);
    *from = within(place * each - before, layers);
    *to = within((place + 1) * each - before, layers);
}

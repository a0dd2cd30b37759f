/* states.c: layers that keep a state instead of a cache: the gated delta rule, both Mambas, linear attention with a
 * decay, gated recurrences, short convolutions.
 *
 * A product in, a short convolution, the recurrence, a gated norm and a product out. A decoding sequence reads and
 * writes its state once a step, whatever its length; of a prompt the recurrence runs in chunks, and its kernels are
 * bound by what they move. Convolutions and norms are passes as everywhere. Shapes are those of src/model/delta.c,
 * state_space.c, mamba.c, lightning.c and recurrent.c. */
#include "serving/states.h"

#include "serving/kernels.h"

static const double cell_bytes = 4,
                    tail_bytes = 2; /* engines keep states in fp32, inputs of convolutions as they are */

/* The last kind of state layer that a model has stands for all. */
bool ft__state_layer_of(const ft_arch *a, ft_mixer mixer, ft_state_layer *out)
{
    double layers = out->layers + 1, groups = (double)(a->groups > 0 ? a->groups : 1), state = (double)a->state;
    if (mixer == FT_MIX_DELTA) {
        double keys = (double)(a->delta_key_heads * a->delta_key_dim), heads = (double)a->delta_value_heads;
        double key = (double)a->delta_key_dim, value = (double)a->delta_value_dim, values = heads * value;
        *out = (ft_state_layer){.in = 2 * keys + 2 * values + 2 * heads,
                                .out = values,
                                .conv = 2 * keys + values,
                                .cells = heads * key * value,
                                .elements = heads * (key + value)};
    } else if ((mixer == FT_MIX_MAMBA2 || mixer == FT_MIX_BOTH || mixer == FT_MIX_SHARED) && a->ssm_heads > 0) {
        double heads = (double)a->ssm_heads, inner = heads * (double)a->ssm_head_dim, conv = inner + 2 * groups * state;
        *out = (ft_state_layer){.in = inner + conv + heads,
                                .out = inner,
                                .conv = conv,
                                .cells = inner * state,
                                .elements = heads * ((double)a->ssm_head_dim + state)};
    } else if (mixer == FT_MIX_LIGHTNING) {
        double heads = (double)a->heads, dim = (double)a->head_dim;
        *out = (ft_state_layer){
            .in = 4 * heads * dim, .out = heads * dim, .cells = heads * dim * dim, .elements = 2 * heads * dim};
    } else if (mixer == FT_MIX_MAMBA && a->ssm_inner > 0) {
        double inner = (double)a->ssm_inner;
        *out = (ft_state_layer){.in = 2 * inner,
                                .out = inner,
                                .conv = inner,
                                .cells = inner * state,
                                .elements = inner,
                                .steps = (double)a->dt_rank + 2 * state,
                                .rank = (double)a->dt_rank};
    } else if (mixer == FT_MIX_RECURRENT) { /* two gates by a product of each head's block */
        double width = (double)(a->ssm_inner > 0 ? a->ssm_inner : a->hidden), block = width / (double)a->heads;
        *out = (ft_state_layer){.in = 2 * width + 2 * width * block / (double)a->hidden,
                                .out = width,
                                .conv = width,
                                .cells = width,
                                .elements = 2 * width};
    } else if (mixer == FT_MIX_RWKV) { /* three numbers by channel, and the token before */
        double width = (double)(a->ssm_inner > 0 ? a->ssm_inner : a->hidden);
        *out = (ft_state_layer){.in = 3 * width, .out = width, .cells = 3 * width, .elements = 2 * width};
    } else if (mixer == FT_MIX_CONV) { /* two gates beside what is convolved; its inputs are all that is kept */
        double width = (double)a->hidden;
        *out = (ft_state_layer){.in = 3 * width, .out = width, .conv = width};
    } else {
        return false;
    }
    out->tail = a->conv_kernel > 1 ? (double)(a->conv_kernel - 1) * out->conv : 0;
    out->layers = layers;
    return true;
}

static double kept_bytes(const ft_state_layer *s) { return s->cells * cell_bytes + s->tail * tail_bytes; }

double ft__state_bytes(const ft_served *m)
{
    return m->states.layers * kept_bytes(&m->states) / (double)(m->tp * m->pp);
}

double ft__state_parameters(const ft_served *m)
{
    const ft_state_layer *s = &m->states;
    return ((double)m->arch->hidden * s->in + s->out * (s->steps + s->rank)) / (double)m->tp;
}

ft_status ft__price_state_products(ft_pricer *p, double tokens, ft_priced *layer, ft_error *err)
{
    const ft_served *m = p->m;
    const ft_state_layer *s = &m->states;
    double hidden = (double)m->arch->hidden, tp = (double)m->tp;
    FT_TRY(ft__price_product(p, tokens, s->in / tp, hidden, m->qkv_dtype, layer, err));
    FT_TRY(ft__price_product(p, tokens, hidden, s->out / tp, m->out_dtype, layer, err));
    if (s->steps > 0) FT_TRY(ft__price_product(p, tokens, s->steps, s->out / tp, m->qkv_dtype, layer, err));
    if (s->rank > 0) FT_TRY(ft__price_product(p, tokens, s->out / tp, s->rank, m->qkv_dtype, layer, err));
    ft__price_pass(p, 1, 4 * tokens * s->conv / tp, layer);
    ft__price_pass(p, 1, 6 * tokens * s->out / tp, layer);
    ft__price_pass(p, m->tp > 1 ? 1 : 2, 6 * tokens * hidden, layer);
    return FT_OK;
}

void ft__price_state_update(const ft_pricer *p, double sequences, ft_priced *out)
{
    const ft_served *m = p->m;
    ft_priced one = {0};
    ft__price_pass(p, 1, 2 * sequences * kept_bytes(&m->states) / (double)m->tp, &one);
    out->ms += m->states.layers * one.ms;
    out->joules += m->states.layers * one.joules;
}

void ft__price_scan(const ft_pricer *p, double tokens, ft_priced *out)
{
    const ft_served *m = p->m;
    ft_priced one = {0};
    ft__price_pass(p, 1, m->engine->scan_bytes * tokens * m->states.elements / (double)m->tp, &one);
    out->ms += m->states.layers * one.ms;
    out->joules += m->states.layers * one.joules;
}

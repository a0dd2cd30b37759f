/* parts.c: activations, feed-forward networks, the head. */
#include "model/parts.h"

#include <string.h>

#include "graph/emit.h"
#include "model/mixers.h"
#include "model/relative.h"

/* -- activations ------------------------------------------------------------------------------- */

/* 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), one kernel per sign. */
static ft_ref gelu_written_out(ft_build *b, ft_at at, ft_ref x)
{
    ft_ref half = ft__pointwise(b, at, "mulu", x);
    ft_ref cube = ft__pointwise(b, at, "powu", x);
    cube = ft__pointwise(b, at, "mulu", cube);
    ft_ref inner = ft__add(b, at, x, cube);
    inner = ft__pointwise(b, at, "mulu", inner);
    inner = ft__pointwise(b, at, "tanh", inner);
    inner = ft__pointwise(b, at, "addu", inner);
    return ft__mul(b, at, half, inner);
}

/* The same, written out in another order inside a function with its own gradient, which keeps x alone (bloom). */
static ft_ref gelu_of_bloom(ft_build *b, ft_at at, ft_ref x)
{
    bool training = b->training;
    b->training = false;
    ft_ref half = ft__pointwise(b, at, "mulu", x), inner = ft__pointwise(b, at, "mulu", x);
    ft_ref square = ft__mul(b, at, ft__pointwise(b, at, "mulu", x), x);
    square = ft__pointwise(b, at, "addu", square);
    inner = ft__mul(b, at, inner, square);
    inner = ft__pointwise(b, at, "tanh", inner);
    inner = ft__pointwise(b, at, "addu", inner);
    (void)half; /* the other operand of the product, of x's size as x is */
    b->training = training;
    return ft__pointwise2(b, at, "gelu_again", x, inner);
}

/* xIELU (arXiv 2411.13010) with two learned numbers, as transformers' Python writes it: a x^2 + b x above zero, and
 * below (exp(min(x, eps)) - 1 - x) c + b x. Its own kernel is a package that is rarely installed; compilers make one
 * of it. */
static ft_ref xielu(ft_build *b, ft_at at, ft_ref x, bool one)
{
    ft_tensor t = *ft__tensor_of(b, x);
    ft_ref above = ft__parameter(b, "act.alpha_p", 1, 1), below = ft__parameter(b, "act.alpha_n", 1, 1);
    if (one) return ft__pointwise(b, at, "silu", x);
    ft_ref beta = ft__buffer(b, 1, 1, t.element_bytes);
    above = ft__pointwise(b, at, "softplus", above);
    below = ft__pointwise(b, at, "addu", ft__pointwise(b, at, "softplus", below));
    ft_ref positive = ft__no_grad_kernels(b, at, "compare", x, t.rows, t.cols, 1, 1);
    ft_ref high = ft__mul(b, at, ft__mul(b, at, x, above), x);
    high = ft__add(b, at, high, ft__mul(b, at, x, beta));
    ft_ref low = ft__pointwise(b, at, "expm1", ft__pointwise2(b, at, "minimum", x, beta));
    low = ft__mul(b, at, ft__pointwise2(b, at, "sub", low, x), below);
    low = ft__add(b, at, low, ft__mul(b, at, x, beta));
    ft_ref choice[3] = {high, positive, low};
    return ft__pointwise_over(b, at, "where", 3, choice, t.rows, t.cols);
}

ft_ref ft__part_activation(ft_maker *m, ft_at at, const char *activation, ft_ref x)
{
    ft_build *b = &m->b;
    bool one = m->stack->fused_activations || m->engine;
    ft__module(b, 1);
    if (!one && m->arch->gelu_function) return gelu_of_bloom(b, at, x);
    if (!strcmp(activation, "gelu_new") || !strcmp(activation, "gelu_fast"))
        return one ? ft__pointwise(b, at, "gelu", x) : gelu_written_out(b, at, x);
    if (!strcmp(activation, "quick_gelu")) {
        if (one) return ft__pointwise(b, at, "gelu", x);
        ft_ref gate = ft__pointwise(b, at, "mulu", x);
        gate = ft__pointwise(b, at, "sigmoid", gate);
        return ft__mul(b, at, x, gate);
    }
    if (!strcmp(activation, "relu2")) {
        if (one) return ft__pointwise(b, at, "relu2", x); /* Megatron-Core's squared_relu is compiled, gradient too */
        ft_ref named = x, squared = ft__pointwise(b, at, "powu", ft__pointwise(b, at, "relu", x));
        ft__part_held(m, 1, &named); /* by the function's argument */
        return squared;
    }
    if (!strcmp(activation, "xielu")) return xielu(b, at, x, one);
    if (!strcmp(activation, "relu")) return ft__pointwise(b, at, "relu", x);
    if (!strcmp(activation, "silu") || !strcmp(activation, "swish")) return ft__pointwise(b, at, "silu", x);
    if (!strcmp(activation, "tanh")) return ft__pointwise(b, at, "tanh", x);
    if (!strcmp(activation, "sigmoid")) return ft__pointwise(b, at, "sigmoid", x);
    return ft__pointwise(b, at, "gelu", x);
}

/* -- feed-forward ------------------------------------------------------------------------------ */

ft_ref ft__part_gated(ft_maker *m, ft_at at, const char *activation, ft_ref gate, ft_ref up)
{
    ft_build *b = &m->b;
    if (m->arch->gate_limits) {
        gate = ft__pointwise(b, at, "clamp_max", gate);
        up = ft__pointwise(b, at, "clamp", up);
    }
    if (!m->arch->gate_soft) return ft__mul(b, at, ft__part_activation(m, at, activation, gate), up);
    ft_ref soft = ft__pointwise(b, at, "sigmoid", ft__pointwise(b, at, "mulu", gate));
    soft = ft__mul(b, at, gate, soft);
    return ft__mul(b, at, ft__pointwise(b, at, "addu", up), soft);
}

ft_ref ft__part_fc(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    ft_bias bias = a->mlp_bias ? FT_BIAS : FT_NO_BIAS;
    ft_ref h = ft__linear(b, FT_AT(MLP_FC1), x, a->ffn, bias, FT_CUT_COLUMNS);
    h = ft__part_activation(m, FT_AT(MLP_ACT), a->activation, h);
    h = ft__dropout(b, FT_AT(MLP_ACT_DROPOUT), h, a->activation_dropout);
    return ft__linear(b, FT_AT(MLP_FC2), h, a->hidden, bias, FT_CUT_ROWS);
}

ft_ref ft__part_mlp(ft_maker *m, ft_ref x, int64_t inter, const char *activation, bool gated, bool fused_gate_up,
                    ft_bias bias)
{
    ft_build *b = &m->b;
    int64_t width = ft__tensor_of(b, x)->cols;
    bool one = m->stack->fused_activations || m->engine;
    ft__module(b, 1);
    ft_ref h;
    if (gated && (fused_gate_up || m->stack->fused_projections || m->engine)) {
        ft_ref both = ft__linear(b, FT_AT(MLP_GATE_UP_PROJ), x, 2 * inter, bias, FT_CUT_COLUMNS);
        int64_t halves[2] = {inter, inter};
        ft_ref part[2];
        if (one) {
            h = ft__swiglu(b, FT_AT(MLP_ACT), both, FT_NONE);
        } else {
            ft__split(b, both, 2, halves, part);
            h = ft__part_gated(m, FT_AT(MLP_ACT), activation, part[0], part[1]);
        }
    } else if (gated) {
        ft_ref gate = ft__linear(b, FT_AT(MLP_GATE_PROJ), x, inter, bias, FT_CUT_COLUMNS);
        bool later = m->arch->gate_limits || m->arch->gate_soft; /* the activation stands behind both products */
        bool at_once = one && !later && !ft__compiles(m->work) &&
                       m->work->execution != FT_RUN_TORCHSCRIPT; /* a compiler joins the two by itself */
        if (!later && !at_once) gate = ft__part_activation(m, FT_AT(MLP_ACT), activation, gate);
        ft_ref up = ft__linear(b, FT_AT(MLP_UP_PROJ), x, inter, bias, FT_CUT_COLUMNS);
        h = at_once ? ft__gate(b, FT_AT(MLP_ACT), gate, up)
            : later ? ft__part_gated(m, FT_AT(MLP_ACT), activation, gate, up)
                    : ft__mul(b, FT_AT(MLP_ACT), gate, up);
    } else {
        h = ft__linear(b, FT_AT(MLP_UP_PROJ), x, inter, bias, FT_CUT_COLUMNS);
        h = ft__part_activation(m, FT_AT(MLP_ACT), activation, h);
        if (m->arch->activation_dropout > 0) h = ft__dropout(b, FT_AT(MLP_DROPOUT), h, m->arch->activation_dropout);
    }
    if (m->arch->sub_norms || m->arch->mlp_sub_norm)
        h = ft__part_norm(m, FT_AT(MLP_POST_NORM), h, m->arch->norm, m->arch->norm_bias);
    return ft__linear(b, FT_AT(MLP_DOWN_PROJ), h, width, bias, FT_CUT_ROWS);
}

void ft__part_unused_weights(ft_maker *m)
{
    bool trained = m->b.frozen;
    if (m->arch->beside <= 0) return;
    m->b.frozen = true;
    ft__parameter(&m->b, "beside", (int64_t)m->arch->beside, 1);
    m->b.frozen = trained;
}

/* -- head -------------------------------------------------------------------------------------- */

/* peft's modules_to_save: a copy of the table is trained, the table itself stays where it is. What `frozen` was. */
bool ft__part_thaw_table(ft_maker *m, int64_t rows, int64_t cols)
{
    ft_build *b = &m->b;
    bool frozen = b->frozen;
    if (!frozen || !b->adapters.embeddings) return frozen;
    ft__parameter(b, "original_module.weight", rows, cols);
    b->frozen = false;
    return frozen;
}

void ft__part_pack_table(ft_maker *m, ft_ref table, bool tied)
{
    ft_build *b = &m->b;
    if (!b->formats || b->weights_by != FT_WEIGHTS_GGUF) return;
    const ft_weight_format *f = &b->formats->of[tied ? FT_OF_HEAD : FT_OF_ATTENTION];
    double bytes = b->weight_bytes;
    if (f->given) b->weight_bytes = ft__format_bytes(f);
    if (f->given) ft__as_weight(b, table);
    b->weight_bytes = bytes;
}

/* Rows of the positions that count, gathered into a tensor of their own; going back they are put where they stood. */
ft_ref ft__part_chosen(ft_maker *m, ft_ref x)
{
    const ft_workload *w = m->work;
    if (w->task != FT_TRAIN || w->loss_positions < 1 || w->loss_positions >= m->q_len || m->b.status != FT_OK) return x;
    int64_t cols = ft__tensor_of(&m->b, x)->cols;
    return ft__contiguous(&m->b, FT_AT(HEAD), ft__slice(&m->b, x, m->batch * w->loss_positions, cols));
}

ft_ref ft__part_head(ft_maker *m, ft_ref x, ft_ref table)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    bool last_only = m->work->task == FT_PREFILL || m->work->task == FT_DECODE;
    if (last_only && m->q_len > 1) x = ft__slice(b, x, m->batch, ft__tensor_of(b, x)->cols);
    x = ft__part_chosen(m, x);
    int64_t rank = b->lora_rank;
    b->lora_rank = 0;
    ft_ref logits;
    ft_dtype math = b->math;
    double packed = b->weight_bytes;
    if (b->training && !m->stack->packs_head) b->weight_bytes = ft_dtype_bytes(b->stored); /* whole: peft, AutoGPTQ */
    /* Recipes cover the layers alone: Transformer Engine's, torchao's (Accelerate leaves out the first and last
     * product, torchtitan the output). */
    if (b->training && ft_dtype_bytes(math) < 2) b->math = ft__flowing(math);
    ft_ref bias = a->head_bias && table != FT_NONE ? ft__parameter(b, "head.bias", 1, a->vocab) : FT_NONE;
    bool frozen = b->frozen;
    if (table == FT_NONE) frozen = ft__part_thaw_table(m, a->vocab, ft__tensor_of(b, x)->cols);
    if (table != FT_NONE)
        logits = ft__linear_with(b, FT_AT(LM_HEAD), x, table, a->vocab, bias, FT_CUT_COLUMNS);
    else
        logits = ft__linear(b, FT_AT(LM_HEAD), x, a->vocab, a->head_bias ? FT_BIAS : FT_NO_BIAS, FT_CUT_COLUMNS);
    b->weight_bytes = packed;
    b->frozen = frozen;
    b->lora_rank = rank;
    b->math = math;
    ft__module(b, 1);
    if (a->scaled_logits) logits = ft__pointwise(b, FT_AT(LM_HEAD_SCALE), "mulu", logits);
    const bool bounded = m->work->task == FT_TRAIN && m->stack->softcaps_in_loss;
    if (a->logit_softcap > 0 && !bounded) {
        logits = ft__pointwise(b, FT_AT(LM_HEAD_SOFTCAP), "divu", logits);
        logits = ft__pointwise(b, FT_AT(LM_HEAD_SOFTCAP), "tanh", logits);
        logits = ft__pointwise(b, FT_AT(LM_HEAD_SOFTCAP), "mulu", logits);
    }
    if (m->work->task != FT_TRAIN) return logits;
    bool widened = ft__upcasts(m);
    if (m->stack->shifts_logits && a->causal && m->work->seq > 1) {
        if (widened) logits = ft__cast(b, FT_AT(LOSS), logits, FT_FP32);
        const ft_tensor all = *ft__tensor_of(b, logits);
        logits = ft__slice(b, logits, all.rows - all.rows / m->work->seq, all.cols);
        logits = ft__contiguous(b, FT_AT(LOSS), logits);
        widened = false;
    }
    return ft__loss(b, FT_AT(LOSS), logits, widened);
}

/* Who scores a sequence asks it of every token and keeps the last one's answer (transformers' modeling_layers.py,
 * GenericForSequenceClassification). */
static ft_ref scored(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    int64_t rank = b->lora_rank;
    double packed = b->weight_bytes;
    b->lora_rank = 0;
    b->weight_bytes = ft_dtype_bytes(b->stored);
    x = ft__linear(b, FT_AT(CLASSIFIER), x, m->arch->labels, FT_NO_BIAS, FT_WHOLE);
    b->lora_rank = rank;
    b->weight_bytes = packed;
    if (!b->training) return x;
    x = ft__contiguous(b, FT_AT(CLASSIFIER), ft__slice(b, x, m->batch, m->arch->labels));
    return ft__loss(b, FT_AT(LOSS), x, false);
}

ft_ref ft__part_logits(ft_maker *m, ft_ref x, ft_ref table, int64_t width)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    ft_ref further = FT_NONE, shared = a->tied ? table : FT_NONE;
    if (m->work->mtp > 0 && a->lm_head) {
        if (!a->tied) shared = ft__weight(b, "head.weight", a->vocab, width);
        further = ft__part_mtp(m, x, table, shared);
    }
    if (a->streams > 1) x = ft__part_hyper_head(m, x);
    if (a->altup > 1) x = ft__part_altup_close(m, x);
    if (a->final_norm) x = ft__part_stream_norm(m, FT_AT(NORM), x);
    if (a->embed_width && a->embed_width != a->hidden)
        x = ft__linear(b, FT_AT(HEAD_PROJECT_OUT), x, a->embed_width, FT_NO_BIAS, FT_WHOLE);
    if (!a->lm_head && a->labels < 1) return x; /* a base class ends here: LlamaModel */
    if (a->head_dense) {
        x = ft__linear(b, FT_AT(HEAD_DENSE), x, a->hidden, FT_NO_BIAS, FT_WHOLE);
        x = ft__part_activation(m, FT_AT(HEAD_ACT), a->activation, x);
        x = ft__part_norm(m, FT_AT(HEAD_NORM), x, a->norm, a->norm_bias);
    }
    if (a->draft_width > 0) ft__part_draft_close(m, x);
    if (a->centroids > 0) return ft__part_draft_words(m, x, table);
    if (!a->lm_head) return scored(m, x);
    if (a->scaled_head) x = ft__pointwise(b, FT_AT(LM_HEAD_SCALE), "mulu", x);
    x = ft__part_head(m, x, shared);
    return further != FT_NONE ? ft__add(b, FT_AT(LOSS), x, further) : x;
}

/* The pieces that models share, as their implementations launch them: norms, activations, rotary embeddings, attention,
 * feed-forward networks, heads. A piece knows the stack: what its kernels do at once is one, what they do not is
 * written out as transformers does it. */
#ifndef FT_MODEL_PARTS_H
#define FT_MODEL_PARTS_H
#include "graph/build.h"
#include "model/stack.h"

/* Weights that several layers share, and the embedding that they read: zamba2. */
typedef struct ft_shared_block {
    ft_ref embedded, norm, q, k, v, o, feed_norm, up, down;
} ft_shared_block;

typedef struct ft_maker {
    ft_build b;
    const ft_arch *arch;
    const ft_workload *work;
    const ft_stack *stack;        /* whose kernels */
    bool engine;                  /* a serving engine's kernels: paged cache, fused norms, rotary and experts */
    int64_t batch, q_len, kv_len; /* tokens = batch * q_len */
    ft_ref cos, sin;              /* rotary tables, once per forward pass */
    ft_ref per_layer;             /* what layers add of their own; FT_NONE: nothing */
    ft_shared_block shared;
    ft_ref places;        /* a table of relative places: deberta-v2 */
    ft_ref probabilities; /* of the last attention that was written out */
    ft_ref source;        /* what an encoder made, of `source_len` tokens a sequence (0: there is none) */
    int64_t source_len;
    ft_ref keys, values;               /* of the last attention */
    ft_ref beside_keys, beside_values; /* of another stack's layer, which attention reads too; FT_NONE: none */
    ft_ref mask;                       /* additive mask; FT_NONE where the implementation passes none */
} ft_maker;

/* Norm of `width` = x's columns; rmsnorm is written out as transformers does it unless fused. */
ft_ref ft__part_norm(ft_maker *m, ft_at at, ft_ref x, ft_norm kind, bool bias);
/* Norm over each head of x [tokens * heads, dim] with a weight for each: [tokens, heads * dim] (cohere). */
ft_ref ft__part_norm_of_heads(ft_maker *m, ft_at at, ft_ref x, int64_t heads);
/* x over the root of its mean square, in fp32, without a weight (llama4). */
ft_ref ft__part_norm_bare(ft_maker *m, ft_at at, ft_ref x);
/* By Hugging Face's name: "gelu_new" is eight kernels, "gelu" one. */
ft_ref ft__part_activation(ft_maker *m, ft_at at, const char *activation, ft_ref x);
/* Rotary tables for q_len positions of `dim`: the handful of small kernels before the first layer. */
void ft__part_rotary_tables(ft_maker *m, int64_t dim);
/* Before the first layer, as transformers does it: before.c. */
void ft__part_other_modules(ft_maker *m);     /* what a layer enters beyond its parts (before.c) */
bool ft__part_spelled_out(const ft_maker *m); /* its modules, operator by operator: no engine, no compiler */
int ft__part_mask_kinds(const ft_arch *a);    /* 2: layers with a window and without */
void ft__part_mask_indices(ft_maker *m);      /* numbers of batches, heads, queries and keys, and constants */
void ft__part_first_fill(ft_maker *m);
void ft__part_regroup(ft_maker *m, ft_ref *q, ft_ref *k, ft_ref *v);
void ft__part_rotary_rows(ft_maker *m); /* of a table that is kept: rotary.c */
void ft__part_window_mask(ft_maker *m); /* which keys a window hides from whom */
/* Applies them to x: [batch * q_len, heads * head_dim] seen as heads; `strided`: x is a transposed view. */
/* Heads as attention wants them, [batch, heads, tokens, dim], of a projection's result. */
ft_ref ft__part_by_head(ft_maker *m, ft_ref x, int64_t heads, int64_t dim);
ft_ref ft__part_rotate(ft_maker *m, ft_at at, ft_ref x, int64_t heads, int64_t head_dim, int64_t rotary_dim);

/* Scaled dot products of q, k, v in the workload's way (eager, sdpa, flash); result [batch * q_len, heads * v_dim].
 * q, k, v are transposed views unless a kernel made them contiguous. dropout: of the probabilities. */
typedef struct ft_scores {
    ft_attention_shape shape;
    double dropout, softcap;
    bool scale, mask, scores_fp32, softmax_fp32, bias; /* bias: a position bias is added to the scores */
    bool eager_only;
    bool alibi, baddbmm; /* linear biases: added in fp32 (mpt), or the product adds them itself (bloom) */
    bool merge;          /* queries stand head by head and so does sdpa's result: bring heads together */
    bool floors;         /* the larger of a masked score and the lowest number (xglm) */
    bool hides;          /* a mask of true and false on the scores before the additive one (gpt_neo) */
    bool sinks;          /* one more column of scores per head (gpt_oss) */
    bool sink_scales;    /* or a factor of the result, made of the scores' sum (granite_swa) */
    bool mask_learns;    /* sdpa's mask is made of parameters, which have gradients: `learned_mask` */
    ft_ref learned_mask;
    bool float_mask;   /* sdpa's mask is one of numbers: nothing has to be made of true and false */
    bool maskless;     /* the model's code makes no mask of its own when it is traced: images of a graph file */
    bool mask_of_keys; /* sdpa's mask has one row for all queries: which keys are there */
    bool broadcast;    /* one key head is broadcast, which sends sdpa to its plain implementation (falcon) */
    bool q_dense, k_dense, v_dense; /* contiguous as [batch, heads, length, dim] */
} ft_scores;
/* Attention of a decoder's layer over x, projections and cache included (self_attention.c). `windowed`: through the
 * architecture's window; `rotated`: queries and keys are turned, where the architecture turns any. */
ft_ref ft__part_self_attention(ft_maker *m, ft_ref x, bool windowed, bool rotated, unsigned manner);
enum { FT_KEYS_ARE_VALUES = 1, FT_SHARES_KEYS = 2 }; /* of `manner`: no product for values; none for keys either */
void ft__part_held(ft_maker *m, int count, const ft_ref *x);
ft_ref ft__part_attend(ft_maker *m, ft_at at, ft_ref q, ft_ref k, ft_ref v, const ft_scores *s);

/* A layer of an encoder like bert's (encoder.c), and what stands in for its attention: deberta.c. */
ft_ref ft__part_encoder_layer(ft_maker *m, ft_ref x);
ft_ref ft__part_disentangled(ft_maker *m, ft_ref x);
/* shifted.c: attention whose scores by distance are shifted into place, and the sines of distances, once per pass. */
ft_ref ft__part_shifted(ft_maker *m, ft_ref x);
void ft__part_distances(ft_maker *m);
void ft__part_places(ft_maker *m); /* the table that it reads, once per pass */

/* What whisper and bart have: two products with the arch's biases, an activation and a dropout between them. */
ft_ref ft__part_fc(ft_maker *m, ft_ref x);
/* up, activation, down; or gate and up, activation, product, down. */
/* Parameters of what does not run (arch.h, `beside`), at rest. */
void ft__part_unused_weights(ft_maker *m);
/* act(gate) * up, as the architecture limits and softens it. */
ft_ref ft__part_gated(ft_maker *m, ft_at at, const char *activation, ft_ref gate, ft_ref up);
ft_ref ft__part_mlp(ft_maker *m, ft_ref x, int64_t inter, const char *activation, bool gated, bool fused_gate_up,
                    ft_bias bias);

/* Mixture of experts over x, result like x: router, dispatch, experts, combination (moe.c). */
ft_ref ft__part_experts(ft_maker *m, ft_ref x);

/* Language-model head over all tokens, or the last of each sequence, and the loss when training. `table`: a tied
 * weight or FT_NONE. Returns the loss, or the logits. */
/* Logits are copied to fp32 before the loss. */
static inline bool ft__upcasts(const ft_maker *m)
{
    const ft_entropy loss = m->work->loss;
    if (loss == FT_ENTROPY_OF_MODEL && m->stack->loss_of == FT_LOSS_OF_FLASH_ATTENTION) return false;
    return loss == FT_ENTROPY_OF_MODEL ? m->arch->loss_fp32 : loss == FT_ENTROPY_UPCAST || loss == FT_ENTROPY_CHUNKED;
}
/* Before a table is made that adapters may train: keeps the frozen one, thaws; what `frozen` is to be afterwards. */
bool ft__part_thaw_table(ft_maker *m, int64_t rows, int64_t cols);
/* llama.cpp's files have tables of words in few bits too: as the head's where it is the head. */
void ft__part_pack_table(ft_maker *m, ft_ref table, bool tied);
/* Of a sequence's positions those that head and loss go over: "loss_positions". */
ft_ref ft__part_chosen(ft_maker *m, ft_ref x);
ft_ref ft__part_head(ft_maker *m, ft_ref x, ft_ref table);
/* From a decoder's stream to logits and loss, further tokens' included. `table`: of the embedding, `width` wide. */
ft_ref ft__part_logits(ft_maker *m, ft_ref x, ft_ref table, int64_t width);

/* Builders by design. Each makes every forward block and leaves the loss (training) or the result as the last block's
 * carry. */
void ft__make_design(ft_maker *m);          /* whichever the architecture is */
void ft__make_transformer(ft_maker *m);     /* decoder-only */
void ft__make_encoder(ft_maker *m);         /* bert, roberta */
void ft__make_encoder_decoder(ft_maker *m); /* t5, switch_transformers */
void ft__make_seq2seq(ft_maker *m);         /* those of its kind whose positions are not relative: bart */
void ft__make_speech(ft_maker *m);          /* whisper */
void ft__make_vit(ft_maker *m);
void ft__make_clip(ft_maker *m);
void ft__make_resnet(ft_maker *m);
void ft__make_convnext(ft_maker *m);
void ft__make_state_space(ft_maker *m);
void ft__make_diffusion(ft_maker *m);
void ft__make_sound(ft_maker *m);       /* wav2vec2, hubert */
void ft__make_joint(ft_maker *m);       /* Flux, Stable Diffusion 3 */
void ft__make_video(ft_maker *m);       /* Wan */
void ft__make_unet(ft_maker *m);        /* Stable Diffusion 1, 2, XL */
void ft__make_autoencoder(ft_maker *m); /* decoders of latents */
#endif

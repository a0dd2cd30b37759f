/* What mixes tokens in a layer beside plain and latent attention, and what stands around layers of this year's models:
 * hyper-connections, embeddings by layer, a tower that sees. One file each. */
#ifndef FT_MODEL_MIXERS_H
#define FT_MODEL_MIXERS_H
#include "model/parts.h"

ft_ref ft__part_delta(ft_maker *m, ft_ref x);                      /* delta.c */
ft_ref ft__part_mamba2(ft_maker *m, ft_ref x);                     /* state_space.c */
ft_ref ft__part_mamba(ft_maker *m, ft_ref x);                      /* mamba.c */
ft_ref ft__part_lightning(ft_maker *m, ft_ref x);                  /* lightning.c */
ft_ref ft__part_short_conv(ft_maker *m, ft_ref x);                 /* lightning.c */
ft_ref ft__part_mlstm(ft_maker *m, ft_ref x);                      /* mlstm.c */
ft_ref ft__part_stream_conv(ft_maker *m, ft_ref x, int64_t width); /* state_space.c */
/* convolved.c: queries and keys that short convolutions mix, and values that are half the last token's. */
void ft__part_convolved(ft_maker *m, ft_ref x, ft_ref *q, ft_ref *k, ft_ref *v);
/* scaled_stream.c: the residual stream, plain or moved and scaled in fp32: its beginning, a sum, a norm of it. */
ft_ref ft__part_stream_open(ft_maker *m, ft_ref x);
ft_ref ft__part_stream_add(ft_maker *m, ft_at at, ft_ref x, ft_ref y);
ft_ref ft__part_stream_norm(ft_maker *m, ft_at at, ft_ref x);
ft_ref ft__part_layer_norm(ft_maker *m, ft_at at, ft_ref x); /* the same before a half of a layer, with its gate */
/* compressed.c: one key and value for all heads through a window, and a summary of every `compress` tokens before. */
ft_ref ft__part_compressed_attention(ft_maker *m, ft_ref x, int64_t compress);
/* indexer.c: scores of every token for every query, of which attention then sees the best. `q`: the latent that queries
 * are made of, or the layer's input. Gives how many keys a query is left with. */
int64_t ft__part_indexer(ft_maker *m, ft_ref x, ft_ref q);
/* Its second half: scores of `keys` keys. `weights`: of heads, FT_NONE where blocks are picked for groups of heads. */
void ft__part_index_scores(ft_maker *m, ft_ref query, ft_ref key, ft_ref weights, int64_t keys);
/* Attention over `keys` of them: engines and flash kernels read those alone, plain transformers masks the rest. */
void ft__attend_topk(const ft_maker *m, ft_scores *s, int64_t keys);

/* hyper.c */
typedef struct ft_hyper {
    ft_ref collapsed, post, comb;
} ft_hyper;
ft_hyper ft__part_hyper_collapse(ft_maker *m, ft_ref streams);
ft_ref ft__part_hyper_expand(ft_maker *m, ft_ref streams, ft_ref y, const ft_hyper *mix);
ft_ref ft__part_hyper_head(ft_maker *m, ft_ref streams);

/* gated_streams.c: the same where streams are normed, then gated by channel. */
ft_ref ft__streams_normed(ft_maker *m, ft_at at, ft_ref streams);
ft_hyper ft__part_gated_collapse(ft_maker *m, ft_ref streams, bool injects);
ft_ref ft__part_gated_expand(ft_maker *m, ft_ref streams, ft_ref y, const ft_hyper *mix);
/* ngrams.c: what embeddings of the last few tokens add to the streams. */
ft_ref ft__part_ngrams(ft_maker *m, ft_ref streams);

/* ahead.c: a decoder that predicts several tokens at once: streams behind the words' (`positions`: their table), its
 * attention over all of them, and what is left for the head. */
ft_ref ft__part_ahead_open(ft_maker *m, ft_ref words, ft_ref *positions);
ft_ref ft__part_ahead_attention(ft_maker *m, ft_ref x);
ft_ref ft__part_ahead_close(ft_maker *m, ft_ref x);

/* buckets.c: attention over chunks, by places and by hashes; a layer of two streams that can be undone, around it;
 * positions by row and column; tokens that fill the last chunk up. */
ft_ref ft__part_near(ft_maker *m, ft_ref x);
ft_ref ft__part_hashed(ft_maker *m, ft_ref x);
ft_ref ft__part_reversible(ft_maker *m, ft_ref both, ft_ref (*mix)(ft_maker *, ft_ref));
ft_ref ft__part_axial(ft_maker *m, ft_ref x);
int64_t ft__buckets_padding(const ft_maker *m);

/* protein.c: what was read of a protein, once per pass: the source of layers that look at it. aligner.c: such a
 * layer. */
void ft__part_protein(ft_maker *m);
ft_ref ft__part_aligner(ft_maker *m, ft_ref x);
/* Products of attention over `groups` times [queries, dim] and [keys, dim]. */
typedef struct ft_scored {
    int64_t groups, queries, keys, dim;
} ft_scored;
ft_ref ft__part_scored(ft_maker *m, ft_at at, ft_ref q, ft_ref k, ft_ref v, const ft_scored *of);

/* actor.c: a language model and, beside it, the layers that make actions of what it read. */
void ft__make_actor(ft_maker *m);

/* bytes.c: a model of bytes: stacks of narrow layers around those of the model, which read groups. */
void ft__make_bytes(ft_maker *m);

/* per_layer.c: an embedding of each layer's own, added behind it. */
void ft__part_per_layer_inputs(ft_maker *m, ft_ref tokens, ft_ref x);
ft_ref ft__part_per_layer(ft_maker *m, ft_ref x);

ft_ref ft__part_per_layer_own(ft_maker *m, ft_ref x); /* the same before it is added */

/* attention_experts.c: queries and results by experts. */
ft_ref ft__part_attention_experts(ft_maker *m, ft_ref x);
/* rwkv.c: RWKV's mean over earlier tokens, and its network. */
ft_ref ft__part_rwkv(ft_maker *m, ft_ref x);
ft_ref ft__part_rwkv_feed(ft_maker *m, ft_ref x);
/* recurrent.c: RecurrentGemma's block. */
ft_ref ft__part_recurrent(ft_maker *m, ft_ref x);
/* shared_block.c: its weights, made once; what it adds to what a layer reads. */
void ft__part_shared_open(ft_maker *m, ft_ref embedded);
ft_ref ft__part_shared_block(ft_maker *m, ft_ref x);

/* altup.c: several copies of the stream around layers: made of the embedding, a layer, and brought together again. */
ft_ref ft__part_altup_open(ft_maker *m, ft_ref x);
ft_ref ft__part_altup_layer(ft_maker *m, ft_ref x, bool windowed, bool shares, bool sparse);
ft_ref ft__part_altup_close(ft_maker *m, ft_ref x);

/* mtp.c: modules that predict further tokens, between the last layer's result `x` and the head. `table`: the
 * embedding's, `head`: the head's weight. Gives the sum of their losses, FT_NONE where none are trained. */
ft_ref ft__part_mtp(ft_maker *m, ft_ref x, ft_ref table, ft_ref head);
/* transformer.c: a layer as the model's last is, or of the shape that `mtp` says: of modules that predict further
 * tokens, and of trunks whose layers are all alike. */
ft_ref ft__part_last_layer(ft_maker *m, ft_ref x);

/* windows.c: attention of an image's patches through windows, with biases by distance; a window of 0 is the whole. */
typedef struct ft_windows {
    int64_t high, wide, window, hidden, heads;
    bool bias, fused;
} ft_windows;
ft_ref ft__part_windows(ft_maker *m, ft_ref x, const ft_windows *w);

/* cross.c: runs the encoder of a decoder that looks at images; the half of a layer that looks at what it made. */
void ft__part_source(ft_maker *m);
ft_ref ft__part_cross(ft_maker *m, ft_ref x);
ft_ref ft__part_cross_layer(ft_maker *m, ft_ref x); /* a layer of its own, gated: idefics */
/* merged.c: a stack of layers over the source, before a decoder whose attention reads both. Images (`seen`) stand in
 * the source: FT_NONE is left of them. `table`: the embedding's, which both share. */
ft_ref ft__part_encode_before(ft_maker *m, ft_ref seen, ft_ref *table);
/* The same where the layers over the prompt are those that denoise a canvas behind it, and what a canvas adds to its
 * words of the last step's. */
ft_ref ft__part_prompt_before(ft_maker *m, ft_ref seen, ft_ref *table);
ft_ref ft__part_conditioned(ft_maker *m, ft_ref x);
/* transformer.c: a decoder's layers, all of them. */
ft_ref ft__part_layers(ft_maker *m, ft_ref x);
/* drafts.c: a drafter's first product over a target model's states, its last one back to them, and the words of the
 * groups that look best, scored by rows of `table`. */
ft_ref ft__part_draft_open(ft_maker *m, ft_ref *table);
void ft__part_draft_close(ft_maker *m, ft_ref x);
ft_ref ft__part_draft_words(ft_maker *m, ft_ref x, ft_ref table);
/* tower.c: a vision tower and its projector before the language model. */
/* audio_weights.c: the weights of what hears; sound is not asked for, so that they lie where they are. */
void ft__part_audio_weights(ft_maker *m);
/* davit.c: the tower of an architecture whose images pass `stages`: florence2. */
ft_ref ft__part_davit(ft_maker *m);
/* projector.c: the steps between the tower and the language model, where the architecture lists them. */
ft_ref ft__part_project(ft_maker *m, ft_ref x);
ft_ref ft__part_tower(ft_maker *m); /* the tokens that images became; FT_NONE: there are none */
#endif

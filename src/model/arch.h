/* What a model is: one set of words that the builders share. Importers (src/import) make it of a config.json, a graph
 * file or an ONNX file.
 *
 * Fields that an architecture does not have are zero. Names point to static text; only an importer's file is owned. */
#ifndef FT_MODEL_ARCH_H
#define FT_MODEL_ARCH_H
#include <stdbool.h>
#include <stdint.h>

#include "graph/format.h"
#include "model/actor.h"
#include "model/buckets.h"
#include "model/bytes.h"
#include "model/layer_fields.h"
#include "model/protein.h"
#include "model/steps.h"

/* Which builder: see model.c. */
typedef enum ft_design {
    FT_DECODER_ONLY,    /* gpt2 ... gpt_oss: transformer.c */
    FT_ENCODER_ONLY,    /* bert, roberta */
    FT_ENCODER_DECODER, /* t5, switch_transformers */
    FT_SPEECH,          /* whisper */
    FT_VIT,
    FT_CLIP, /* two towers */
    FT_RESNET,
    FT_CONVNEXT,
    FT_STATE_SPACE, /* mamba2 */
    FT_DIFFUSION,   /* DiT */
    FT_SOUND,       /* wav2vec2, hubert */
    FT_JOINT,       /* Flux, Stable Diffusion 3 */
    FT_VIDEO,       /* Wan */
    FT_UNET,        /* Stable Diffusion 1, 2, XL */
    FT_AUTOENCODER, /* what makes images and videos of their latents */
    FT_CUSTOM,      /* a graph file */
    FT_DESIGN_COUNT
} ft_design;

typedef enum ft_norm {
    FT_LAYERNORM,
    FT_LAYERNORM_BARE, /* without weights, in fp32: olmo */
    FT_LAYERNORM_FP32, /* written out in fp32: cohere */
    FT_LAYERNORM_1P,   /* the weight is kept as its distance from one: nemotron */
    FT_RMSNORM,
    FT_RMSNORM_WIDE, /* weight applied in fp32: gemma, olmo2, gpt_oss */
    FT_RMSNORM_BARE  /* without a weight: nanochat */
} ft_norm;
typedef enum ft_place { FT_PRE_NORM, FT_POST_NORM /* bert */, FT_SANDWICH /* gemma2 */, FT_AFTER /* olmo2 */ } ft_place;
typedef enum ft_position {
    FT_NO_POSITION,
    FT_LEARNED_POSITION,
    FT_ROTARY,
    FT_ALIBI,
    FT_RELATIVE,
    FT_SINUSOIDAL
} ft_position;
typedef enum ft_qk_norm {
    FT_NO_QK_NORM,
    FT_QK_NORM_HEAD, /* over each head, all with one weight */
    FT_QK_NORM_BARE, /* over each head that is rotated, without a weight: llama4 */
    FT_QK_NORM_OWN,  /* over each head, each with its own weight: cohere */
    FT_QK_NORM_FULL
} ft_qk_norm;

/* How a router's scores become weights of experts (router.c). */
typedef enum ft_routing {
    FT_ROUTE_PLAIN,      /* softmax or sigmoid of all, then the best */
    FT_ROUTE_BEST_FIRST, /* the best, then their softmax: granitemoe */
    FT_ROUTE_CORRECTED,  /* the best by scores with a learned correction: ernie4_5_moe */
    FT_ROUTE_MIXER       /* two in turn, each a softmax over those near the best: phimoe */
} ft_routing;

enum { FT_MAX_STAGES = 8 };

/* What mixes tokens in a layer, and what follows it. */
typedef enum ft_mixer {
    FT_MIX_ATTENTION,
    FT_MIX_LATENT,     /* multi-head latent attention: latent.c */
    FT_MIX_COMPRESSED, /* one shared key and value, and summaries of what lies behind the window: compressed.c */
    FT_MIX_DELTA,      /* gated delta rule: delta.c */
    FT_MIX_MAMBA2,     /* state_space.c */
    FT_MIX_MAMBA,      /* mamba.c */
    FT_MIX_LIGHTNING,  /* linear attention with a fixed decay: lightning.c */
    FT_MIX_CONV,       /* a gated short convolution: lfm2 */
    FT_MIX_BOTH,       /* attention and mamba2 beside each other: falcon_h1 */
    FT_MIX_RECURRENT,  /* a gated linear recurrence: recurrent.c */
    FT_MIX_SHARED,     /* mamba2 behind a transformer layer whose weights all such layers share: shared_block.c */
    FT_MIX_RWKV,       /* a mean of earlier tokens with a decay by channel: rwkv.c */
    FT_MIX_MLSTM,      /* xLSTM's matrix memory: mlstm.c */
    FT_MIX_NEAR,       /* attention of a chunk to itself and its neighbours: buckets.c */
    FT_MIX_HASHED,     /* the same of what hashes put side by side: buckets.c */
    FT_MIX_NONE
} ft_mixer;
typedef enum ft_feed {
    FT_FEED_DENSE,
    FT_FEED_EXPERTS,
    FT_FEED_BOTH,   /* a network and experts, each behind norms of its own: gemma4 */
    FT_FEED_BESIDE, /* a network and experts that read the same norm: longcat_flash */
    FT_FEED_NONE
} ft_feed;

/* By what attention's result is multiplied before the last product. */
typedef enum ft_attn_gate {
    FT_NO_ATTN_GATE,
    FT_GATE_IN_QUERIES, /* sigmoid of a second half of the queries' product: qwen3_next */
    FT_GATE_WIDE,       /* of a product of its own, as wide as the result: kimi_k3, afmoe */
    FT_GATE_HEAD,       /* one number for each head: step3p7 */
    FT_GATE_LOW_RANK    /* two products through a head's width: glm5_next */
} ft_attn_gate;

/* Where the gated delta rule gets its gates and how it is projected. */
typedef enum ft_delta_kind {
    FT_DELTA_JOINT,  /* one product for q, k, v and the gate, one for both scalars: qwen3_next */
    FT_DELTA_APART,  /* q, k, v in one, the gate and each scalar in their own: qwen3_5 */
    FT_DELTA_CHANNEL /* a decay for each channel, each of q, k, v by itself: kimi_linear */
} ft_delta_kind;

/* What layers of one model may differ in. */
typedef struct ft_layer_shape {
    ft_mixer mixer;
    ft_feed feed;
#define SIZE(name, what) int64_t name;
    FT_LAYER_SIZES(SIZE)
#undef SIZE
#define FLAG(name, what) bool name;
    FT_LAYER_FLAGS(FLAG)
#undef FLAG
} ft_layer_shape;
enum { FT_MOST_KINDS = 64, FT_MOST_PLANNED = 512 };

/* Who read the file of an FT_CUSTOM model: makes its forward pass, gives the file back. */
struct ft_maker;
typedef struct ft_importer {
    void (*make)(struct ft_maker *m);
    void (*release)(void *file);
} ft_importer;

typedef struct ft_arch {
    const char *model_type; /* as in the config: "llama" */
    ft_design design;
    /* sizes */
    int64_t layers, decoder_layers, hidden, ffn, heads, kv_heads, head_dim, vocab, max_position, token_types;
    int64_t position_rows;  /* of a learned table: opt's has two more than positions; 0: no table */
    int64_t position_extra; /* rows of that table before the first position: bart */
    int64_t reach;          /* positions that its config allows, scaled ones counted; 0: it does not say */
    bool position_table;    /* sinusoids stand in a table of their own that checkpoints count: pegasus */
    int64_t joined_width;   /* of further tables of each token, which a product joins to its words: roc_bert */
    int64_t prefix;         /* learned tokens before every sequence: cpmant */
    int64_t embed_width;    /* of the token embedding where it is not `hidden` (opt-350m); else 0 */
    ft_bytes bytes;         /* groups of them are what layers read: blt */
    ft_buckets buckets;     /* of attention over chunks: reformer */
    ft_protein protein;     /* that layers look at: evolla */
    ft_actor actor;         /* beside the language model: pi0 */
    bool reversible;        /* two streams, of which layers are undone going back in place of keeping them: reformer */
    /* what a layer is made of */
    const char *activation;                /* Hugging Face's name: "gelu_new", "silu", "quick_gelu" */
    bool gated;                            /* act(gate) * up */
    bool fused_qkv, fused_gate_up, conv1d; /* conv1d: gpt2's weights stand [in, out] */
    bool qkv_bias, key_bias, out_bias, mlp_bias, head_bias;
    bool qkv_slices;    /* the fused product is sliced, not split: bloom, phi3, falcon */
    bool query_scale;   /* queries are scaled by a kernel of their own: opt */
    bool gelu_function; /* gelu is an autograd function of its own: bloom */
    bool causal;        /* a query sees no later key; bert only as a decoder */
    bool tied;          /* head shares the embedding's weights */
    ft_norm norm;
    bool norm_bias;
    bool norm_weight_fp32; /* the weight is raised to fp32: gemma, helium */
    bool norm_plus_one;    /* and one is added to it: gemma */
    ft_place place;
    int64_t norm_gate;           /* layers' norms are gated through so narrow a product of themselves: axk2; 0: not */
    bool final_norm, embed_norm; /* embed_norm: bloom, bert */
    bool parallel, shared_norm;  /* attention and MLP both read the layer's input; through one norm */
    ft_position position;
    int64_t rotary_dim;      /* of head_dim */
    bool rotary_repeats;     /* every layer repeats the tables for neighbouring pairs: glm, helium, ernie4_5 */
    bool rotary_fp32;        /* queries and keys are raised to be turned: cohere, ernie4_5 */
    bool rotary_tables_fp32; /* cosines and sines stay in fp32: olmo (not olmoe), ernie4_5, llama4 */
    bool rotary_complex;     /* pairs are turned as complex numbers, before they are transposed: llama4 */
    bool rotary_twice, rotary_raised_twice;   /* tables by kind of layer: gemma3, olmo3; a second cast: modernbert */
    bool rotary_interleaved, heads_regrouped; /* of neighbours; parts copied in order of heads first: codegen */
    int64_t rotary_lookups, other_modules;    /* a layer's kernels that take rows of a table; its dropouts, wrappers */
    bool rotary_joins;                    /* what is turned is joined with the rest even where there is none: phi3 */
    bool counted_positions;               /* positions count the tokens that are no padding: roberta, m2m_100 */
    int64_t relative_buckets;             /* t5: rows of the table of relative positions */
    bool bias_each;                       /* every layer has such a table: umt5 */
    int64_t ahead;                        /* streams that predict further tokens beside the words' own: prophetnet */
    bool disentangled;                    /* scores of content and of places apart: deberta-v2 */
    int64_t relative_span;                /* places to each side that such scores tell apart; 0: content alone */
    bool relative_keys, relative_queries; /* content looks at places (c2p), places look at content (p2c) */
    bool relative_own, relative_norm;     /* places have products of their own, not content's; a norm */
    bool shifted;       /* content looks at sines of distances, and scores are shifted into place: xlnet */
    bool bidirectional; /* a decoder's layers over a whole sequence: modernbert */
    int64_t adapter;    /* behind each layer's network, narrower by so much: xmod; 0: none */
    bool layers_shared; /* one layer's weights serve all: albert */
    ft_qk_norm qk_norm;
    bool qk_norm_late;            /* after the turn: hunyuan, llama4 */
    bool temperature;             /* queries that are not rotated are scaled by their position: llama4 */
    double clip_qkv, rotary_base; /* bounds of queries, keys and values (olmo, dbrx); for launch files; 0: not said */
    bool scaled_branches, scaled_logits; /* multipliers that are kernels whatever they are: granite; logits: cohere */
    bool scaled_head;                    /* what the head reads is scaled, not what it makes: minicpm3 */
    double attention_softcap, logit_softcap, embed_scale; /* embed_scale: 1 when none, else an extra multiply */
    bool scores_fp32, softmax_fp32, score_scale, baddbmm; /* eager attention as the implementation writes it */
    bool score_mask;         /* eager attention masks scores by a mask of its own first: gpt_neo */
    bool key_broadcast;      /* a single key head is broadcast, not expanded: falcon */
    bool sinks, sink_scales; /* gpt_oss; granite_swa: a factor of attention's result instead of a column of scores */
    bool score_floor;        /* masked scores are raised to the format's lowest: xglm */
    bool mask_absent; /* asked for fused attention the library makes no mask, though scores are written out: rembert */
    bool never_masks; /* its code makes no mask of its own, traced or not: whisper, dinov2, diffusers' */
    bool twin_unmasked;   /* another library's twin passes no mask and is meant where no stack is named: timm's vit */
    bool no_sdpa;         /* the implementation has eager (or flash) attention alone */
    bool sinks_apart;     /* scores with the sink have a name of their own beside those without: gpt_oss */
    bool keys_spread;     /* keys and values are copied for every head, attention has a mask: falcon-40b */
    bool scores_returned; /* a layer returns its probabilities, which live on while the next one runs: bloom, gptj */
    int64_t window;       /* sliding window; 0: none */
    int64_t window_every; /* of each `window_every` layers the last one is full; 0: all alike */
    bool chunked;         /* `window` is a chunk's width: a query sees its own chunk up to itself (llama4) */
    int64_t turn_every;   /* of each `turn_every` layers the last one is not rotated; 0: all are (smollm3) */
    bool turn_windowed;   /* layers with a window are rotated and no others (cohere2, exaone4) */
    double embed_dropout, attention_dropout;
    double residual_dropout, mlp_dropout; /* on what attention and on what the MLP adds to the stream */
    double activation_dropout;            /* inside the MLP, after the activation: t5, whisper */
    bool gate_limits;                     /* gates and what they gate are clamped first: deepseek_v4, minimax_m3 */
    bool gate_soft;                       /* x sigmoid(a x) of the gate, times up + 1: minimax_m3 */
    bool loss_fp32;                       /* the loss copies logits to fp32 */
    bool lm_head, mlm_head, pooler;       /* mlm_head: dense, activation, norm, decoder */
    int64_t codebooks;                    /* whose words are read and written at once: musicgen; 0 and 1: one */
    int64_t head_width;                   /* of an encoder's head before the vocabulary: electra, rembert; 0: hidden */
    bool logits_offset;                   /* final_logits_bias: bart */
    bool head_dense;                      /* the same before a decoder's head: modernbert-decoder */
    int64_t layers_each;                  /* layers that one of the config's is: longcat_flash; 0 and 1: one */
    bool attn_experts;                    /* queries and what attention made pass experts of their own: jetmoe */
    int64_t free_layers;                  /* layers that are run without gradients: hrm_text */
    int64_t layer_runs;                   /* how often a layer's weights run in one pass: hrm_text; 0 and 1: once */
    int64_t labels;                       /* classification head; 0: none */
    /* mixture of experts */
    int64_t experts, topk, moe_ffn, shared_experts, shared_ffn /* of all shared experts together */;
    int64_t first_dense, moe_every;
    int64_t sparse_encoder_layers, sparse_decoder_layers;
    double router_jitter; /* noise on what enters the router and the experts, in training: phimoe */
    bool all_experts;     /* plain transformers sends every token through every expert: llama4 */
    bool shared_gate, router_fp32, router_sigmoid, router_bias, expert_bias, expert_loop;
    bool expert_cuts; /* that loop runs over parts of tokens that were sorted: aria */
    ft_routing routing;
    bool router_renormalised; /* weights of the chosen are divided by their sum: mixtral, qwen3_moe */
    bool router_wide;         /* and stay in fp32, as what the experts make becomes: mixtral, hunyuan_v1_moe */
    int64_t expert_groups, picked_groups; /* a token picks its experts in so many of the groups; 0: in all */
    /* multi-head latent attention */
    int64_t q_lora, kv_lora, nope_dim, rope_dim, v_dim;
    /* images and sound */
    int64_t image, patch, channels, out_channels, mel_bins, max_source, max_target;
    int64_t stages, depth[FT_MAX_STAGES], width[FT_MAX_STAGES], stem_width;
    bool bottleneck;
    bool stride_first_stage, stride_on_1x1; /* resnet: downsample_in_first_stage, downsample_in_bottleneck */
    bool layer_scale;                       /* convnext, dinov2 */
    bool class_absent, mask_token, pool_head, patch_bias_absent, backbone; /* vit's kin; backbone: no head of its own */
    bool pool_mean, relative_table; /* the mean of the patches is classified; a bias by distance: beit */
    int64_t neck;                   /* SAM's, of so many channels; 0: none */
    int64_t registers;              /* tokens beside the class's: dinov3 */
    double ffn_ratio;               /* of `ffn` to `hidden`, where a config says that; 0: it does not */
    bool ffn_two_thirds;            /* a gated network is two thirds as wide, in eights: dinov2 */
    /* sound: `stages` filters of `width` channels, `depth` samples and these strides */
    int64_t strides[FT_MAX_STAGES];
    bool conv_norms; /* each is normed, not the first alone */
    /* denoisers */
    int64_t single_layers, dual_layers;        /* in one stream; whose images attend twice */
    int64_t context_dim, pooled_dim, time_dim; /* of the text's tokens, of its summary, of the time step's sines */
    bool guided, words_end, cross_norm, linear_ends;
    int64_t latent_frames, latent_height, latent_width, latent_span; /* span: frames of a latent behind the first */
    int64_t latent_pixels;                            /* a side of what one latent stands for; 0: inputs are pixels */
    int64_t middle_depth, stage_heads[FT_MAX_STAGES]; /* unet: layers of the lowest block; heads by stage */
    int64_t vision_hidden, vision_ffn, vision_layers, vision_heads, projection; /* clip's other tower */
    /* state space */
    int64_t state, conv_kernel, expand, groups, chunk;
    bool conv_bias, residual_fp32;
    int64_t ssm_heads, ssm_head_dim, ssm_inner, dt_rank; /* mamba layers of a hybrid, whose `heads` are attention's */
    bool ssm_bias;                                       /* of the products in and out */
    bool ssm_norm_absent;                                /* the result is gated, not normed: falcon_h1 */
    bool ssm_norms_inside;                               /* B, C and dt are normed: jamba */
    /* linear attention */
    ft_delta_kind delta;
    int64_t delta_key_heads, delta_value_heads, delta_key_dim, delta_value_dim;
    bool delta_decay_full; /* decays by channel come of one product too: bailing_hybrid */
    bool delta_gate_full;  /* the output gate is one product, not two through a head's width: kimi_k3 */
    /* further turns of attention */
    ft_mixer mixer; /* of layers that no rule says otherwise of */
    ft_attn_gate attn_gate;
    int64_t relative_rank, relative_extent; /* scores get a bias by distance, of a product of so many columns for each
                                             * head; how far it reaches in layers without a window: inkling */
    bool stream_convs;  /* keys, values and what both halves of a layer add pass a short convolution: inkling */
    bool qk_convs;      /* queries and keys pass two short convolutions together: zaya */
    bool stream_scaled; /* the stream is fp32, and both sides of a sum are moved and scaled by channel: zaya */
    bool dynamic_mask;  /* attention is masked by what values say: doge */
    bool sub_norms;     /* what attention and the network made is normed before their last products: bitnet */
    bool mlp_sub_norm;  /* the network's alone: kosmos-2.5 */
    bool value_norm;    /* values are normed without a weight: gemma4 */
    int64_t index_heads, index_dim, index_topk; /* an indexer picks so many tokens: deepseek_v32 */
    int64_t index_blocks;                       /* whose keys are blocks of so many tokens: minimax_m3 */
    int64_t index_pool;                         /* whose keys are gated means of so many tokens: glm5_next */
    int64_t index_mean;                         /* whose keys are plain means of so many tokens: qwen4_exp */
    int64_t ngram_size, ngram_heads, ngram_vocab, ngram_width, ngram_kernel; /* tables of hashed n-grams (ngrams.c) */
    int64_t out_groups, out_lora; /* the last product in groups through a low rank: deepseek_v4 */
    int64_t streams;              /* residual streams that hyper-connections mix: deepseek_v4; 0 and 1: one */
    int64_t streams_rank;    /* which are normed and gated by channel through so narrow a product: qwen4_exp; 0: not */
    bool streams_mean;       /* which are averaged before the head, not weighed: glm5_next */
    bool streams_apart;      /* which are read and written, but not mixed with each other: hy_v4 */
    int64_t residual_blocks; /* attention over what earlier blocks added: kimi_k3 */
    int64_t router_width;    /* the router is a network of this width: zaya; 0: one product */
    bool router_norm;        /* the router norms and scales its input: gemma4 */
    int64_t per_layer_width, per_layer_vocab; /* every layer adds an embedding of its own: gemma3n, gemma4 */
    int64_t shared_blocks;                    /* sets of such shared weights, in turn */
    bool shared_adapted;                      /* queries, keys and values have pairs of low rank too */
    int64_t shared_adapter; /* rank of what each use of a shared layer adds of its own: zamba2; 0: no such layer */
    int64_t altup;          /* copies of the stream, of which layers read one: gemma3n; at most 4; 0: none */
    int64_t laurel_rank;    /* of the product beside attention there */
    double beside;          /* parameters of parts that run with sound or images alone, and lie where they are */
    int64_t draft_width;    /* of a target model, whose states are read and made, and whose keys are seen (drafts.c) */
    int64_t centroids, centroid_topk; /* of so many groups of words a drafter scores the best; 0: it scores all */
    bool layer_scalar;                /* a number multiplies the layer's result: gemma4 */
    int64_t expert_width;             /* of what experts read, where not `hidden`: nemotron_h; 0: hidden */
    bool expert_latent_norm;
    bool expert_plain; /* up, activation, down without a gate: nemotron_h */
    bool shared_plain;
    bool router_correction; /* a learned correction picks, without groups: minimax_m2 */
    int64_t zero_experts;   /* that a token may pick beside the others and that do nothing: longcat_flash */
    int64_t other_experts, other_moe_ffn; /* a second set, for the tokens of images: ernie4_5_vl_moe */
    /* what sees: a tower before the language model (tower.c) */
    int64_t tower_layers, tower_hidden, tower_ffn, tower_heads, tower_kv_heads, tower_head_dim;
    int64_t tower_patch, tower_frames, tower_channels;
    int64_t tower_positions;       /* rows of a learned table; 1: one for each patch of `tower_size` */
    int64_t tower_merge;           /* patches of so many by so many become one token */
    int64_t tower_mergers;         /* projectors: one, and one for each layer that is looked into */
    int64_t tower_out;             /* the projector's inner width; 0: a single product; 1: as wide as what it reads;
                             * 2: as the language model */
    int64_t tower_size;            /* an image's edge where the tower has one size; 0: any */
    int64_t tower_tokens;          /* of an image, where they are fixed */
    bool tower_class, tower_pools; /* a class token; merged patches are averaged, not joined: gemma */
    bool tower_gated, tower_bias, tower_mlp_bias, tower_rms, tower_sandwich, tower_qk_norm;
    bool tower_end_norm, tower_first_norm;
    bool tower_patch_bias, tower_layer_scale, tower_merge_norm_wide, tower_merge_bias, tower_merge_norm_absent;
    const char *tower_activation;
    bool tower_apart;   /* each image's attention is a launch of its own: transformers splits them by their lengths */
    bool tower_sampled; /* the table of positions is sampled at every patch's place: glm4v */
    bool tower_in_bias_absent, tower_out_bias_absent; /* of attention's first products; of its last */
    bool tower_split;                  /* queries, keys and values by products of their own: siglip, clip, pixtral */
    bool tower_masked;                 /* all images stand in one sequence, behind a mask of numbers: pixtral */
    bool tower_fused;                  /* SAM's windows take their biases as a mask to sdpa; else written out */
    int64_t tower_window, tower_whole; /* layers see windows so wide, but for so many of them: SAM's; 0: all see all */
    bool tower_pictures;               /* patches come of a convolution over whole images: siglip, clip, idefics3 */
    bool tower_keeps;                  /* every layer's result is kept until one of them is chosen: llava */
    bool tower_turned;                 /* queries and keys are turned in fp32 beside a table of positions: step3p7 */
    bool tower_source;     /* images are no part of the sequence: layers look at what the tower made (cross.c): blip */
    int64_t canvas;        /* tokens that are denoised behind the sequence, by the same layers (merged.c) */
    bool merged;           /* two stacks, the second of whose attention reads both at once (merged.c): t5gemma2 */
    bool cross;            /* layers have a half that looks at what an encoder made: trocr */
    int64_t source_tokens; /* of what another model made, which is given: musicgen */
    int64_t cross_every;  /* before each so many-th layer a gated one looks at what an encoder made: idefics; 0: none */
    bool cross_behind;    /* behind such a layer instead: evolla */
    int64_t cross_width;  /* of what they look at; 0: hidden */
    bool picture_masked;  /* with images the language model's attention has a mask of its own: paligemma, gemma3 */
    bool tower_pool_head; /* a learned query pools the patches, and nobody reads it: siglip's vision_use_head */
    /* what hears, at rest: whisper's encoder, or one behind three convolutions of ear_filters channels */
    int64_t ear_layers, ear_hidden, ear_ffn, ear_mel_bins, ear_filters, ear_out;
    int32_t step_count; /* 0: the projector is what tower_out and tower_merge say */
    ft_project_step steps[FT_MOST_STEPS];
    int64_t queries, query_hidden, query_layers, query_heads, query_kv_heads, query_head_dim; /* a resampler */
    int64_t query_ffn;         /* its network's width; 1: four times its own; 0: none */
    int64_t query_cross_every; /* of so many layers the first looks at the patches; 0 and 1: each */
    bool query_gated, query_bias, query_rms, query_self; /* self: its queries look at each other too: a Q-Former */
    /* modules that predict further tokens, of which the checkpoint has so many; a request says how many run (mtp.c) */
    int64_t mtp_layers;
    bool mtp_said; /* their layer is of a shape of its own, `mtp`; otherwise it is as the model's last */
    ft_layer_shape mtp;
    /* layers one by one, where no rhythm says them (plan.c) */
    int32_t kind_count; /* 0: none */
    ft_layer_shape kinds[FT_MOST_KINDS];
    uint8_t order[FT_MOST_PLANNED]; /* which kind each layer is */
    const ft_importer *importer;    /* FT_CUSTOM: who reads `file` */
    void *file; /* FT_CUSTOM: what the importer keeps of it; owned, ft__arch_release gives it back */
    int64_t fixed_batch, fixed_seq; /* sizes that such a file fixes; 0: as the request says */
    int64_t usual_batch, usual_seq; /* those that it means where the request says none; 0: it does not say */
    int64_t token_pixels, token_span, token_row, usual_height, usual_width, usual_frames; /* picture_size.c */
    bool samples;          /* it has no length: its inputs are images or the like */
    bool checkpointed;     /* its layers run again in the backward pass where the request says nothing of that */
    const char *warnings;  /* of the file, one per line; owned by it; NULL or "" for none */
    const char *quantized; /* the method by which the file's weights are stored ("awq"); NULL: by none */
    double quantized_bits; /* of a weight; 0: nothing that the program has a format for */
    ft_formats formats;    /* by kind of module, where quantized_bits is not 0 */
    bool kv_fp8, nearest;  /* comes with scales for a cache in fp8; read as a relative of what is not known */
    /* Of a graph file: all its attentions say whose they are; it has none; traced, its code makes masks, as ViT's. */
    bool says_attention, never_attends, traces_masks;
} ft_arch;

void ft__arch_release(ft_arch *arch);
/* Images have no tokens; rates of such models count samples. */
bool ft__counts_samples(const ft_arch *arch);
bool ft__attends(const ft_arch *arch); /* whether any of its layers does */
/* Scores that only the model's own code computes (DeBERTa, XLNet): no attention of another name takes their place. */
bool ft__own_scores(const ft_arch *arch);
const char *ft__rate_unit(const ft_arch *arch); /* "tokens/s", "images/s"; "samples/s" of a file that does not say */
#endif

/* What one iteration of a serving engine costs on one rank: decoding sequences with their contexts and pieces of
 * prompts together, from the library's own forecasts of kernels and exchanges.
 *
 * The graph is the one that engines run: fused products and norms, all-reduces with the norm behind them, paged
 * attention, fused experts. Everything that depends on tokens alone is tabled by tokens, attention by sequences and
 * contexts, prompts by length; a simulation of ten thousand requests then asks no kernel at all. */
#ifndef FT_SERVING_COST_H
#define FT_SERVING_COST_H
#include "comm/cluster.h"
#include "model/arch.h"
#include "serving/engine.h"
#include "study/context.h"

/* A layer that keeps a state instead of a cache, of the whole model: widths of its products in and out and of its
 * convolution, cells of a sequence's state, elements of a token's keys and values; what its convolution keeps of a
 * sequence, in 16 bits; and, between in and out, a product to `steps` (of which `rank` go on to all channels). */
typedef struct ft_state_layer {
    double layers, in, out, conv, cells, elements, tail, steps, rank;
} ft_state_layer;

/* A model as an engine holds it: formats of its parts, layers of each kind, how it is laid out. */
typedef struct ft_served {
    const ft_arch *arch;
    const ft_device *device;
    const ft_serving_engine *engine;
    ft_cluster cluster;
    int64_t cp; /* ranks that share every sequence: prompts' tokens, and of decoding ones the cache; 0: as 1 */
    double adapters, adapter_rank; /* LoRA adapters of requests; 0: none */
    int64_t tp, dp, ep, pp;        /* dp: attention-data-parallel ranks of one engine; ep: expert ranks over tp x dp */
    ft_dtype dtype;                /* of most products */
    ft_dtype qkv_dtype, out_dtype, mlp_dtype, expert_dtype, kv_dtype;
    ft_storage stored; /* how weights were asked to be stored; as computed where nothing was said */
    ft_storage storage, mlp_storage, expert_storage; /* of products in 16 bits; of experts in any format */
    bool by_module;     /* nobody named a format: parts are as the checkpoint stores them */
    ft_formats formats; /* then, with what the device lacks widened */
    double layers, full_layers, window_layers, dense_layers, expert_layers;
    double attention_layers; /* of `layers`, with attention's products */
    ft_state_layer states;
    double state_bytes; /* of a sequence, on one rank */
    bool latent;
    bool blocks;   /* fp8 products with a scale for every block: activations are quantised by a kernel of its own */
    double window; /* tokens that windowed layers see */
    double length; /* tokens of a whole request, of which windows keep their share; 0: nobody said */
    double weights_bytes;      /* on one rank */
    double kv_bytes_per_token; /* on one rank */
    double active_parameters;
} ft_served;

int64_t ft__served_gpus(const ft_served *m); /* of one engine */
/* What a device computes in where nothing narrower is asked for: bf16, or fp16 on those that lack it. */
ft_dtype ft__served_wide(const ft_device *d);
/* Fills formats, layers and bytes; arch, device, engine, cluster, degrees and the dtypes asked for are set. */
void ft__served_settle(ft_served *m);
/* Checkpoints of the model quantise its experts and nothing else: gpt-oss in mxfp4. */
bool ft__experts_alone(const ft_arch *a);

enum { FT_COST_TOKENS = 18, FT_COST_SEQUENCES = 6, FT_COST_CONTEXTS = 6, FT_COST_PROMPTS = 8 };

/* Of all layers. Points of tokens are powers of two, of sequences, contexts and prompts powers of four. */
typedef struct ft_cost_tables {
    double projections[FT_COST_TOKENS]; /* by tokens of a rank: attention's products, norms and exchanges */
    double mlp[FT_COST_TOKENS];         /* by tokens of all ranks */
    double head[FT_COST_TOKENS];        /* by rows that are sampled */
    double decode[FT_COST_SEQUENCES][FT_COST_CONTEXTS]; /* by sequences of a rank and tokens in the cache of each */
    double prompt[FT_COST_PROMPTS];                     /* attention of one prompt by itself */
} ft_cost_tables;

typedef struct ft_costs {
    ft_cost_tables ms, joules; /* joules: of one GPU, beyond what it draws while it waits */
    double send_ms_per_token;  /* pipeline: to the next stage */
    double nodes, launches;    /* of a replayed graph; of what is not replayed */
    double piece_launches;     /* of an iteration with prompts that is replayed in pieces */
    double graph_sequences;    /* of a rank, in its largest graph; 0: any */
    double prompt_ms;          /* of small kernels that an iteration with prompts has beside them */
    double spread;             /* half width of what the kernels are forecast with, as a logarithm */
    ft_source source;          /* the weakest of them that matters */
    int64_t dp, pp, cp;        /* cp 0: as 1 */
    const ft_serving_engine *engine;
    const struct ft_costs *draft; /* of who makes drafts; NULL: nobody, or at no cost */
    double drafts;                /* of a step */
} ft_costs;

/* Multi-token prediction: one layer of the model and its head, over and over. */
void ft__costs_of_layer(const ft_costs *model, double layers, ft_costs *out);
ft_status ft__costs_of(const ft_context *ft, ft_scratch *scratch, const ft_served *m, ft_costs *out, ft_error *err);

/* One iteration. */
typedef struct ft_iteration {
    double decoders;      /* sequences that decode, over all ranks */
    double context;       /* tokens in their caches, together */
    double tokens_each;   /* that each of them computes: 1, and drafts */
    double prompts;       /* prompts that are worked on */
    double prompt_tokens; /* new ones */
    double prompt_ms;     /* attention of these, ft__prompt_ms(end) - ft__prompt_ms(begin) summed */
    double rows;          /* that are sampled */
} ft_iteration;

double ft__iteration_ms(const ft_costs *c, const ft_iteration *i);
/* What the kernels and exchanges of one GPU draw in it, beyond a GPU that waits; prompts' attention is that of equal
 * prompts. */
double ft__iteration_joules(const ft_costs *c, const ft_iteration *i);
/* Attention of the first `length` tokens of a prompt, all layers. */
double ft__prompt_ms(const ft_costs *c, double length);
#endif

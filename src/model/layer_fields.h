/* What layers of one model may differ in, beside their kinds: fields of ft_layer_shape, which is declared (arch.h) and
 * compared (plan.c) by these lists. */
#ifndef FT_MODEL_LAYER_FIELDS_H
#define FT_MODEL_LAYER_FIELDS_H
#define FT_LAYER_SIZES(X)                                           \
    X(heads, "0: the model's own, as of the sizes below")           \
    X(kv_heads, "that queries of several heads may share")          \
    X(head_dim, "of queries and keys")                              \
    X(v_dim, "of values, where they have another width")            \
    X(rotary_dim, "of a head, as far as it is rotated")             \
    X(window, "tokens that a layer looks back; -1: all of them")    \
    X(ffn, "width inside the dense network")                        \
    X(moe_ffn, "width inside an expert")                            \
    X(topk, "experts that a token goes to")                         \
    X(shared_ffn, "width inside the experts that all tokens go to") \
    X(compress, "tokens to a summary: deepseek_v4; 0: none")
#define FT_LAYER_FLAGS(X)                                                                      \
    X(rotated, "queries and keys are turned by their positions")                               \
    X(chunked, "the window is a chunk of the sequence")                                        \
    X(sinks, "scores have a learned sink")                                                     \
    X(indexed, "an indexer picks the keys")                                                    \
    X(keys_are_values, "no product for values")                                                \
    X(shares_keys, "keys and values are an earlier layer's: gemma3n, gemma4")                  \
    X(start_bare, "no norm before attention: the first of modernbert, behind the embedding's") \
    X(grams, "embeddings of the last few tokens are added to the streams first: qwen4_exp")    \
    X(sparse_gate, "of the network's gates the largest alone pass: gemma3n")
#endif

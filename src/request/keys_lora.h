/* Keys inside `lora`, one row each. How a row reads is said in keys_list.h. */
#ifndef FT_REQUEST_KEYS_LORA_H
#define FT_REQUEST_KEYS_LORA_H

#define FT_LORA_KEYS(FLAG, PLAIN)                                                                                      \
    PLAIN(ADAPTER_RANK, "rank", WHOLE, 1, 65536, NO_WORDS, DEPENDS, "rank of every adapter; must agree with "          \
                                                                    "`lora_rank` if both are given")                   \
    FLAG(ADAPTER_TARGETS, "targets", ANY, 0, 0, NO_WORDS, DEPENDS, "lora-targets", 0, "NAME,...",                      \
      TRAIN | PLANS | CHOOSE,                                                                                          \
      "layers with adapters [the stack's]: q_proj,v_proj, linear_qkv, ..., or all-linear",                             \
      "the stack's: names of layers as peft, diffusers, torchtune, litgpt or Megatron call them "                      \
      "(`[\"q_proj\", \"v_proj\"]`, `[\"to_q\", \"to_out.0\"]`, "                                                      \
      "`[\"linear_qkv\"]`, `[\"c_attn\"]`), or `\"all-linear\"`; experts and routers get none")                        \
    FLAG(ADAPTER_DTYPE, "dtype", WORD, 0, 0, WORDS(adapter), DEPENDS, "lora-dtype", 0, NULL, TRAIN | PLANS | CHOOSE,   \
      "fp32 weights and products, the model's 16 bits, or fp32 weights under autocast [the stack's]",                  \
      "the stack's: `fp32` (weights and products), `bf16`, `fp16` (the model's format), `autocast` (fp32 weights, "    \
      "products in the model's format: peft under the Trainer's `bf16`)")                                              \
    FLAG(ADAPTER_DROPOUT, "dropout", REAL, 0, 0.99, NO_WORDS, DEPENDS, "lora-dropout", 0, "X", TRAIN | PLANS | CHOOSE, \
      "dropout on an adapter's input [the stack's]",                                                                   \
      "the stack's, mostly 0, with 4-bit weights 0.05: dropout on an adapter's input")                                 \
    PLAIN(ADAPTER_ALPHA, "alpha", REAL, 0, 1e9, NO_WORDS, DEPENDS,                                                     \
      "scales the result; read for completeness, it changes neither time nor memory")                                  \
    FLAG(ADAPTER_EMBEDDINGS, "train_embeddings", SWITCH, 0, 0, NO_WORDS, 0, "lora-embeddings", 0, NULL,                \
      TRAIN | PLANS | CHOOSE,                                                                                          \
      "embeddings and head are trained too (peft's modules_to_save)",                                                  \
      "false; true: copies of embedding and head are trained too (peft's `modules_to_save`)")                          \
    FLAG(ADAPTER_DORA, "dora", SWITCH, 0, 0, NO_WORDS, 0, "dora", 0, NULL, TRAIN | PLANS | CHOOSE,                     \
      "DoRA: a trained magnitude for every row of the weights",                                                        \
      "false; true: DoRA, a trained magnitude for every row of the weights, as peft runs it")
#endif

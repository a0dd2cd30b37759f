/* Every move, once: its name, the knob that it turns (moves of the same knob exclude each other), whether the step
 * computes the same numbers after it, and why it helps. KEPT: the same to the last bits of rounding, nothing to tune
 * again, nothing to validate; OTHER: not so; ASKED: by what it changes (ft__move_exact). An empty reason hangs on what
 * it changes, too (report/text/advice_words.c). What `to` of a move means stands behind its line. How a move is applied
 * is explain/moves.c, when it is worth a forecast explain/propose.c. */
#ifndef FT_EXPLAIN_MOVE_LIST_H
#define FT_EXPLAIN_MOVE_LIST_H

/* clang-format off */
#define FT_MOVE_LIST(X)                                                                                                \
    X(VOCAB, VOCAB, KEPT,          /* rows of the embedding and of the head, padded */                                 \
      "vocabulary GEMMs are not aligned to the 128 bytes that matrix units load")                                      \
    X(FFN, FFN, OTHER,             /* width of the MLP */                                                              \
      "its GEMMs are not aligned to the 128 bytes that matrix units load")                                             \
    X(HIDDEN, HIDDEN, OTHER,       /* width of the model */                                                            \
      "its GEMMs are not aligned to the 128 bytes that matrix units load")                                             \
    X(BATCH, BATCH, ASKED,         /* sequences; the step grows or shrinks with them */                                \
      "")                                                                                                              \
    X(MICRO, BATCH, KEPT,          /* sequences of a micro-batch; the step stays, accumulation follows */              \
      "the same step in other portions")                                                                               \
    X(EXECUTION, EXECUTION, KEPT,  /* ft_execution */                                                                  \
      "")                                                                                                              \
    X(LOSS, EXECUTION, KEPT,       /* ft_entropy; the kernels of the stack for that loss come with it */               \
      "no logits in memory; norms, rotary embeddings and gates are a kernel each")                                     \
    X(ATTENTION, ATTENTION, KEPT,  /* ft_attention_kind */                                                             \
      "scores never reach memory")                                                                                     \
    X(OPTIMIZER, OPTIMIZER, ASKED, /* ft_optimizer */                                                                  \
      "the update passes over memory once")                                                                            \
    X(DTYPE, DTYPE, OTHER,         /* ft_dtype; FT_MOVE_AUTOCAST added where parameters stay fp32 */                   \
      "faster matrix units, fewer bytes")                                                                              \
    X(RECOMPUTE, RECOMPUTE, KEPT,  /* ft_recompute */                                                                  \
      "")                                                                                                              \
    X(IMAGES, IMAGES, KEPT,        /* channels last */                                                                 \
      "convolutions run without transposing")                                                                          \
    X(KV, KV, OTHER,               /* ft_dtype of the cache */                                                         \
      "half the cache to read")                                                                                        \
    X(WEIGHTS, WEIGHTS, OTHER,     /* bits */                                                                          \
      "fewer bytes of weights to read")                                                                                \
    X(CACHE, CACHE, KEPT,          /* ft_cache_kind */                                                                 \
      "the cache is not copied at every token")                                                                        \
    X(ADAPTERS, ADAPTERS, OTHER,   /* rank */                                                                          \
      "no gradients and no states of frozen weights")                                                                  \
    X(DEGREES, DEGREES, KEPT,      /* ft_shift */                                                                      \
      "the same GPUs along other axes")                                                                                \
    X(ZERO, ZERO, KEPT,            /* stage */                                                                         \
      "states are shared out or exchanged")                                                                            \
    X(COPIES, ZERO, KEPT,          /* ZeRO stage on eight GPUs, for who has one */                                     \
      "states are shared out or exchanged")                                                                            \
    X(SEQUENCE, SEQUENCE, KEPT,    /* sequence parallel on */                                                          \
      "norms and residuals are split too")                                                                             \
    X(PIECES, PIECES, KEPT,        /* tensor ranks exchange beside their products */                                   \
      "user buffers or AsyncTP: in pieces, as they are computed")                                                      \
    X(GATHER, GATHER, KEPT,        /* sharded parameters gathered by the layer, ahead */                               \
      "one exchange a layer, and kernels beside it")                                                                   \
    X(DISPATCH, DISPATCH, KEPT,    /* a token travels once to several of its experts */                                \
      "several of its experts live in one place")                                                                      \
    X(EXPERT_OVERLAP, EXPERT_OVERLAP, KEPT, /* tokens travel beside another micro-batch's kernels */                   \
      "what one micro-batch sends hides behind what another computes")                                                 \
    X(WHOLE_EXPERTS, WHOLE_EXPERTS, KEPT,   /* spread over tensor ranks too */                                         \
      "tensor ranks send their own tokens and gather none")                                                            \
    X(SCHEDULE, SCHEDULE, KEPT,    /* ft_schedule */                                                                   \
      "stages wait less for each other")                                                                               \
    X(CHUNKS, SCHEDULE, KEPT,      /* virtual stages */                                                                \
      "stages wait less for each other")                                                                               \
    X(OVERLAP, OVERLAP, KEPT,      /* gradients exchanged beside the backward pass */                                  \
      "the exchange hides behind kernels")                                                                             \
    X(BUCKET, BUCKET, KEPT,        /* MiB */                                                                           \
      "larger messages use the links better")                                                                          \
    X(WIRE, WIRE, OTHER,           /* bytes of a gradient's element on the wire */                                     \
      "half the bytes on the wire")                                                                                    \
    X(WORKERS, WORKERS, KEPT,      /* loader processes */                                                              \
      "samples are prepared beside the step")                                                                          \
    X(PINNED, PINNED, KEPT,        /* loader: pinned memory */                                                         \
      "the copy no longer holds the process up")                                                                       \
    X(PACKED, PACKED, KEPT,        /* loader: packed shards instead of files */                                        \
      "read sequentially, storage gives its full bandwidth")                                                           \
    X(GPU, GPU, KEPT,              /* another GPU */                                                                   \
      "the same request")
/* clang-format on */
#endif

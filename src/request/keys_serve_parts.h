/* Keys inside `slo`, `speculative` and `disaggregated` of a request for serving, one row each. How a row reads is said
 * in keys_list.h. */
#ifndef FT_REQUEST_KEYS_SERVE_PARTS_H
#define FT_REQUEST_KEYS_SERVE_PARTS_H

#define FT_SLO_KEYS(FLAG, PLAIN)                                                                                       \
    PLAIN(SLO_TTFT, "ttft_ms", REAL, 1e-6, 1e9, NO_WORDS, DEPENDS, "longest time to the first token")                  \
    PLAIN(SLO_TPOT, "tpot_ms", REAL, 1e-6, 1e9, NO_WORDS, DEPENDS, "longest time per output token")                    \
    PLAIN(SLO_E2E, "e2e_ms", REAL, 1e-6, 1e9, NO_WORDS, DEPENDS, "longest time of the whole request")                  \
    PLAIN(SLO_SHARE, "share", REAL, 0.01, 1, NO_WORDS, 0.9, "0.9: share of the requests that must meet them")

#define FT_SPECULATIVE_KEYS(FLAG, PLAIN)                                                                               \
    PLAIN(DRAFTS, "tokens", REAL, 1, 64, NO_WORDS, DEPENDS, "draft tokens per step")                                   \
    PLAIN(ACCEPTED, "accepted", REAL, 1, 65, NO_WORDS, DEPENDS,                                                        \
      "tokens that a step yields on average, from 1 to one more than the drafts")

#define FT_DISAGGREGATED_KEYS(FLAG, PLAIN)                                                                             \
    PLAIN(PREFILL_SIDE, "prefill", SECTION, 0, 0, NO_WORDS, DEPENDS, "number of prefill engines")                      \
    PLAIN(DECODE_SIDE, "decode", SECTION, 0, 0, NO_WORDS, DEPENDS, "number of decode engines")

/* Inside `prefill` and `decode` of `disaggregated`. */
#define FT_SIDE_KEYS(FLAG, PLAIN)                                                                                      \
    PLAIN(SIDE_WORKERS, "workers", WHOLE, 1, 10000, NO_WORDS, 1, "1: engines")                                         \
    PLAIN(SIDE_TP, "tp", WHOLE, 1, 4096, NO_WORDS, 1, "1: tensor ranks per engine")                                    \
    PLAIN(SIDE_PP, "pp", WHOLE, 1, 1024, NO_WORDS, 1, "1: pipeline stages per engine")                                 \
    PLAIN(SIDE_DP, "dp", WHOLE, 1, 4096, NO_WORDS, 1, "1: attention-data-parallel ranks per engine")                   \
    PLAIN(SIDE_CP, "cp", WHOLE, 1, 4096, NO_WORDS, 1, "1: context ranks per engine, which share every sequence")       \
    PLAIN(SIDE_EP, "ep", WHOLE, 1, 65536, NO_WORDS, 1, "1: expert ranks per engine, over tp x dp")
#endif

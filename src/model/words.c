/* words.c: what requests and stacks call kinds of attention and execution. */
#include "model/workload.h"

const char *const ft__attention_words[FT_ATTENTION_KINDS] = {
    [FT_FLASH] = "flash", [FT_EAGER] = "eager", [FT_SDPA] = "sdpa", [FT_FLASH1] = "flash1", [FT_FLASH2] = "flash2"};
const char *const ft__execution_words[5] = {[FT_RUN_EAGER] = "eager",
                                            [FT_RUN_FUSED] = "fused",
                                            [FT_RUN_COMPILE] = "compile",
                                            [FT_RUN_CUDA_GRAPH] = "cuda_graph",
                                            [FT_RUN_IDEAL] = "ideal"};

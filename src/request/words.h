/* The words of requests, by the enums they stand for. */
#ifndef FT_REQUEST_WORDS_H
#define FT_REQUEST_WORDS_H
#include "model/workload.h"

typedef enum ft_detail { FT_SUMMARY, FT_LAYERS, FT_KERNELS } ft_detail;

extern const char *const ft__task_words[FT_TASK_COUNT];
extern const char *const ft__attention_words[FT_ATTENTION_KINDS];
extern const char *const ft__execution_words[5];
extern const char *const ft__scope_words[3];
extern const char *const ft__fusion_words[2];
extern const char *const ft__cache_words[3];
extern const char *const ft__optimizer_words[FT_OPTIMIZER_COUNT];
extern const char *const ft__recompute_words[3];
extern const char *const ft__module_words[FT_MODULE_COUNT];
extern const char *const ft__detail_words[3];
#endif

/* Engines, frameworks and stacks under the names that people type. */
#ifndef FT_BASE_SOFTWARE_H
#define FT_BASE_SOFTWARE_H
#include <stddef.h>

/* The candidate that is meant: ours of what others call it ("TensorRT-LLM": trtllm), or the nearest in letters. NULL:
 * none is. */
const char *ft__nearest_software(const char *wanted, const char *const *names, size_t count);
#endif

/* Blocks of prompts that stay in the cache after their request has ended. A block's hash stands for everything before
 * it too, so that the set of known hashes is the prefix tree: a prompt shares as many blocks as it has known ones from
 * its start. The least recently used leave first. */
#ifndef FT_SERVING_PREFIX_H
#define FT_SERVING_PREFIX_H
#include <stdint.h>

typedef struct ft_prefixes ft_prefixes;

/* `tokens`: of a block. NULL: out of memory. */
ft_prefixes *ft__prefixes_new(double tokens);
/* Tokens of the prompt that are there; they count as used now. */
int32_t ft__prefixes_match(ft_prefixes *p, const uint64_t *hashes, int32_t count);
int32_t ft__prefixes_known(const ft_prefixes *p, const uint64_t *hashes, int32_t count); /* without using them */
/* Keeps a prompt's blocks, at most `room` tokens of all. Where memory runs out fewer are kept. */
void ft__prefixes_keep(ft_prefixes *p, const uint64_t *hashes, int32_t count, double room);
void ft__prefixes_free(ft_prefixes *p);
#endif

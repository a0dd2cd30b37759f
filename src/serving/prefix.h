/* Blocks of prompts in the cache. A block's hash stands for everything before it too, so that the set of known hashes
 * is the prefix tree: a prompt shares as many blocks as it has known ones from its start. Requests under way hold
 * theirs; those that nobody holds stay while there is room, and the least recently used leave first. */
#ifndef FT_SERVING_PREFIX_H
#define FT_SERVING_PREFIX_H
#include <stdint.h>

typedef struct ft_prefixes ft_prefixes;

/* `tokens`: of a block. NULL: out of memory. */
ft_prefixes *ft__prefixes_new(double tokens);
double ft__prefixes_tokens(const ft_prefixes *p);
/* Tokens of the prompt that are there, and of those the ones that requests under way hold. */
int32_t ft__prefixes_known(const ft_prefixes *p, const uint64_t *hashes, int32_t count);
int32_t ft__prefixes_held(const ft_prefixes *p, const uint64_t *hashes, int32_t count);
/* Holds the known blocks from the start on; answers how many. */
int32_t ft__prefixes_hold(ft_prefixes *p, const uint64_t *hashes, int32_t count);
/* Adds blocks behind the `held` ones, up to the first that somebody else made meanwhile; answers how many are held
 * now. Where memory runs out fewer are. */
int32_t ft__prefixes_add(ft_prefixes *p, const uint64_t *hashes, int32_t held, int32_t count);
/* Lets go of the first `held` blocks; answers how many tokens of them others hold on to. */
double ft__prefixes_release(ft_prefixes *p, const uint64_t *hashes, int32_t held);
/* Blocks that nobody holds have `room` tokens. */
void ft__prefixes_trim(ft_prefixes *p, double room);
void ft__prefixes_free(ft_prefixes *p);
#endif

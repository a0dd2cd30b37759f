/* Structs that grow at their end: what a caller's compiler saw of one, and what this library knows of it. */
#ifndef FT_API_GROW_H
#define FT_API_GROW_H
#include <stddef.h>

#include "base/error.h"

/* Theirs -> ours, which the caller has filled with defaults. A longer one is a newer program's: refused where it holds
 * something that this library does not know. `what` is the struct's name in messages. */
ft_status ft__take_struct(void *ours, size_t our_size, const void *theirs, size_t their_size, const char *what,
                          ft_error *err);
/* Ours -> theirs; what they have beyond it becomes zero. */
void ft__give_struct(void *theirs, size_t their_size, const void *ours, size_t our_size);
#endif

/* How many tokens an engine's cache holds. */
#ifndef FT_SERVING_CACHE_ROOM_H
#define FT_SERVING_CACHE_ROOM_H
#include "serving/settle.h"

/* As the engine counts: a share of the memory, less weights and workspaces; or, of engines that ask for a share of what
 * these leave, all of it times that share. What is too large for the engine's own share is started with a larger one,
 * and a warning says so; a share that the request names is kept, and refused where it leaves nothing. */
ft_status ft__cache_room(const ft_serve_request *r, const ft_served *m, const ft_serving_engine *e,
                         double max_sequences, double budget, ft_text *warnings, double *out, ft_error *err);
#endif

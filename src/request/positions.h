/* Sequences that are longer than the model has positions for: answered, and said. */
#ifndef FT_REQUEST_POSITIONS_H
#define FT_REQUEST_POSITIONS_H
#include "model/arch.h"

typedef enum ft_beyond { FT_BEYOND_SEQ, FT_BEYOND_SEQUENCES, FT_BEYOND_REQUESTS } ft_beyond;
enum { FT_BEYOND_ROOM = 200 };

/* A warning without its end of line; "" where positions suffice, or nobody says how many there are. */
void ft__beyond_positions(const ft_arch *a, ft_beyond what, double tokens, char out[FT_BEYOND_ROOM]);
#endif

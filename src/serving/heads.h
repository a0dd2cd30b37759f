/* Whether an engine can deal a model's heads to its tensor ranks. */
#ifndef FT_SERVING_HEADS_H
#define FT_SERVING_HEADS_H
#include "serving/cost.h"

/* `key`: where the degree stands; the message names the nearest that can be. */
ft_status ft__served_heads(const ft_served *m, const char *key, ft_error *err);
#endif

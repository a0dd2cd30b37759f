/* Layers that keep a state instead of a cache (states.c). */
#ifndef FT_SERVING_STATES_H
#define FT_SERVING_STATES_H
#include "serving/kernels.h"

/* Counts a layer into *out and fills its shape; false: its mixer keeps no such state. */
bool ft__state_layer_of(const ft_arch *a, ft_mixer mixer, ft_state_layer *out);
/* Of one sequence, on one rank. */
double ft__state_bytes(const ft_served *m);
double ft__state_parameters(const ft_served *m); /* of a layer's products but the last, on one rank */
/* One layer's products, convolution and norms; without its exchange. */
ft_status ft__price_state_products(ft_pricer *p, double tokens, ft_priced *layer, ft_error *err);
/* All layers: states that are read and written once; a chunked scan over tokens. */
void ft__price_state_update(const ft_pricer *p, double sequences, ft_priced *out);
void ft__price_scan(const ft_pricer *p, double tokens, ft_priced *out);
#endif

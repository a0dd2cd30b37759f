/* Means and percentiles of times in constant memory: a histogram whose bins grow by half a percent. */
#ifndef FT_SERVING_TALLY_H
#define FT_SERVING_TALLY_H
#include <stdint.h>

enum { FT_TALLY_BINS = 5600 };

typedef struct ft_tally {
    double count, sum, least, most;
    double bin[FT_TALLY_BINS]; /* weights, from a tenth of a microsecond on */
} ft_tally;

void ft__tally_add(ft_tally *t, double ms, double weight);
double ft__tally_mean(const ft_tally *t);
/* 0.5 for the median; 0 where nothing was added. */
double ft__tally_quantile(const ft_tally *t, double share);
/* Share of the weight at or below. */
double ft__tally_share(const ft_tally *t, double ms);
#endif

/* How long the sequences are that a model is trained on, and what software makes batches of them. */
#ifndef FT_MODEL_LENGTHS_H
#define FT_MODEL_LENGTHS_H
#include <stdbool.h>
#include <stdint.h>

/* Batches are filled up to their longest sequence; likewise, of sequences that were sorted by length in large groups
 * before; sequences are put behind each other until they have `seq` tokens. */
typedef enum ft_batching { FT_BATCH_PAD, FT_BATCH_BUCKET, FT_BATCH_PACK, FT_BATCHING_COUNT } ft_batching;
/* What becomes of a sequence of more than `seq` tokens. */
typedef enum ft_longer { FT_LONGER_CUT, FT_LONGER_DROP, FT_LONGER_COUNT } ft_longer;

enum { FT_MIX_MOST = 64 };

/* A list of lengths with their shares, or a distribution between two ends whose logarithm is a place and a width
 * times a standard one: the normal (lognormal lengths), or one that falls off steeply above (Weibull's). */
typedef struct ft_length_mix {
    bool given;
    int count;                                  /* of the list, in rising order; 0: none */
    double at[FT_MIX_MOST], below[FT_MIX_MOST]; /* tokens; the share of sequences up to it */
    bool steep;                                 /* Weibull's */
    double scale, width, least, most;           /* of the distribution, before its ends are cut off */
    double under, within;                       /* its shares below `least`, and from there to `most` */
    double samples;                             /* of the data: one run sees each once */
    ft_batching batching;
    ft_longer longer;
    int64_t multiple; /* batches are filled up to a multiple of it */
} ft_length_mix;

/* With this mean and standard deviation between `least` and `most`: lognormal, or Weibull's where of so many samples
 * the longest would then be nearer to `most`. Infinite `most`: none is known. */
void ft__mix_spread(ft_length_mix *m, double mean, double spread, double least, double most, double samples);
/* Sorts the list, merges equal lengths, and turns shares (in `below`) into sums up to 1. */
void ft__mix_list(ft_length_mix *m);

/* Of a sequence as it is trained on, the tokens that a share `p` of sequences has at most. 0: `longer` drops all. */
double ft__mix_tokens(const ft_length_mix *m, int64_t seq, double p);
/* The share of sequences that are trained on. */
double ft__mix_kept(const ft_length_mix *m, int64_t seq);
/* Mean of tokens, and of tokens by tokens: how long the sequence is that a token stands in. */
double ft__mix_mean(const ft_length_mix *m, int64_t seq);
double ft__mix_mean_by_tokens(const ft_length_mix *m, int64_t seq);
/* Tokens that a share `p` of batches of so many sequences are filled up to at most. */
double ft__mix_padded(const ft_length_mix *m, int64_t seq, int64_t batch, double p);
/* All sequences are equally long. */
bool ft__mix_even(const ft_length_mix *m, int64_t seq);

/* The normal distribution's quantile. */
double ft__normal_quantile(double p);
#endif

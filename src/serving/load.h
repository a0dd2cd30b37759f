/* Requests as they come: from clients that wait for their answers, at a rate, or from a log. One at a time, so that a
 * log of millions is never in memory. */
#ifndef FT_SERVING_LOAD_H
#define FT_SERVING_LOAD_H
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

/* Tokens of prompts or answers. */
typedef enum ft_spread { FT_SPREAD_UNIFORM, FT_SPREAD_LOGNORMAL } ft_spread;
typedef struct ft_lengths {
    ft_spread kind;
    double mean;      /* uniform: the upper end where range is [low, 1] */
    double low, high; /* shares of it; lognormal: what lies outside is drawn again, high 0: all may be */
    double sigma;     /* lognormal */
    double centre;    /* lognormal: of the logarithm of the share, so that those that are kept have the mean */
    double scale;     /* of every length, so that all together have the mean; 0: as they are drawn */
} ft_lengths;
/* Fills `centre`. Bounds that the mean does not lie between, or that hardly anything is drawn between, are refused. */
bool ft__lengths_centre(ft_lengths *k);

/* Lengths that occurred together. */
typedef struct ft_length_pair {
    int32_t prompt, answer;
} ft_length_pair;

enum { FT_PROMPT_BLOCKS = 32 }; /* of a prompt that is drawn again, about */

/* One request as a client sends it. */
typedef struct ft_call {
    double sent_ms;
    int32_t prompt, answer; /* tokens */
    int32_t cached;         /* of the prompt, in the cache because a session goes on or a share is said to be */
    int32_t client, priority;
    int32_t turn; /* of a session, from 0 */
    int32_t
        hash_count; /* blocks of the prompt whose content is known by a hash: of a log, or of prompts that come again */
    const uint64_t *hashes; /* the load's, until its next request */
} ft_call;

typedef struct ft_log ft_log; /* log.c */

typedef struct ft_load {
    int64_t clients; /* closed loop; 0: open */
    double rate_per_s, burstiness;
    double stretch; /* of the gaps between requests of an open loop; 0: as they are drawn */
    ft_log *log;
    ft_lengths prompt, answer;
    const ft_length_pair *pairs; /* drawn from instead, as often as they stand there; NULL: none */
    size_t pair_count;
    double prefix_share; /* of every prompt that is in the cache */
    int64_t prompts;     /* that requests draw from; 0: all differ */
    double hash_tokens;  /* of a block of theirs */
    uint64_t hashes[2 * FT_PROMPT_BLOCKS];
    int64_t turns; /* of a session; 1: single requests */
    double think_ms;
    bool steady;      /* clients do not start together */
    int64_t requests; /* INT64_MAX: until the log ends */
    uint64_t state;   /* of the random numbers */
    double clock_ms;  /* of the last request of an open loop */
    int64_t made;
} ft_load;

void ft__load_seed(ft_load *l, uint64_t seed);
/* Stretches the gaps of an open loop, so that its last request comes after requests / rate_per_s: the mean of what is
 * drawn is the rate that was asked for, as vLLM's load generator has it since 0.10. */
void ft__load_stretch(ft_load *l);
/* Scales lengths, so that all requests together have the mean that was asked for, whatever is drawn: load generators
 * print the mean of what they drew, and few requests are far from the mean of what they draw from. */
void ft__load_scale(ft_load *l);
/* Lengths of a request of this client, sent at this time. */
void ft__load_call(ft_load *l, int32_t client, double sent_ms, ft_call *out);
/* The next of an open loop or a log; false: there is none. */
ft_status ft__load_next(ft_load *l, bool *more, ft_call *out, ft_error *err);

/* A log of requests: CSV with a header or JSONL; the Azure and Mooncake layouts too. Lines out of order or broken are
 * refused with their number. */
ft_status ft__log_open(const char *path, ft_log **out, ft_error *err);
ft_status ft__log_next(ft_log *log, bool *more, ft_call *out, ft_error *err);
/* Prompts and answers of a file in one of these layouts, times left out or passed over; the first million. Free them.
 */
ft_status ft__log_lengths(const char *path, ft_length_pair **out, size_t *count, ft_error *err);
double ft__log_share(const ft_log *log);        /* of its bytes, that have been read */
double ft__log_block_tokens(const ft_log *log); /* tokens that one hash stands for */
void ft__log_close(ft_log *log);
#endif

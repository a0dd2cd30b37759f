/* What failures leave of a long run: how often to save, and which share of its time is useful.
 *
 * A job of n nodes, each of which stops it so many times a day, fails every M = a day / (n * rate) on average, as a
 * Poisson process. It saves every t seconds of work, which holds it up for d; a failure costs what was done since the
 * last save, and R until it runs again. */
#ifndef FT_COST_GOODPUT_H
#define FT_COST_GOODPUT_H
#include "base/error.h"

typedef struct ft_failures {
    double per_node_day; /* 0: none ever */
    double low, high;    /* its interval */
    double restart_s, save_s;
    double interval_s;   /* of work between saves; 0: what Daly says */
    double storage_gbps; /* GB/s that a checkpoint is written and read with, by all nodes together; 0: enough */
} ft_failures;

/* What clusters report (data/constants/cost/failures.json), and nothing at all. */
ft_failures ft__failures_usual(void);
ft_failures ft__failures_none(void);

typedef struct ft_goodput {
    double mtbf_s;     /* infinite: none */
    double interval_s; /* work between saves */
    double useful;     /* share of the time that work takes of the whole */
    double low, high;  /* of it, over the interval of the rate */
    double checkpoint_bytes;
} ft_goodput;

/* Seconds of work between saves that cost `save_s` (Daly 2006, to the third order); as long as the job where nothing
 * fails, at most the time between failures. */
double ft__daly_interval(double save_s, double mtbf_s);
/* Share of useful work when every `interval_s` of it is followed by a save (Daly's complete model). */
double ft__useful_share(double interval_s, double save_s, double restart_s, double mtbf_s);

/* Checkpoints are written beside the work: the next begins when the last is written. A restart reads one. */
ft_goodput ft__goodput(const ft_failures *f, double nodes, double checkpoint_bytes);
/* Failures to expect in so many seconds. */
double ft__expected_failures(const ft_goodput *g, double seconds);

/* Bytes of a checkpoint of so many trained parameters. */
double ft__checkpoint_bytes(double parameters);
#endif

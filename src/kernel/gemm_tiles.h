/* What a matrix-multiply library could have picked: tile and split-K by minimum of their modelled times. */
#ifndef FT_KERNEL_GEMM_TILES_H
#define FT_KERNEL_GEMM_TILES_H
#include <stdint.h>

#include "kernel/family.h"
#include "kernel/feature.h"

typedef struct ft_gemm_tile {
    int m, n;
} ft_gemm_tile;

enum { FT_GEMM_MAX_TILES = 48 };

typedef struct ft_gemm_search {
    double batch, m, n, k;
    double sms;
    const ft_gemm_tile *tiles;
    int tile_count;
    const double *tile_efficiency; /* per tile, of the arithmetic rate; NULL: 1 */
    double flop_per_ms_sm;         /* arithmetic rate of one SM, where nothing is capped */
    double cap;                    /* share of that which the units may run at (ft__matrix_cap); 0: all of it */
    double capped_flop_per_ms_sm;  /* and the peak of one SM then */
    double feed_bytes_per_ms_sm;   /* operands an SM can pull from L2 */
    double element_bytes;
    double k_step;               /* K is padded to this */
    double prologue_k;           /* filling the pipeline costs as much as this many K elements */
    double lone;                 /* share of the rate that one tile per SM reaches; two or more hide latencies: 1 */
    double wave_ms;              /* start and end of a tile that nothing overlaps */
    double hidden;               /* share of it that tiles behind an SM's first hide: the next one is under way */
    double wave_ms_per_element;  /* writing its outputs, where that goes through the SM in small pieces */
    double quantisation;         /* 1: whole waves; 0: tiles spread evenly */
    double memory_ms;            /* traffic to device memory, the same for every tile */
    double smooth;               /* how much the smaller of two roofs still costs */
    double split_ms;             /* the second kernel of split-K */
    double split_ms_per_element; /* its traffic, per partial sum element */
    uint64_t allowed;            /* bit t: the library has tile t for this product; 0: all */
    double habit;        /* share of the time that follows the library's few favourite tiles, not the best one */
    uint64_t favourites; /* bit t: tile t is one */
    int max_split;       /* 1: no split-K */
    int min_split;       /* the library splits K at least so often; 0: as it likes */
    double least_k;      /* the shortest piece; 0: 128, or two steps when split finely */
    bool finely;         /* K is split by any whole number */
} ft_gemm_search;

typedef struct ft_gemm_pick {
    double ms, compute_ms; /* compute_ms: without memory and split-K cost */
    int tile, split;
    double tiles, waves;
    float log_ratio[FT_GEMM_MAX_TILES]; /* unsplit compute time of every tile over the best one, as a log2: features */
} ft_gemm_pick;

void ft__gemm_pick(const ft_gemm_search *s, bool want_ratios, ft_gemm_pick *out);

/* What the board's power makes of it: energy per flop (a factor on ft__energy_pj), the rate it would run at, and how
 * fast the clock gives way. */
typedef struct ft_gemm_power {
    double energy, tflops, time_us;
} ft_gemm_power;

/* Picks, slows the arithmetic down to what power allows, and fills all of `out` but features and note. */
void ft__gemm_outcome(const ft_device *device, const ft_op *op, const ft_gemm_search *s, ft_gemm_power power,
                      double scale, bool want_ratios, ft_gemm_pick *pick, ft_physics *out);

/* Writing and reading a partial sum of split-K, in ms per element. */
double ft__gemm_partial_ms(const ft_device *device);
/* What an SM pulls from L2 at least at this clock, in bytes per ms. */
double ft__gemm_least_feed(double mhz);

/* max(a, b), a little more when both are close: kernels do not overlap perfectly. With c = 0.26 this is within 1.3 %
 * of the 3-norm, without its cube root; it grows in both arguments for c up to 0.5. */
static inline double ft__smooth_max(double a, double b, double c)
{
    double high = a > b ? a : b, low = a > b ? b : a, r = high > 0 ? low / high : 0;
    return high * (1 + c * r * r * r);
}

/* Largest power of two, up to 16, that divides the byte length of `elements`. */
int ft__gemm_alignment(int64_t elements, double element_bytes);
/* Alignment of the rows of A, B and C in this layout; returns the smallest. */
int ft__gemm_op_alignment(const ft_op *op, int each[3]);
/* Traffic of a GEMM: what reaches device memory when L2 starts cold (reloads included), and the share of it that L2
 * still holds when the same product ran a moment ago, as in a benchmark's loop or a decode step's small layers.
 * `capacity`: the share of L2 that data survives in. */
double ft__gemm_bytes(const ft_device *device, const ft_op *op, double capacity, double *resident);
/* Time of that traffic: the resident share, as far as the cache is `warm`, comes at L2's rate instead. `ramp_ms`:
 * filling and draining the memory pipeline, the more of it the longer the stream. */
double ft__gemm_memory_ms(const ft_device *device, double bytes, double resident, double bandwidth_efficiency,
                          double warm, double l2_bytes_per_flop, double ramp_ms);
#endif

/* Gradient boosting with oblivious trees: small, fast to evaluate, hard to overfit. */
#ifndef FT_FIT_BOOST_H
#define FT_FIT_BOOST_H
#include "base/error.h"
#include "kernel/predictor.h"

typedef struct ft_boost_data {
    const uint32_t *key; /* count x width, row-major: ft__feature_key of every feature */
    size_t count;
    int width;
    const float *target;
    const float *weight;
} ft_boost_data;

typedef struct ft_boost_options {
    int trees, depth;
    double rate;           /* learning rate */
    double ridge;          /* a leaf of total weight w moves w/(w + ridge) of the way */
    double rows, features; /* share of each that a tree sees */
    double enough;         /* relative gain of forty trees below which more are not worth their time; 0: never */
    double clip;           /* residuals beyond this pull no harder (Huber) */
    double steps;          /* the largest leaf, in steps of a power of two: small numbers pack; 0: 127 */
} ft_boost_options;

/* Fits up to `options->trees` trees to the target, fewer when forty of them gained less than `options->enough` of the
 * error: the rest are left empty. *base is the constant in front. Same data, same trees. */
ft_status ft__boost(const ft_boost_data *data, const ft_boost_options *options, double *base, ft_tree *trees,
                    ft_error *err);
/* How many of `count` trees are left when the empty ones at the end are cut off. */
uint32_t ft__boost_used(const ft_tree *trees, int count);
#endif

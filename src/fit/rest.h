/* What physics leaves of one GPU's points, learned by trees, by a Gaussian process, or by both. */
#ifndef FT_FIT_REST_H
#define FT_FIT_REST_H
#include "fit/boost.h"
#include "fit/process.h"

typedef enum ft_rest_kind {
    FT_REST_NONE,
    FT_REST_TREES,
    FT_REST_PROCESS,
    FT_REST_BOTH, /* trees on what the process leaves */
    FT_REST_MEAN, /* half of each by itself */
    FT_REST_KINDS
} ft_rest_kind;

/* Points under one set of constants: features, keys, and what is left (log). */
typedef struct ft_frame {
    float *x;
    uint32_t *key;
    double *left;
    float *weight;
    size_t count;
    int width;
} ft_frame;
ft_status ft__frame_new(size_t count, int width, ft_frame *out, ft_error *err);
void ft__frame_free(ft_frame *f);

typedef struct ft_rest {
    ft_tree *trees;
    int tree_count;
    double front; /* in front of the trees */
    ft_process process;
    float *values;
} ft_rest;

/* Fits one kind to the points of `f` whose fold is not `without` (-1: all). */
ft_status ft__rest_fit(const ft_frame *f, const uint8_t *fold, int without, ft_rest_kind kind, ft_rest *out,
                       ft_error *err);
/* All kinds at once for the points of fold `without`: learned[kind * f->count + i]. */
ft_status ft__rest_try(const ft_frame *f, const uint8_t *fold, int without, double *learned, ft_error *err);
void ft__rest_free(ft_rest *r);

/* The same tree with every leaf times `share`, on the finest scale that holds it. */
void ft__tree_scale(ft_tree *tree, double share);
#endif

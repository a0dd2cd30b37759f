/* conv_choice.c: which kernel the library takes for a convolution, as its own heuristic answered.
 *
 * cuDNN's heuristic can be asked without a GPU: it answers an engine and its tile for a shape and a description of a
 * device. data/choices/convolutions.bin holds a decision tree for each of the three products, grown on such answers
 * (python/measure/choices.py). Shapes alone decide there: nothing in it was timed. It is asked for GPUs of the kind
 * that was described, in 16 bits and without groups; elsewhere nothing is known. */
#include "kernel/conv_choice.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "kernel/embedded_predictor.h"
#include "kernel/feature.h"

enum { PRODUCTS = 3, FEATURES = 24, TWOS = 8, LEAF = 255, STEP = 8, MAGIC = 0x31435446 /* FTC1 */ };

typedef struct head {
    uint32_t magic, features;
    struct {
        uint32_t at, cuts, classes, nodes; /* the tree's first byte; how many of each */
    } tree[PRODUCTS];
} head;
/* A tree: cuts of every feature counted in a byte, the cuts, what the classes are, the nodes. A node's left child
 * follows it. */
typedef struct class
{
    uint8_t way, m, n, blank; /* sides of the tile in steps of 8 */
} class;
typedef struct node {
    uint8_t feature, cut; /* LEAF: `cut` is its class */
    uint16_t right;
} node;

static double blocks(double m, double n, double tile_m, double tile_n) { return ceil(m / tile_m) * ceil(n / tile_n); }

static double fill(double count, double sms) { return count / sms / ceil(count / sms); }

/* In the order that choices.py has them. */
static void describe(const ft_device *device, const ft_op *op, const ft_conv_layer *l, int product, float *f)
{
    double sms = device->sms, in = l->n * l->h * l->w;
    double m = product == 0 ? l->pixels : product == 1 ? in : l->k;
    double n = product == 0 ? l->k : product == 1 ? l->c : l->c * l->taps;
    double k = product == 0 ? l->c * l->taps : product == 1 ? l->k * l->taps : l->pixels;
    double large = blocks(m, n, 128, 128), small = blocks(m, n, 64, 64);
    const double all[FEATURES] = {l->nhwc,
                                  l->n,
                                  l->c,
                                  l->k,
                                  l->h,
                                  l->w,
                                  l->oh * l->ow,
                                  l->taps,
                                  l->r,
                                  l->s,
                                  l->stride,
                                  m,
                                  n,
                                  k,
                                  m * n * k,
                                  l->c / l->k,
                                  m / n,
                                  (double)ft__log2_divisor(op->u.conv.c, TWOS),
                                  (double)ft__log2_divisor(op->u.conv.k, TWOS),
                                  large,
                                  blocks(m, n, 256, 128),
                                  small,
                                  fill(large, sms),
                                  fill(small, sms)};
    for (int i = 0; i < FEATURES; i++) f[i] = (float)all[i];
}

/* Filters of one pixel without a stride are products, which cuBLAS takes, and chooses for. */
static bool known(const ft_device *device, const ft_op *op, const ft_conv_layer *l)
{
    bool product = l->taps == 1 && l->stride == 1;
    return !product && device->matrix_issue == FT_ISSUE_WGMMA && l->e <= 2 && l->g == 1 && op->u.conv.space < 3 &&
           !op->u.conv.dilated && &ft__conv_choices_end[0] > &ft__conv_choices[0];
}

ft_conv_choice ft__conv_choice(const ft_device *device, const ft_op *op, const ft_conv_layer *l, int part)
{
    ft_conv_choice none = {0};
    int product = part == FT_CONV_RESULT ? 0 : part == FT_CONV_INPUT ? 1 : 2;
    if (!known(device, op, l)) return none;
    const head *h = (const head *)(const void *)ft__conv_choices;
    if (h->magic != MAGIC || h->features != FEATURES) return none;
    const uint8_t *count = ft__conv_choices + h->tree[product].at;
    const float *cut = (const float *)(const void *)(count + FEATURES), *first[FEATURES];
    for (int i = 0; i < FEATURES; i++) first[i] = cut, cut += count[i];
    const class *classes = (const class *)(const void *)cut;
    const node *nodes = (const node *)(const void *)(classes + h->tree[product].classes);
    float f[FEATURES];
    describe(device, op, l, product, f);
    uint32_t at = 0;
    while (nodes[at].feature != LEAF) {
        const node *n = &nodes[at];
        at = f[n->feature] > first[n->feature][n->cut] ? n->right : at + 1;
    }
    const class *c = &classes[nodes[at].cut];
    return (ft_conv_choice){c->way, c->m * STEP, c->n * STEP};
}

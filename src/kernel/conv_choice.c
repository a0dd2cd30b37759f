/* conv_choice.c: which kernel the library takes for a convolution, as its own heuristic answered.
 *
 * cuDNN's heuristic answers an engine and its tile for a shape. data/choices/convolutions.bin holds a decision tree for
 * each of the three products in 16 bits, tf32 and fp32 and of groups in 16 bits, grown on such answers
 * (python/measure/choices.py), in 16 bits with the knobs that say how it is run. Shapes alone decide there: nothing in
 * it was timed. It is asked for GPUs of the kind that answered; elsewhere nothing is known. */
#include "kernel/conv_choice.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "kernel/depthwise.h"
#include "kernel/embedded_predictor.h"
#include "kernel/feature.h"

enum { PRODUCTS = 3, FEATURES = 32, TWOS = 8, LEAF = 255, STEP = 8, MAGIC = 0x33435446 /* FTC3 */ };
enum { HALF, TF32, FP32, GROUPS, KINDS };

typedef struct head {
    uint32_t magic, features;
    struct {
        uint32_t at, cuts, classes, nodes; /* the tree's first byte; how many of each */
    } tree[KINDS * PRODUCTS];
} head;
/* A tree: cuts of every feature counted in a byte, the cuts, what the classes are, the nodes. A node's left child
 * follows it. */
typedef struct class
{
    uint8_t way, m, n; /* sides of the tile in steps of 8 */
    uint8_t depth, room, cluster_m, cluster_n, split;
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
    double sms = device->sms, in = l->n * l->h * l->w, c = l->c / l->g, filters = l->k / l->g;
    double m = product == 0 ? l->pixels : product == 1 ? in : filters;
    double n = product == 0 ? filters : product == 1 ? c : c * l->taps;
    double k = product == 0 ? c * l->taps : product == 1 ? filters * l->taps : l->pixels;
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
                                  (double)ft__log2_divisor((int64_t)c, TWOS),
                                  (double)ft__log2_divisor((int64_t)filters, TWOS),
                                  large,
                                  blocks(m, n, 256, 128),
                                  small,
                                  fill(large, sms),
                                  fill(small, sms),
                                  l->g,
                                  (double)op->u.conv.pad,
                                  l->oh,
                                  m * n,
                                  op->u.conv.dilated,
                                  op->u.conv.space ? op->u.conv.space : 2,
                                  l->depth,
                                  n / (ceil(n / 256) * 256)};
    for (int i = 0; i < FEATURES; i++) f[i] = (float)all[i];
}

/* Which trees; -1: nothing was asked of such. Filters of one pixel without a stride are products, which cuBLAS takes,
 * and chooses for, unless they are fp32. */
static int kind_of(const ft_device *device, const ft_op *op, const ft_conv_layer *l)
{
    bool apart = op->u.conv.space == 3 || op->u.conv.dilated;
    if (ft__is_depthwise(op) || device->matrix_issue != FT_ISSUE_WGMMA ||
        &ft__conv_choices_end[0] <= &ft__conv_choices[0])
        return -1;
    if (l->g > 1) return l->e <= 2 && !apart ? GROUPS : -1;
    if (op->dtype == FT_FP32) return apart ? -1 : FP32;
    bool product = l->taps == 1 && l->stride == 1 && l->depth <= 1;
    return product ? -1 : l->e <= 2 ? HALF : op->dtype == FT_TF32 ? TF32 : -1;
}

ft_conv_choice ft__conv_choice(const ft_device *device, const ft_op *op, const ft_conv_layer *l, int part)
{
    ft_conv_choice none = {0};
    int product = part == FT_CONV_RESULT ? 0 : part == FT_CONV_INPUT ? 1 : 2;
    int kind = kind_of(device, op, l);
    if (kind < 0) return none;
    const head *h = (const head *)(const void *)ft__conv_choices;
    if (h->magic != MAGIC || h->features != FEATURES) return none;
    const uint8_t *count = ft__conv_choices + h->tree[kind * PRODUCTS + product].at;
    const float *cut = (const float *)(const void *)(count + FEATURES), *first[FEATURES];
    for (int i = 0; i < FEATURES; i++) first[i] = cut, cut += count[i];
    const class *classes = (const class *)(const void *)cut;
    const node *nodes = (const node *)(const void *)(classes + h->tree[kind * PRODUCTS + product].classes);
    float f[FEATURES];
    describe(device, op, l, product, f);
    uint32_t at = 0;
    while (nodes[at].feature != LEAF) {
        const node *n = &nodes[at];
        at = f[n->feature] > first[n->feature][n->cut] ? n->right : at + 1;
    }
    const class *c = &classes[nodes[at].cut];
    return (ft_conv_choice){.way = c->way,
                            .m = c->m * STEP,
                            .n = c->n * STEP,
                            .cluster_m = c->cluster_m,
                            .cluster_n = c->cluster_n,
                            .depth = c->depth,
                            .room = c->room,
                            .split = c->split ? 1 << (c->split - 1) : 0};
}

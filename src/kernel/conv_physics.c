/* conv_physics.c: what one convolution takes, before anything is learned. conv.c says what was read where.
 *
 * conv_layer.c says which way the library goes; then come the rates of that way, the bytes and the passes around the
 * products, and the products themselves: the result's and the two gradients'. */
#include "kernel/conv_physics.h"

#include <math.h>

#include "graph/operator.h"
#include "kernel/conv_choice.h"
#include "kernel/conv_constants.h"
#include "kernel/conv_layer.h"
#include "kernel/conv_product.h"
#include "kernel/conv_theta.h"
#include "kernel/depthwise.h"
#include "kernel/feature.h"
#include "kernel/gemm_tiles.h"
#include "kernel/grouped.h"
#include "kernel/kernel.h"
#include "kernel/traffic.h"

enum { EVEN_MOST = 256 };
#define SLOW_NOTE "7x7 filter: cuDNN falls to a kernel without matrix units here"

/* Share of a kernel's output that the next one still finds in the last-level cache. */
static double kept(const ft_device *device, double bytes)
{
    return ft__resident(bytes, FT_K_CONV_KEPT_CACHE * device->l2_mib * 1048576);
}

/* One more kernel that reads and writes `bytes` of elements of `e`: a change of layout. In 16 bits the SMs hold it on a
 * GPU with as much bandwidth as ours, the memory on others; where both are near, neither is reached. */
static double transpose_ms(const ft_device *device, const double *th, double bytes, double e)
{
    double moved = bytes * (2 - FT_K_CONV_KEPT_GAIN * kept(device, bytes)) /
                   (th[TRANSPOSE_EB] * device->memory_gbps * 1e6);
    double turned = bytes / e / (FT_K_CONV_TURNED_PER_CLK * device->sms * ft__running_mhz(device) * 1e3);
    return th[TRANSPOSE_US] * 1e-3 + hypot(moved, turned);
}

/* The same of an image's few channels, filled up to `times` as many. */
static double fill_ms(const ft_device *device, const double *th, double bytes, double e, double times)
{
    double moved = bytes * (1 + times) / (th[TRANSPOSE_EB] * device->memory_gbps * 1e6);
    double turned = bytes / e * times / (FT_K_CONV_PADDED_PER_CLK * device->sms * ft__running_mhz(device) * 1e3);
    return th[TRANSPOSE_US] * 1e-3 + hypot(moved, turned);
}

/* Gradients on vector units, over the rate of an SM of 128 lanes, which is what was measured: an SM's shared memory
 * gives 128 bytes per clock whatever its lanes, and a product of 8x8 outputs per thread needs one for every
 * multiply-add. */
static double fed_rate(const ft_device *device, double rate)
{
    return fmax(rate, fmin(FT_K_CONV_FED_MOST, rate * fmax(1, FT_K_CONV_FED_LANES / device->lanes_per_sm)));
}

/* A convolution on its way to a time. */
typedef struct conv {
    const ft_device *device;
    const ft_op *op;
    const double *th;
    ft_conv_layer l;
    ft_conv_way way;
    double rate, level, large, gain; /* share of the peak; of aligned images; of large filters; of other algorithms */
    double traffic, traffic_data;    /* ms of the bytes of a product, and of the image's gradient */
    double move;                     /* ms of changing the layout of all operands */
    int split;                       /* how often K is shared out at most */
    double compute, data, filters, extra, body; /* ms: of products, the gradients', of passes around all, of all */
    bool lanes, hole;                           /* the result by vector units; by a kernel ten times slower */
    ft_gemm_pick main, second;
} conv;

/* The largest power of two in a number of channels: kernels are written for multiples of 8, 16 ... 256, and which one
 * the library takes hangs on that as much as on the number itself. */
static int even(double channels)
{
    int power = 1;
    while (power < EVEN_MOST && fmod(channels, 2 * power) == 0) power *= 2;
    return power;
}

/* The kernels that the library takes, where its heuristic was asked; the search's elsewhere. */
typedef struct chosen {
    double m, n, waves, second_waves;
    ft_conv_choice main, second;
} chosen;

/* Sums that are shared out are so many tiles more. */
static double waves_of(const conv *c, ft_conv_choice way, double m, double n, double searched)
{
    double g = c->l.g, parts = way.split > 1 ? way.split : 1,
           of = way.m > 0 && way.n > 0 ? g * parts * ceil(m / way.m) * ceil(n / g / way.n) / c->device->sms : searched;
    return fmax(of, 1e-3);
}

static chosen choices(const conv *c, const ft_physics *out)
{
    const ft_conv_layer *l = &c->l;
    ft_conv_choice first = {0}, second = {0};
    double m = l->forward ? l->pixels : l->n * l->h * l->w, n = l->forward ? l->k : l->c;
    if (l->forward) first = ft__conv_choice(c->device, c->op, l, FT_CONV_RESULT);
    if (!l->forward && l->to_input) first = ft__conv_choice(c->device, c->op, l, FT_CONV_INPUT);
    if (l->to_filter) second = ft__conv_choice(c->device, c->op, l, FT_CONV_FILTER);
    return (chosen){.m = first.m > 0 ? first.m : out->tile_m,
                    .n = first.n > 0 ? first.n : out->tile_n,
                    .waves = waves_of(c, first, m, n, c->main.waves),
                    .second_waves = waves_of(c, second, l->k / l->g, l->c * l->taps, c->second.waves),
                    .main = first,
                    .second = second};
}

static void features(const conv *c, bool matrix, ft_physics *out)
{
    const ft_conv_layer *l = &c->l;
    const ft_op *op = c->op;
    double step = matrix ? fmax(16 / l->e, 1) : 1, cp = ceil(l->c / l->g / step) * step, depth = l->depth;
    chosen way = choices(c, out);
    double waves = way.waves;
    /* In 16 bits without groups four of these never vary, and what is known of the kernels stands in their place. */
    bool told = l->e <= 2 && l->g <= 1;
    float *f = out->feature;
    *f++ = ft__lg(1 + out->body_ms * 1e3 / c->th[l->eager ? GAP : LAUNCH]),
    *f++ = ft__lg(out->compute_ms / out->memory_ms);
    *f++ = ft__lg(l->pixels), *f++ = ft__lg(l->k), *f++ = ft__lg(l->c * l->taps), *f++ = ft__lg(l->c),
    *f++ = ft__lg(l->oh * l->ow), *f++ = ft__lg(l->n);
    *f++ = (float)l->taps, *f++ = (float)op->u.conv.stride, *f++ = (float)op->u.conv.nhwc,
    *f++ = (float)(told ? ft__choice_cluster(way.main) : l->e),
    *f++ = (float)(told ? ft__choice_run(way.main) : !matrix);
    *f++ = (float)(waves / ceil(waves)), *f++ = ft__lg(waves),
    *f++ = (float)(told ? ft__choice_split(way.main, c->main.split) : c->main.split), *f++ = (float)way.m,
    *f++ = (float)way.n;
    *f++ = (float)(cp * l->g != l->c), *f++ = ft__lg((l->x + l->y + l->weights) / (c->device->l2_mib * 1048576)),
    *f++ = (float)(told ? ft__choice_cluster(way.second) : c->way.fast);
    *f++ = ft__lg((c->filters + 1e-6) / (c->data + 1e-6)), *f++ = ft__lg(way.second_waves),
    *f++ = (float)(told ? ft__choice_split(way.second, c->second.split) : c->second.split);
    *f++ = c->main.log_ratio[0], *f++ = c->main.log_ratio[2], *f++ = c->main.log_ratio[5], *f++ = c->main.log_ratio[7];
    *f++ = (float)fmin(l->c * l->taps / 64, 16);
    *f++ = ft__lg(l->c / l->k), *f++ = ft__lg(l->x), *f++ = ft__lg(l->flops), *f++ = ft__lg(l->c * l->k),
    *f++ = (float)(c->lanes || c->hole);
    *f++ = (float)(c->extra / out->body_ms);
    *f++ = (float)(op->u.conv.space ? op->u.conv.space : 2), *f++ = (float)depth, *f++ = (float)op->u.conv.dilated;
    *f++ = (float)ft__conv_parts(op), *f++ = told ? (float)ft__choice_run(way.second) : ft__lg(l->g),
    *f++ = ft__lg(l->c / l->g), *f++ = (float)l->r, *f++ = (float)l->s;
    *f++ = (float)(fmod(l->k / l->g, 8) > 0);
    *f++ = (float)even(l->c / l->g), *f++ = (float)even(l->k / l->g);
    *f++ = (float)way.main.way, *f++ = (float)way.second.way;
}

/* Kernels with figures of their own, launches within them: what is left is learned in 16 bits, elsewhere nothing is. */
static void own_figures(conv *c, ft_own_figures d, const char *note, bool want, ft_physics *out)
{
    bool half = c->l.e <= 2;
    out->compute_ms = d.compute_ms;
    out->memory_ms = d.memory_ms;
    out->body_ms = fmax(0, d.ms - c->th[LAUNCH] * 1e-3) + (c->l.eager ? c->th[LEAD_US] * 1e-3 : 0);
    out->spread = half && !d.alone ? 0 : d.spread;
    out->tile_m = out->tile_n = out->split_k = 0;
    out->tiles = out->waves = 0;
    out->note = note;
    for (int i = 0; i < FT_CONV_FEATURES; i++) out->feature[i] = 0;
    c->lanes = true;
    if (want && half) features(c, false, out);
}

static void rates(conv *c)
{
    const ft_conv_layer *l = &c->l;
    const ft_conv_way *way = &c->way;
    const double *th = c->th;
    bool slow = way->matrix ? way->older : l->taps > FT_K_CONV_LARGE_TAPS;
    c->large = slow ? th[TAPS49] : 1;
    c->rate = th[EC] * (l->taps > 1 ? th[TAPS9] : 1) * (l->stride > 1 ? th[HOLES] : 1) *
              (way->matrix && fmin(l->c, l->k) / l->g < way->chunk ? th[NARROW] : 1);
    c->gain = !way->fast ? 1 : l->taps <= FT_K_CONV_FAST_TAPS ? th[WINOGRAD] : th[FOURIER];
    c->level = c->rate; /* of images that begin at multiples of 16 bytes */
    if (way->skewed) c->rate *= th[SKEW];
    /* Only products and the weights' gradient share K out. */
    c->split = !way->matrix || (way->older && !way->half && l->forward) ? 1 : way->point ? 16 : 2;
}

/* What a product reads and writes, less what L2 kept of a change of layout before it. */
static void traffic(conv *c)
{
    const ft_conv_layer *l = &c->l;
    /* Pixels between the strides of a small filter are never read. */
    double seen = fmin(1, l->r / l->stride) * fmin(1, l->s / l->stride), eb = c->th[EB] * c->device->memory_gbps * 1e6;
    double x_moved = c->way.moved ? 1 - FT_K_CONV_KEPT_GAIN * kept(c->device, l->x) : 1;
    double x_read = l->x * seen * x_moved,
           y_read = l->y * (c->way.moved ? 1 - FT_K_CONV_KEPT_GAIN * kept(c->device, l->y) : 1);
    c->traffic = (x_read + y_read + l->weights) / eb;
    c->traffic_data = (l->x * x_moved + y_read + l->weights) / eb;
}

/* Filters, image and result from one layout to the other. */
static void moves(conv *c)
{
    const ft_conv_layer *l = &c->l;
    double move = l->taps > 1 ? transpose_ms(c->device, c->th, l->weights, l->e) : 0;
    move += c->way.half && c->way.few && !l->nhwc ? fill_ms(c->device, c->th, l->x, l->e, c->way.cp * l->g / l->c)
                                                  : transpose_ms(c->device, c->th, l->x, l->e);
    c->move = move + transpose_ms(c->device, c->th, l->y, l->e);
}

/* One multiply-add per lane and tap. */
static void direct_parts(conv *c)
{
    const ft_conv_layer *l = &c->l;
    double each = l->n * l->k * l->oh * l->ow * l->taps * (l->c / l->g) * FT_K_CONV_DIRECT_INSTRUCTIONS /
                  ft__lane_rate(c->device);
    c->data = l->to_input ? (FT_K_CONV_DIRECT_BACKWARD - FT_K_CONV_DIRECT_FILTERS) * each : 0;
    c->filters = l->to_filter ? FT_K_CONV_DIRECT_FILTERS * each : 0;
    c->compute = (l->forward ? each : 0) + c->data + c->filters;
    c->body = ft__smooth_max(c->compute, c->traffic * ((l->forward ? 1 : 0) + l->gradients), c->th[SMOOTH]);
}

/* An fp32 kernel of 128x128 tiles on the vector units. */
static double slow_ms(const conv *c)
{
    double blocks = ceil(c->l.pixels / 128) * ceil(c->l.k / 128) / c->device->sms;
    return c->l.flops / (c->th[DIRECT] * 2 * ft__lane_rate(c->device)) * ceil(blocks) / blocks;
}

/* The result by vector units, filters by 32 in half precision. */
static double vector_ms(const conv *c)
{
    const ft_conv_layer *l = &c->l;
    double some = FT_K_CONV_VECTOR_FILTERS;
    double k = c->way.half && c->way.few ? ceil(l->k / l->g / some) * some * l->g : l->k;
    return 2 * l->pixels * k * (l->c / l->g * l->taps + FT_K_CONV_VECTOR_START) /
           (c->th[DIRECT] * 2 * ft__lane_rate(c->device));
}

/* Who computes the result: a product, vector units where no kernel of matrix units takes such channels, or an accident
 * of the heuristic. */
static bool by_lanes(const conv *c)
{
    const ft_conv_layer *l = &c->l;
    const ft_conv_way *way = &c->way;
    return (way->few && !way->point && !way->filled && (!l->nhwc || way->clip)) ||
           (way->clip && way->matrix && l->k < way->step) ||
           (way->matrix && !way->half && l->taps == 1 && l->stride > 1 && l->c / l->g <= FT_K_CONV_FEW_CHANNELS) ||
           (!way->matrix && l->nhwc && way->short_k);
}

/* The pass that pads an image's few channels. */
static double padding_ms(const conv *c)
{
    return 2 * c->th[TRANSPOSE_US] * 1e-3 +
           c->l.x * (1 + c->way.cp * c->l.g / c->l.c) / (c->th[PAD_EB] * (c->device->memory_gbps * 1e6));
}

static double point_padding_ms(const conv *c)
{
    return (c->l.x + c->l.y) / (c->th[PAD_EB] * (c->device->memory_gbps * 1e6));
}

static void result_part(conv *c, bool want)
{
    const ft_conv_layer *l = &c->l;
    const ft_conv_way *way = &c->way;
    unsigned tiles = way->older && !way->half ? FT_CONV_OLDER_TF32_TILES : 0;
    ft_conv_product p = {
        l->g,       l->pixels,  l->k / l->g, way->chunk_c * l->taps, c->rate * c->large * c->gain, c->split,
        way->point, way->older, tiles};
    if (way->point && !l->nhwc) p.b = l->g * l->n, p.m = l->oh * l->ow; /* a product per image */
    ft__conv_run(c->device, c->op, c->th, p, way->matrix, want, &c->main);
    if (way->skewed && !way->wide) {
        ft_conv_product turned = {l->g,       l->pixels, l->k / l->g, way->chunk_c, c->level, c->split, way->point,
                                  way->older, 0};
        ft__conv_turn(c->device, c->op, c->th, turned, c->move, &c->main);
    }
    c->lanes = by_lanes(c);
    c->hole = ft__conv_forward_hole(l, way);
    double ms = c->hole ? slow_ms(c) : c->lanes ? vector_ms(c) : c->main.ms;
    c->body += ft__smooth_max(ms, c->traffic, c->th[SMOOTH]);
    c->compute += ms;
    if (way->few && l->nhwc && !c->lanes && !way->point)
        c->extra += padding_ms(c);
    else if (way->few && way->point)
        c->extra += point_padding_ms(c);
    else if ((way->moved || way->filled) && !c->lanes && !c->hole)
        c->extra += c->move;
    else if (way->older && l->e > 2 && !c->lanes) /* tf32's older kernels want their operands rounded first */
        c->extra += transpose_ms(c->device, c->th, l->x, l->e);
}

/* How long the sums of the image's gradient are. The residues of the stride are products of their own, ceil(r /
 * stride)^2 taps the longest of them: its length counts where the GPU is not full, the mean where it is. */
static double data_depth(const conv *c)
{
    const ft_conv_layer *l = &c->l;
    double block = c->way.matrix ? c->way.chunk : l->stride > 1 ? FT_K_CONV_K_BLOCK_STRIDED : FT_K_CONV_K_BLOCK;
    double full = fmin(1, ceil(l->n * l->h * l->w / 128) * ceil(l->c / l->g / 128) * l->g / c->device->sms);
    double longest = ceil(l->r / l->stride) * ceil(l->s / l->stride), mean = l->taps / (l->stride * l->stride);
    return fmax(1, ceil(l->k / l->g / block) * block * (full * mean + (1 - full) * longest));
}

static void data_product(conv *c, bool want, ft_gemm_pick *pick)
{
    const ft_conv_layer *l = &c->l;
    const ft_conv_way *way = &c->way;
    double gaps = l->stride > 1 ? c->th[STRIDED] : 1, deep = data_depth(c), share = ft__conv_data(c->th, c->gain, gaps);
    ft_conv_product d = {l->g,     l->n * l->h * l->w, l->c / l->g, deep, c->rate * share * gaps,
                         c->split, way->point,         false,       0};
    if (way->point && !l->nhwc) d.b = l->g * l->n, d.m = l->h * l->w;
    if (!way->matrix) d.rate = fed_rate(c->device, d.rate);
    ft__conv_run(c->device, c->op, c->th, d, way->matrix, want, pick);
    if (!way->skewed || way->wide) return;
    ft_conv_product turned = {l->g, l->pixels, l->c / l->g, deep, c->level * share, c->split, way->point, false, 0};
    ft__conv_turn(c->device, c->op, c->th, turned, c->move, pick);
}

static void filters_product(conv *c, ft_gemm_pick *pick)
{
    const ft_conv_layer *l = &c->l;
    const ft_conv_way *way = &c->way;
    double rate = c->rate * (way->matrix ? c->large : 1) * c->gain * c->th[WEIGHTS];
    bool older = way->older || l->c / l->g <= FT_K_CONV_FEW_CHANNELS;
    ft_conv_product f = {l->g, l->k / l->g, l->c / l->g * l->taps, l->pixels, rate, 1024, way->point, older, 0};
    if (!way->matrix) f.rate = fed_rate(c->device, f.rate);
    ft__conv_run(c->device, c->op, c->th, f, way->matrix, false, pick);
    if (!way->skewed || way->wide) return;
    f.rate = c->level * c->gain * c->th[WEIGHTS];
    ft__conv_turn(c->device, c->op, c->th, f, transpose_ms(c->device, c->th, l->x, l->e), pick);
}

static void gradient_parts(conv *c, bool want)
{
    const ft_conv_layer *l = &c->l;
    const ft_conv_way *way = &c->way;
    ft_gemm_pick pick;
    data_product(c, want && !l->forward, &pick);
    if (!l->forward) c->main = pick;
    filters_product(c, &c->second);
    c->data = l->to_input ? pick.ms : 0, c->filters = l->to_filter ? c->second.ms : 0;
    if (l->to_filter && ft__conv_weights_hole(l, way))
        c->hole = true, c->filters = l->flops / (c->th[DIRECT] * 2 * ft__lane_rate(c->device));
    c->compute += c->data + c->filters;
    if (l->to_input) c->body += ft__smooth_max(c->data, c->traffic_data, c->th[SMOOTH]);
    if (l->to_filter) c->body += ft__smooth_max(c->filters, c->traffic, c->th[SMOOTH]);
    c->extra += (l->gradients - 1) * c->th[SECOND_US] * 1e-3;
    if (way->matrix && way->few && l->nhwc && !way->point)
        c->extra += l->gradients * padding_ms(c);
    else if (way->few && way->point)
        c->extra += l->gradients * (l->x + l->y) / (c->th[PAD_EB] * (c->device->memory_gbps * 1e6));
    else if (way->matrix && !l->nhwc && !way->point)
        c->extra += l->gradients * c->move;
    else if (!way->matrix && l->nhwc)
        c->extra += c->move;
    else if (way->older && l->e > 2)
        c->extra += transpose_ms(c->device, c->th, l->x, l->e) + transpose_ms(c->device, c->th, l->y, l->e);
}

static const char *note(const conv *c)
{
    if (!c->way.matrix || c->way.direct) return NULL;
    if (c->hole) return SLOW_NOTE;
    if (c->l.nhwc && c->way.cp * c->l.g != c->l.c) return "channels not a multiple of 16 bytes: padded first";
    if (!c->l.nhwc && !c->way.point && !c->way.few) return "NCHW: transposed before and after the product";
    return NULL;
}

void ft__conv_physics(const ft_device *device, const ft_op *op, const double *th, bool want, ft_physics *out)
{
    conv c = {.device = device, .op = op, .th = th, .l = ft__conv_layer(op)};
    const ft_conv_layer *l = &c.l;
    out->spread = 0;
    if (ft__is_depthwise(op)) {
        own_figures(&c, ft__depthwise(device, op), "one filter per channel: multiply-adds by the lane, no product",
                    want, out);
        return;
    }
    if (ft__is_grouped(device, op)) {
        own_figures(&c, ft__grouped(device, op), "groups of channels: padded to a power of two, or apart", want, out);
        return;
    }
    c.way = ft__conv_way(device, op, l);
    rates(&c);
    traffic(&c);
    moves(&c);
    if (ft__conv_whole_hole(l, &c.way)) {
        own_figures(&c, ft__conv_whole(device, l, c.traffic), SLOW_NOTE, want, out);
        return;
    }
    if (c.way.direct) direct_parts(&c);
    if (!c.way.direct && l->forward) result_part(&c, want);
    if (!c.way.direct && l->gradients > 0) gradient_parts(&c, want);
    bool matrix = c.way.matrix && !c.way.direct;
    out->compute_ms = c.compute;
    out->memory_ms = c.traffic * ((l->forward ? 1 : 0) + l->gradients);
    out->body_ms = c.body + c.extra + (l->eager ? th[LEAD_US] * 1e-3 : 0);
    out->tile_m = c.way.direct ? 0 : ft__conv_tile(matrix, c.main.tile).m;
    out->tile_n = c.way.direct ? 0 : ft__conv_tile(matrix, c.main.tile).n;
    out->split_k = c.way.direct ? 0 : c.main.split;
    out->tiles = c.main.tiles;
    out->waves = c.main.waves;
    out->note = note(&c);
    if (want) features(&c, matrix, out);
}

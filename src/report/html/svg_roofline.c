/* svg_roofline.c: achieved arithmetic over arithmetic intensity, both on logarithmic axes, under the two roofs
 * (Williams, Waterman, Patterson, "Roofline: an insightful visual performance model", CACM 2009).
 *
 * A kernel without arithmetic has no place on such axes. It stands at the left edge, as far below the slanted roof as
 * its bandwidth is below the peak, so that heights under that roof mean the same for all. */
#include <math.h>
#include <stdlib.h>

#include "kernel/kernel.h"
#include "report/html/svg_pictures.h"
#include "report/text/style.h"

ft_roof ft__roof_of(const ft_device *device, ft_dtype dtype)
{
    ft_dtype of = dtype;
    ft_roof r = {.gbps = device->memory_gbps, .tflops = ft__step_peak(device, dtype, &of)};
    r.format = ft_dtype_name(of);
    double vector = device->vector_tflops[FT_FP32] > 0 ? device->vector_tflops[FT_FP32] : device->peak_tflops[FT_FP32];
    if (vector > 0 && vector < 0.9 * r.tflops) r.vector_tflops = vector;
    return r;
}

typedef struct plot {
    ft_ruler x, y;
    double edge; /* intensity of the left edge */
} plot;

static double intensity_of(const plot *p, const ft_roof_dot *d)
{
    return d->flops > 0 && d->bytes > 0 ? fmax(d->flops / d->bytes, p->edge) : d->flops > 0 ? p->x.high : p->edge;
}

static double height_of(const plot *p, const ft_roof_dot *d)
{
    double tflops = d->flops / d->ms / 1e9, gbps = d->bytes / d->ms / 1e6;
    if (d->flops > 0 && (d->bytes <= 0 || d->flops / d->bytes >= p->edge)) return tflops;
    return p->edge * gbps / 1e3;
}

static plot scale(const ft_frame *f, double top, double bottom, const ft_roof *roof, const ft_roof_dot *dots,
                  size_t count)
{
    double balance = roof->tflops * 1e3 / roof->gbps, low = balance / 100, high = balance * 4, least = 1e300, most = 0;
    for (size_t i = 0; i < count; i++)
        if (dots[i].flops > 0 && dots[i].bytes > 0) {
            low = fmin(low, dots[i].flops / dots[i].bytes);
            high = fmax(high, dots[i].flops / dots[i].bytes);
        }
    plot p = {.edge = fmax(low, 0.02) / 2};
    p.x = (ft_ruler){.low = p.edge, .high = high * 1.5, .from = f->narrow ? 56 : 60, .to = f->width - 12, .log = true};
    for (size_t i = 0; i < count; i++) {
        double h = height_of(&p, &dots[i]);
        least = h > 0 ? fmin(least, h) : least;
        most = fmax(most, h);
    }
    least = fmin(least, roof->gbps / 1e3 * p.edge);
    least = fmax(least, roof->tflops * 1e-7); /* seven decades tell enough */
    p.y =
        (ft_ruler){.low = least / 1.6, .high = fmax(most, roof->tflops) * 2.2, .from = bottom, .to = top, .log = true};
    return p;
}

static void add_roofs(ft_text *out, const ft_frame *f, const plot *p, const ft_roof *roof)
{
    double balance = roof->tflops * 1e3 / roof->gbps;
    double x0 = ft__ruler_at(&p->x, p->edge), y0 = ft__ruler_at(&p->y, p->edge * roof->gbps / 1e3);
    double xb = ft__ruler_at(&p->x, balance), yb = ft__ruler_at(&p->y, roof->tflops);
    ft__text_addf(out, "<polyline class=\"roof\" points=\"%.1f,%.1f %.1f,%.1f %.1f,%.1f\"/>\n", x0, y0, xb, yb, p->x.to,
                  yb);
    ft_text t = {.cap = 256};
    ft__add_figure(&t, roof->tflops, 4);
    ft__text_addf(&t, " TFLOP/s %s", roof->format);
    if (t.at) ft__svg_label(out, p->x.to, yb - 8, FT_END, "strong halo", t.at);
    if (roof->vector_tflops > 0) {
        double yv = ft__ruler_at(&p->y, roof->vector_tflops);
        double xv = ft__ruler_at(&p->x, roof->vector_tflops * 1e3 / roof->gbps);
        ft__svg_line(out, xv, yv, p->x.to, yv, "roof low");
        static const char *const words[] = {" TFLOP/s, vector units in fp32", " TFLOP/s, vectors", " vector"};
        bool room = false;
        for (int i = f->narrow ? 2 : 0; i < 3 && !room; i++) { /* as many as end before the slanted roof does */
            ft__markup_reset(out, &t);
            ft__add_figure(&t, roof->vector_tflops, 3);
            ft__text_add(&t, words[i]);
            room = t.at && xv + 10 + ft__svg_label_width(t.at) <= p->x.to;
        }
        if (t.at) ft__svg_label(out, room ? xv + 10 : p->x.to, yv + 15, room ? FT_START : FT_END, "dim halo", t.at);
    }
    ft__markup_reset(out, &t);
    ft__add_figure(&t, roof->gbps, 4);
    ft__text_add(&t, " GB/s");
    /* Along the slope, above its middle: dots lie below. */
    double angle = atan2(yb - y0, xb - x0) * 180 / 3.14159265358979, at = 0.25; /* the dashed roof begins higher up */
    double mx = x0 + at * (xb - x0), my = y0 + at * (yb - y0) - 9;
    if (t.at)
        ft__text_addf(out,
                      "<text class=\"strong halo\" text-anchor=\"middle\" x=\"%.1f\" y=\"%.1f\" "
                      "transform=\"rotate(%.1f %.1f %.1f)\">%s</text>\n",
                      mx, my, angle, mx, my, t.at);
    ft__text_drop(&t, out);
}

typedef struct circle {
    double x, y, r;
    size_t layer; /* of a plain picture */
} circle;

static circle circle_of(const plot *p, const ft_roof_dot *d, double longest)
{
    double height = fmax(height_of(p, d), p->y.low * 1.15); /* the slowest stand on the floor */
    return (circle){.x = ft__ruler_at(&p->x, intensity_of(p, d)),
                    .y = ft__ruler_at(&p->y, height),
                    /* one alone has nothing to be larger than */
                    .r = longest > 0 ? 3 + 9 * sqrt(d->total_ms / longest) : 6};
}

static void add_round(ft_text *out, const circle *c)
{
    double r = round(c->r * 10) / 10, x = round(c->x * 10) / 10; /* as a circle has them */
    const double of[] = {x - r, c->y, r, r, 2 * r, r, r, -2 * r};
    static const char *const before[] = {"M", ",", "a", ",", " 0 1 0 ", ",0a", ",", " 0 1 0 "};
    for (int i = 0; i < 8; i++) {
        ft__text_add(out, before[i]);
        ft__svg_at(out, of[i]);
    }
    ft__text_add(out, ",0z");
}

/* Dots without words, as few paths as look the same: those of one colour share one, unless something that lies between
 * covers part of both. */
static bool add_plain_dots(ft_text *out, const plot *p, const ft_roof_dot *const *dots, size_t count, double longest)
{
    circle *at = calloc(count + 1, sizeof *at);
    int *bound = calloc(count + 1, sizeof *bound); /* of a layer */
    size_t layers = 0;
    for (size_t i = 0; at && bound && i < count; i++) {
        size_t over = 0; /* the first layer that covers all dots that this one lies on */
        at[i] = circle_of(p, dots[i], longest);
        for (size_t k = 0; k < i; k++)
            if (hypot(at[i].x - at[k].x, at[i].y - at[k].y) < at[i].r + at[k].r + 1 && at[k].layer >= over)
                over = at[k].layer + 1;
        while (over < layers && bound[over] != (int)dots[i]->bound) over++;
        if (over == layers) bound[layers++] = (int)dots[i]->bound;
        at[i].layer = over;
    }
    for (size_t layer = 0; layer < layers; layer++) {
        ft__text_addf(out, "<path class=\"dot %s\" d=\"", ft__bound_class[bound[layer]]);
        for (size_t i = 0; i < count; i++)
            if (at[i].layer == layer) add_round(out, &at[i]);
        ft__text_add(out, "\"/>\n");
    }
    bool made = at && bound;
    free(at);
    free(bound);
    return made;
}

static void add_dot(ft_text *out, const ft_frame *f, const plot *p, const ft_roof_dot *d, double longest)
{
    circle c = circle_of(p, d, longest);
    ft__text_addf(out, "<circle class=\"dot %s\" cx=\"", ft__bound_class[d->bound]);
    ft__svg_at(out, c.x);
    ft__text_add(out, "\" cy=\"");
    ft__svg_at(out, c.y);
    ft__text_add(out, "\" r=\"");
    ft__svg_at(out, c.r);
    ft__text_add(out, "\"");
    if (f->live && d->at >= 0) ft__text_addf(out, " data-at=\"%d\"", d->at);
    ft__text_add(out, "><title>");
    ft_text t = {.cap = 4096};
    ft__text_addf(&t, "%s: ", d->name ? d->name : "");
    ft__add_figure(&t, d->total_ms, 3);
    ft__text_add(&t, " ms in all, ");
    if (d->flops > 0) {
        ft__add_figure(&t, d->flops / d->ms / 1e9, 3);
        ft__text_add(&t, " TFLOP/s, ");
    }
    ft__add_figure(&t, d->bytes / d->ms / 1e6, 3);
    ft__text_add(&t, " GB/s");
    if (d->flops > 0 && d->bytes > 0) {
        ft__text_add(&t, ", ");
        ft__add_figure(&t, d->flops / d->bytes, 3);
        ft__text_add(&t, " FLOP per byte");
    }
    ft__text_addf(&t, ", bound by %s", ft__bound_keys[d->bound].name);
    ft__markup_text(out, t.at);
    ft__text_add(out, "</title></circle>\n");
    ft__text_drop(&t, out);
}

static int by_size(const void *a, const void *b)
{
    const ft_roof_dot *const *x = a, *const *y = b;
    if ((*x)->total_ms != (*y)->total_ms) return (*x)->total_ms < (*y)->total_ms ? 1 : -1;
    return *x < *y ? -1 : *x > *y;
}

bool ft__svg_roofline(ft_text *out, const ft_frame *f, const char *title, const ft_roof *roof, const ft_roof_dot *dots,
                      size_t count)
{
    const ft_roof_dot **order = calloc(count + 1, sizeof *order); /* large first: small ones stay in sight */
    if (!order) return false;
    double longest = 0;
    bool seen[4] = {false}, still = false;
    for (size_t i = 0; i < count; i++) {
        order[i] = &dots[i];
        longest = fmax(longest, dots[i].total_ms);
        seen[dots[i].bound] = true;
        still |= dots[i].flops <= 0;
    }
    qsort(order, count, sizeof *order, by_size);
    ft_key keys[4];
    size_t key_count = 0;
    for (int b = 0; b < 4; b++)
        if (seen[b]) keys[key_count++] = ft__bound_keys[b];
    double top = ft__svg_keys_height(f, 0, keys, key_count) + 28, bottom = top + ft__frame_plot(f, 300, 400);
    ft_text desc = {.cap = 1024};
    ft__text_addf(&desc,
                  "%zu kernels by arithmetic intensity and achieved TFLOP/s, under a memory roof of %.0f GB/s and "
                  "an arithmetic roof of %.4g TFLOP/s in %s. The table below has the same figures.",
                  count, roof->gbps, roof->tflops, roof->format);
    ft__svg_open(out, f, "roofline", bottom + (still ? 62 : 42), title, desc.at ? desc.at : "");
    plot p = scale(f, top, bottom, roof, dots, count);
    ft__svg_keys(out, f, 0, 0, keys, key_count);
    ft__svg_ruler_x(out, &p.x, top, bottom, "FLOP per byte of device memory");
    ft__svg_ruler_y(out, &p.y, p.x.from, p.x.to, "achieved TFLOP/s");
    add_roofs(out, f, &p, roof);
    if (count == 1) longest = 0;
    bool made = !f->plain || add_plain_dots(out, &p, order, count, longest);
    for (size_t i = 0; !f->plain && i < count; i++) add_dot(out, f, &p, order[i], longest);
    if (still)
        ft__svg_label(out, 0, bottom + 56, FT_START, "dim",
                      f->width < 680
                          ? "at the left edge: kernels without arithmetic"
                          : "at the left edge: kernels without arithmetic, as far below the roof as their bandwidth");
    ft__svg_plot(out, f, &p.x, &p.y);
    ft__svg_close(out);
    free(order);
    ft__text_drop(&desc, out);
    return made && !out->failed;
}

void ft__add_kernel_name(ft_text *out, const ft_merged *k)
{
    const char *block = k->block && k->block->name ? k->block->name : "", *name = k->node->name ? k->node->name : "";
    if (!*name) name = k->node->op.name ? k->node->op.name : "";
    ft__text_addf(out, "%s%s%s", block, *block && *name ? " " : "", name);
    if (k->node->phase != FT_FORWARD && k->node->phase != FT_UPDATE)
        ft__text_addf(out, ", %s", ft__phase_name(k->node->phase));
}

bool ft__svg_step_roofline(ft_text *out, const ft_frame *f, const ft_step_view *v)
{
    size_t count = 0, used = 0;
    const ft_merged *kernels = ft__merge_kernels(v, &count);
    ft_roof_dot *dots = kernels ? calloc(count + 1, sizeof *dots) : NULL;
    if (!dots) return false;
    ft_text name = {.cap = 4096};
    for (size_t i = 0; i < count; i++) {
        const ft_forecast *k = kernels[i].forecast;
        if (!(k->ms > 0) || (k->flops <= 0 && k->bytes <= 0)) continue;
        ft__markup_reset(out, &name);
        ft__add_kernel_name(&name, &kernels[i]);
        dots[used] = (ft_roof_dot){.name = ft__arena_copy(v->arena, name.at ? name.at : "", name.length),
                                   .at = (int)i,
                                   .flops = k->flops,
                                   .bytes = k->bytes,
                                   .ms = k->ms,
                                   .total_ms = kernels[i].total_ms,
                                   .bound = (unsigned)k->bound < 4 ? k->bound : FT_BOUND_MEMORY};
        if (!dots[used++].name) out->failed = true;
    }
    ft_roof roof = ft__roof_of(v->device, v->work->dtype);
    bool drawn = !out->failed && !name.failed && ft__svg_roofline(out, f, "Roofline of the step", &roof, dots, used);
    ft__text_drop(&name, out);
    free(dots);
    return drawn;
}

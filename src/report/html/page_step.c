/* page_step.c: one step as a page: how long and how sure, where the time goes, what memory it takes, what to change. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/html/page.h"
#include "report/html/page_parts.h"
#include "report/text/advice_words.h"
#include "report/text/lines.h"
#include "report/text/step_words.h"

static const ft_style plain = {.unicode = true, .width = 100000};

typedef bool draws(ft_text *out, const ft_frame *f, const ft_step_view *v);

static bool both(ft_text *out, const ft_step_view *v, draws *draw)
{
    return draw(out, &ft__frame_wide, v) && draw(out, &ft__frame_narrow, v);
}

/* -- single pictures --------------------------------------------------------------------------- */

static bool draw_scaling(ft_text *out, const ft_frame *f, const ft_step_view *v)
{
    return ft__picture_scale(out, f, v->scale);
}

static bool scales(const ft_step_view *v) { return v->scale && v->scale->weak_count > 1; }

static const struct {
    const char *name;
    draws *draw;
} pictures[] = {
    {"roofline", ft__svg_step_roofline}, {"timeline", ft__svg_timeline}, {"memory", ft__svg_memory},
    {"layers", ft__svg_layers},          {"classes", ft__svg_classes},   {"intervals", ft__svg_step_ranges},
    {"pipeline", ft__svg_stages},        {"phases", ft__svg_phases},     {"peak", ft__svg_peak},
    {"scaling", draw_scaling},
};
enum { PICTURES = sizeof pictures / sizeof *pictures };

static ft_status no_picture(const char *name, ft_error *err)
{
    const char *names[PICTURES];
    char all[160] = "";
    size_t used = 0;
    for (int i = 0; i < PICTURES; i++) {
        names[i] = pictures[i].name;
        used += (size_t)snprintf(all + used, sizeof all - used, "%s%s", i ? ", " : "", names[i]);
    }
    const char *near = ft__nearest(name, names, PICTURES);
    return near ? ft__fail_at(err, FT_E_NAME, "picture", 0, 0, "no picture \"%.40s\"; did you mean \"%s\"?", name, near)
                : ft__fail_at(err, FT_E_NAME, "picture", 0, 0, "no picture \"%.40s\"; there are %s", name, all);
}

ft_status ft__picture_step(ft_text *out, const ft_frame *f, const ft_step_view *v, const char *name, ft_error *err)
{
    for (int i = 0; i < PICTURES; i++) {
        draws *draw = pictures[i].draw;
        if (strcmp(name, pictures[i].name) != 0) continue;
        if (draw == ft__svg_stages && (!v->ranked || v->ranked->stage_count < 2))
            return ft__fail_at(err, FT_E_NAME, "picture", 0, 0, "this step has no pipeline to draw; --pp makes one");
        if (draw == draw_scaling && !scales(v))
            return ft__fail_at(err, FT_E_NAME, "picture", 0, 0,
                               "this step has no scaling curve: it cannot be laid out");
        return draw(out, f, v) ? FT_OK : ft__fail(err, FT_E_MEMORY, "out of memory for a picture");
    }
    return no_picture(name, err);
}

/* -- summary ----------------------------------------------------------------------------------- */

void ft__page_open_as(ft_text *out, const char *title)
{
    ft_text first = {.cap = 65536}, rest = {.cap = 65536};
    size_t n = strcspn(title, "\n");
    ft__text_add_n(&first, title, n);
    for (const char *at = title + n + (title[n] == '\n'); *at; at += n + (at[n] == '\n')) {
        n = strcspn(at, "\n");
        if (rest.length) ft__text_add(&rest, "; ");
        ft__text_add_n(&rest, at, n);
    }
    ft__page_open(out, first.at ? first.at : "", rest.at ? rest.at : "");
    ft__text_drop(&first, out);
    ft__text_drop(&rest, out);
}

static void open_page(ft_text *out, const ft_step_view *v)
{
    ft_text t = {.cap = 65536};
    ft__screen_step_title(&t, &plain, v);
    ft__page_open_as(out, t.at ? t.at : v->model);
    ft__text_drop(&t, out);
}

static void add_interval(ft_text *t, double low, double high)
{
    ft__add_figure(t, low, 4);
    ft__text_add(t, " – ");
    ft__add_figure(t, high, 4);
    ft__text_add(t, " ms, ");
}

static void summary(ft_text *out, const ft_step_view *v)
{
    const ft_step *s = v->step;
    const ft_memory *m = &s->memory;
    ft_text a = {.cap = 1024}, b = {.cap = 1024};
    ft__page_figures(out);
    ft__add_figure(&a, s->step_ms, 4);
    ft__text_add(&a, " ms");
    add_interval(&b, s->low_ms, s->high_ms);
    ft__add_confidence(&b, v->quantile);
    ft__page_figure(out, NULL, "step", a.at, b.at);

    ft__markup_reset(out, &a);
    ft__markup_reset(out, &b);
    bool samples = ft__counts_samples(v->arch);
    double rate = samples ? ft__view_samples_per_s(v) : ft__view_tokens_per_s(v);
    ft__add_figure(&a, rate, 4);
    ft__text_addf(&a, " %s", ft__rate_unit(v->arch));
    ft__text_add(&b, "MFU ");
    ft__add_percent(&b, s->mfu);
    ft__text_add(&b, ", HFU ");
    ft__add_percent(&b, s->hfu);
    if (v->ranked) {
        ft__text_add(&b, "; per GPU ");
        ft__add_figure(&b, rate / (double)ft__view_gpus(v), 4);
    }
    ft__page_figure(out, NULL, "rate", a.at, b.at);

    ft__markup_reset(out, &b);
    const double bubble = ft__bubble_share(s);
    for (int i = 0, said = 0; i < 5; i++) {
        double share = i == 4 ? bubble : i == FT_BOUND_OVERHEAD ? s->regime[i] - bubble : s->regime[i];
        if (share < 0.005) continue;
        ft__text_addf(&b, "%s%s ", said++ ? ", " : "", i == 4 ? "pipeline bubble" : ft__bound_keys[i].name);
        ft__add_percent(&b, share);
    }
    ft__page_figure(out, NULL, "bound by", ft__view_bound_words(v), b.at ? b.at : "");

    ft__markup_reset(out, &a);
    ft__markup_reset(out, &b);
    ft__add_gib(&a, m->reserved_bytes + m->context_bytes);
    ft__text_add(&a, " GiB");
    ft__text_add(&b, m->fits ? "fits: " : "does not fit: ");
    ft__add_gib(&b, fabs(m->capacity_bytes - m->reserved_bytes - m->context_bytes));
    ft__text_addf(&b, " GiB %s of ", m->fits ? "left" : "short");
    ft__add_gib(&b, m->capacity_bytes);
    if (!m->fits && m->remedy && *m->remedy) ft__text_addf(&b, "; would fit: %s", m->remedy);
    ft__page_figure(out, m->fits ? "good" : "bad", "memory per GPU", a.at, b.at);
    ft__page_figures_end(out);
    ft__page_warnings(out, v->warnings);
    ft__text_drop(&a, out);
    ft__text_drop(&b, out);
}

bool ft__page_step(ft_text *out, const ft_step_view *v)
{
    open_page(out, v);
    summary(out, v);
    bool drawn = true;
    if (!v->memory_only) {
        ft__page_section(out, "time", "Where the time goes", v->ranked ? "Of the slowest pipeline stage's GPU." : "");
        drawn = both(out, v, ft__svg_phases);
        ft__page_section_end(out);
        drawn = drawn && ft__page_advice(out, v);
        ft__page_section(out, "timeline", "Timeline",
                         "One step on one GPU. Kernels too short for a pixel share one; grey track means that the GPU "
                         "waits.");
        drawn = drawn && both(out, v, ft__svg_timeline);
        if (v->ranked && v->ranked->stage_count > 1) {
            ft__text_add(out, "<h3>Pipeline</h3>\n");
            drawn = drawn && both(out, v, ft__svg_stages) && ft__page_stages(out, v);
        }
        ft__page_section_end(out);
        ft__page_section(out, "roofline", "Roofline",
                         "Every kernel of the step, as large as the time it takes. Under the slanted roof memory "
                         "bandwidth is the limit, under the flat one arithmetic.");
        drawn = drawn && both(out, v, ft__svg_step_roofline) && ft__page_kernels(out, v);
        ft__page_section_end(out);
    }
    ft__page_section(out, "memory", "Memory over the step", v->ranked ? "Of the fullest pipeline stage's GPU." : "");
    drawn = drawn && both(out, v, ft__svg_memory);
    ft__page_memory(out, v);
    ft__page_section_end(out);
    if (!v->memory_only) {
        ft__page_section(out, "layers", "Layers and classes", "By what limits them.");
        drawn = drawn && both(out, v, ft__svg_layers) && ft__page_layers(out, v);
        ft__text_add(out, "<h3>Classes of kernels</h3>\n");
        drawn = drawn && both(out, v, ft__svg_classes);
        ft__page_section_end(out);
        if (scales(v)) {
            ft__page_section(out, "scaling", "On more GPUs",
                             "Data parallel over the layout asked for. Weak: every GPU keeps its work; strong: the "
                             "batch of the step stays. Bands are where the truth should lie.");
            drawn = drawn && ft__page_curves(out, v->scale);
            ft__page_section_end(out);
        }
        ft__page_section(out, "intervals", "How sure",
                         "Where the truth should lie, for the step and for the kernels that take most of it.");
        drawn = drawn && both(out, v, ft__svg_step_ranges);
        ft__page_section_end(out);
    }
    ft__page_close(out);
    return drawn && !out->failed;
}

/* scale_screen.c: scaling for people: closed forms, what the timeline makes of them, and two curves. */
#include "report/text/scale_screen.h"
#include "report/text/step_words.h"

#include <inttypes.h>
#include <math.h>

#include "report/text/columns.h"
#include "report/text/lines.h"
#include "report/text/screen.h"

enum { MOST_PLOT_WIDTH = 64, PLOT_HEIGHT = 7, BAR = 8 };

static void rate_line(ft_text *out, const ft_style *style, const char *label, double value, const char *unit,
                      const char *remark)
{
    ft_text figure = {0};
    ft__add_figure(&figure, value, 4);
    ft__text_addf(&figure, " %s", unit);
    ft__line(out, style, label, &figure, remark);
    ft__text_drop(&figure, out);
}

static void put_in(ft_text *out, const ft_style *style, const ft_scale *s)
{
    const ft_scaling *c = &s->closed;
    ft_text t = {0};
    ft__text_addf(&t, "C: dense %s peak of one GPU", ft_dtype_name(s->work.dtype));
    rate_line(out, style, "arithmetic", c->flops * 1e-12, "TFLOP/s", t.at);
    ft__text_empty(&t);
    ft__text_addf(&t, "W of %" PRId64 " GPUs over %s%s", c->tensor.domain, c->inside_name,
                  c->inside_reduces ? ", whose switches reduce" : "");
    rate_line(out, style, "inside", c->inside_rate * 1e-9, "GB/s", t.at);
    if (c->nic_rate > 0) {
        ft__text_empty(&t);
        ft__text_addf(&t, "W between them: %s, ", c->outside_name);
        ft__add_figure(&t, c->nic_rate * 1e-9, 4);
        ft__text_addf(&t, " GB/s a GPU%s", c->outside_reduces ? ", switches reduce" : "");
        rate_line(out, style, "outside", c->outside_rate * 1e-9, "GB/s", t.at);
    }
    ft__text_drop(&t, out);
}

/* -- data -------------------------------------------------------------------------------------- */

static void form_row(ft_columns *t, const char *what, const char *form, double tokens)
{
    ft__cell_add(t, what);
    ft__cell_add(t, form);
    ft__add_figure(ft__cell(t), tokens, 4);
}

static bool data_forms(ft_text *out, const ft_style *style, const ft_scale *s)
{
    const ft_scaling_data *d = &s->closed.data;
    ft_columns t;
    ft__columns_init(&t, "llr");
    ft__cell_add(&t, "closed form");
    ft__cell_add(&t, "B/X >");
    ft__cell_add(&t, "tokens");
    form_row(&t, "DP or FSDP inside a domain", "C/W", d->inside);
    if (s->closed.inside_reduces) form_row(&t, "  DP, reduced in switches", "C/2W", d->reduced_inside);
    if (s->closed.nic_rate > 0) {
        form_row(&t, "DP or FSDP between domains", "C/W", d->outside);
        form_row(&t, s->closed.outside_reduces ? "  DP, reduced in switches" : "  DP, if switches reduced", "C/2W",
                 d->reduced_outside);
    }
    if (d->sparsity > 1) {
        ft__cell_add(&t, "  sparse experts");
        ft__text_addf(ft__cell(&t), "C/W E/k, %" PRId64 "/%" PRId64, s->experts, s->topk);
        ft__add_figure(ft__cell(&t), d->sparse_outside, 4);
        ft__cell_add(&t, "  sparse, whole model");
        ft_text *cell = ft__cell(&t);
        ft__text_add(cell, "C/W ");
        ft__add_figure(cell, d->whole_sparsity, 3);
        ft__add_figure(ft__cell(&t), d->outside * d->whole_sparsity, 4);
    }
    bool printed = ft__columns_print(&t, out, style, 2, true);
    ft__columns_free(&t);
    return printed;
}

static bool knees(ft_text *out, const ft_style *style, const ft_scale *s)
{
    ft_columns t;
    ft__columns_init(&t, "lrrrrrr");
    static const char *const head[] = {"as asked", "GPUs", "closed", "timeline", "of C", "of W", "exposed"};
    for (int i = 0; i < 7; i++) ft__cell_add(&t, head[i]);
    for (size_t i = 0; i < s->knee_count; i++) {
        const ft_scale_knee *k = &s->knees[i];
        ft__cell_add(&t, k->name);
        ft__text_addf(ft__cell(&t), "%" PRId64, ft__parallel_ranks(&k->parallel));
        ft__add_figure(ft__cell(&t), k->closed, 4);
        ft_text *cell = ft__cell(&t);
        if (k->timeline > 0)
            ft__add_figure(cell, k->timeline, 4);
        else
            ft__text_add(cell, "none");
        ft__add_percent(ft__cell(&t), k->math);
        ft__add_percent(ft__cell(&t), k->wire);
        ft__add_percent(ft__cell(&t), k->exposed);
    }
    ft__text_add(out, "\n");
    bool printed = ft__columns_print(&t, out, style, 2, true);
    ft__columns_free(&t);
    ft__ink(out, style, FT_INK_DIM);
    ft__add_wrapped(
        out, style,
        "Timeline: tokens at which exchanges take as long as the kernels beside them. It is the closed "
        "form times the share of C that kernels reach, over the share of W that exchanges do; exposed is "
        "what the first gather, the last reduction and uneven layers leave. Of W falls where a ring of many ranks "
        "spends its time on latency.");
    ft__ink_end(out, style);
    return printed;
}

/* -- tensor, experts, pipeline ----------------------------------------------------------------- */

static bool degrees(ft_text *out, const ft_style *style, const char *what, const ft_scale_degree *d, size_t count)
{
    bool layers = count > 0 && d[count - 1].layer > 0;
    ft_columns t;
    ft__columns_init(&t, layers ? "rrrrrrrr" : "rrrrrrr");
    ft__cell_add(&t, what);
    ft__cell_add(&t, "closed");
    if (layers) ft__cell_add(&t, "layer");
    ft__cell_add(&t, "timeline");
    ft__cell_add(&t, "of C");
    ft__cell_add(&t, "of W");
    ft__cell_add(&t, "tokens/s/GPU");
    ft__cell_add(&t, "efficiency");
    for (size_t i = 0; i < count; i++) {
        ft__text_addf(ft__cell(&t), "%" PRId64, d[i].degree);
        ft__add_figure(ft__cell(&t), d[i].closed, 3);
        if (layers) ft__add_figure(ft__cell(&t), d[i].layer, 3);
        ft__add_figure(ft__cell(&t), d[i].timeline, 3);
        ft__add_percent(ft__cell(&t), d[i].math);
        ft__add_percent(ft__cell(&t), d[i].wire);
        ft__add_figure(ft__cell(&t), d[i].tokens_per_s, 4);
        ft__add_percent(ft__cell(&t), d[i].efficiency);
    }
    bool printed = ft__columns_print(&t, out, style, 2, true);
    ft__columns_free(&t);
    return printed;
}

static void add_limit(ft_text *out, double ways)
{
    if (ways < 1)
        ft__text_add(out, "below 1");
    else
        ft__add_figure(out, ways, 3);
}

static bool tensor(ft_text *out, const ft_style *style, const ft_scale *s)
{
    const ft_scaling_tensor *t = &s->closed.tensor;
    ft_text line = {0};
    ft__heading(out, style, "Tensor parallel: exchange over arithmetic, 1 is the limit");
    ft__text_addf(&line, "Y < F W/C = %.0f x ", t->ffn);
    ft__add_figure(&line, s->closed.inside_rate * 1e-9, 4);
    ft__text_add(&line, " GB/s / ");
    ft__add_figure(&line, s->closed.flops * 1e-12, 4);
    ft__text_add(&line, " TFLOP/s = ");
    add_limit(&line, t->inside);
    ft__text_add(&line, "; whole layers and both passes counted ");
    add_limit(&line, t->layer);
    if (s->closed.nic_rate > 0) {
        ft__text_addf(&line, "; a domain ends at %" PRId64 ", past it ", t->domain);
        add_limit(&line, t->outside);
    }
    double crossing = ft__scale_crossing(s->tensor, s->tensor_count);
    if (crossing > 0) {
        ft__text_add(&line, "; the timeline passes 1 at ");
        ft__add_figure(&line, crossing, 3);
    }
    ft__text_add(&line, ".");
    ft__add_wrapped(out, style, line.at ? line.at : "");
    ft__text_drop(&line, out);
    if (s->tensor_count == 0) return true;
    bool printed = degrees(out, style, "ways", s->tensor, s->tensor_count);
    ft__ink(out, style, FT_INK_DIM);
    ft__add_wrapped(out, style,
                    s->closed.inside_reduces
                        ? "Timeline: layer times of C over of W. Nothing hides these exchanges: at 1 they are half of "
                          "the layer. Switches that reduce send an all-reduce once instead of twice, so that of W can "
                          "pass 100 %."
                        : "Timeline: layer times of C over of W. Nothing hides these exchanges: at 1 they are half of "
                          "the layer.");
    ft__ink_end(out, style);
    return printed;
}

static bool experts(ft_text *out, const ft_style *style, const ft_scale *s)
{
    const ft_scaling_expert *e = &s->closed.expert;
    if (!e->any) return true;
    ft_text line = {0};
    ft__heading(out, style, "Expert parallel: exchange over the experts' arithmetic");
    ft__text_add(&line, "few: Z < domain + kF W/C = ");
    ft__add_figure(&line, e->few, 3);
    ft__text_addf(&line, "; many: F > domain C/W = ");
    ft__add_figure(&line, e->wide_ffn, 4);
    ft__text_addf(&line, ", and F is %.0f: %s.", s->closed.ffn, e->wide ? "any number" : "not here");
    ft__add_wrapped(out, style, line.at ? line.at : "");
    ft__text_drop(&line, out);
    if (s->expert_count == 0) return true;
    bool printed = degrees(out, style, "ways", s->expert, s->expert_count);
    ft__ink(out, style, FT_INK_DIM);
    ft__add_wrapped(
        out, style,
        "The closed form counts the experts' products alone, the timeline all kernels; and it sends a token once "
        "to each domain, where an all-to-all sends it to every expert (of W).");
    ft__ink_end(out, style);
    return printed;
}

static void pipeline(ft_text *out, const ft_style *style, const ft_scale *s)
{
    const ft_scaling_pipeline *p = &s->closed.pipeline;
    if (s->parallel.pp < 2) return;
    ft_text line = {0};
    ft__heading(out, style, "Pipeline");
    ft__text_addf(&line, "%" PRId64 " stages: one send takes ", s->parallel.pp);
    ft__add_percent(&line, p->hop);
    ft__text_add(&line, " of a stage's forward pass (timeline ");
    ft__add_percent(&line, s->pipeline_hop);
    ft__text_add(&line, "), the whole batch's ");
    ft__add_percent(&line, p->share);
    ft__text_add(&line, "; waiting (S-1)/M ");
    ft__add_percent(&line, p->bubble);
    ft__text_add(&line, " of the work (timeline ");
    ft__add_percent(&line, s->pipeline_bubble);
    ft__text_add(&line, ").");
    ft__add_wrapped(out, style, line.at ? line.at : "");
    ft__text_drop(&line, out);
}

/* -- curves ------------------------------------------------------------------------------------ */

static bool curve(ft_text *out, const ft_style *style, const ft_scale_point *p, size_t count, bool piped)
{
    double x[FT_SCALE_POINTS], y[FT_SCALE_POINTS];
    bool too_much = false;
    ft_columns t;
    ft__columns_init(&t, piped ? "rrrrrlrrrl" : "rrrrrlrrl");
    t.drop = "cb";
    static const char *const head[] = {"GPUs", "dp", "micro", "step ms", "t/s/GPU", "efficiency", "", "exposed"};
    for (int i = 0; i < 8; i++) ft__cell_add(&t, head[i]);
    if (piped) ft__cell_add(&t, "bubble");
    ft__cell_add(&t, "memory");
    for (size_t i = 0; i < count && i < FT_SCALE_POINTS; i++) {
        ft__text_addf(ft__cell(&t), "%" PRId64, p[i].gpus);
        ft__text_addf(ft__cell(&t), "%" PRId64, p[i].dp);
        ft__text_addf(ft__cell(&t), "%" PRId64, p[i].micros);
        ft__add_figure(ft__cell(&t), p[i].step_ms, 4);
        ft__add_figure(ft__cell(&t), p[i].tokens_per_s, 4);
        ft__add_bar(ft__cell(&t), style, fmin(p[i].efficiency, 1), BAR);
        ft__add_percent(ft__cell(&t), p[i].efficiency);
        ft__add_percent(ft__cell(&t), p[i].exposed_ms / p[i].step_ms);
        if (piped) ft__add_percent(ft__cell(&t), p[i].bubble_ms / p[i].step_ms);
        ft_text *cell = ft__cell(&t);
        ft__add_gib(cell, p[i].peak_bytes);
        ft__text_add(cell, p[i].fits ? " GiB" : " GiB *");
        too_much = too_much || !p[i].fits;
        x[i] = (double)p[i].gpus;
        y[i] = p[i].tokens_per_s;
    }
    bool printed = ft__columns_print(&t, out, style, 2, true);
    ft__columns_free(&t);
    if (too_much) ft__text_add(out, "  * does not fit\n");
    int width = style->width - 16;
    if (width > MOST_PLOT_WIDTH) width = MOST_PLOT_WIDTH;
    if (count > 2 && width >= 20) {
        ft__text_add(out, "\n");
        ft__plot(out, style, &(ft_plot){x, y, count, width, PLOT_HEIGHT, "GPUs", "t/s"});
    }
    return printed;
}

static void add_layout(ft_text *out, const ft_parallel *p)
{
    if (p->tp > 1) ft__text_addf(out, ", tp %" PRId64, p->tp);
    if (p->pp > 1) ft__text_addf(out, ", pp %" PRId64 " %s", p->pp, ft__schedule_name(p->schedule));
    if (p->cp > 1) ft__text_addf(out, ", cp %" PRId64, p->cp);
    if (p->ep > 1) ft__text_addf(out, ", ep %" PRId64, p->ep);
    ft__text_addf(out, ", %s",
                  p->zero == 3   ? "FSDP"
                  : p->zero == 2 ? "ZeRO-2"
                  : p->zero == 1 ? "ZeRO-1"
                                 : "plain data parallel");
}

bool ft__screen_scale(ft_text *out, const ft_style *style, const ft_scale *s)
{
    ft_text t = {0};
    ft__ink(out, style, FT_INK_BOLD);
    ft__text_add(out, "scaling ");
    ft__add_model_name(out, s->model);
    ft__ink_end(out, style);
    ft__text_add(out, "  on ");
    ft__text_add_plain(out, s->device.title[0] ? s->device.title : s->device.name);
    ft__text_add(out, "\n");
    ft__ink(out, style, FT_INK_DIM);
    ft__add_wrapped(out, style, s->understood);
    ft__ink_end(out, style);
    ft__text_add(out, "\n");
    put_in(out, style, s);
    ft__heading(out, style, "Data parallel: tokens per GPU that hide the exchange");
    bool printed = data_forms(out, style, s);
    printed = printed && knees(out, style, s);
    printed = printed && tensor(out, style, s);
    printed = printed && experts(out, style, s);
    pipeline(out, style, s);
    if (s->strong_count > 0) {
        ft__text_addf(&t, "Strong scaling: %" PRId64 " sequences of %" PRId64 " tokens per step",
                      s->strong[s->strong_count - 1].global_batch, s->work.seq);
        add_layout(&t, &s->parallel);
        ft__heading(out, style, t.at ? t.at : "");
        printed = printed && curve(out, style, s->strong, s->strong_count, s->parallel.pp > 1);
    }
    if (s->weak_count > 0) {
        const ft_scale_point *last = &s->weak[s->weak_count - 1];
        ft__text_empty(&t);
        ft__text_addf(&t, "Weak scaling: %.0f tokens per GPU and step",
                      (double)last->global_batch * (double)s->work.seq / (double)last->gpus);
        add_layout(&t, &s->parallel);
        ft__heading(out, style, t.at ? t.at : "");
        printed = printed && curve(out, style, s->weak, s->weak_count, s->parallel.pp > 1);
    }
    ft__text_drop(&t, out);
    return printed && !out->failed;
}

/* ranks_screen.c: what a step on many GPUs adds to the screen of a step. */
#include <inttypes.h>
#include <math.h>

#include "report/text/columns.h"
#include "report/text/lines.h"
#include "report/text/step_screen.h"
#include "report/text/step_words.h"

/* -- the layout -------------------------------------------------------------------------------- */

static void add_degree(ft_text *t, const ft_style *style, const char *name, int64_t degree, bool *any)
{
    if (degree <= 1) return;
    if (*any) ft__text_addf(t, " %s ", ft__times(style));
    ft__text_addf(t, "%s %" PRId64, name, degree);
    *any = true;
}

static void add_layout(ft_text *t, const ft_style *style, const ft_step_view *v)
{
    const ft_parallel *p = v->parallel;
    static const char *const sharded[] = {"", ", ZeRO-1: states sharded", ", ZeRO-2: states and gradients sharded",
                                          ", ZeRO-3: parameters sharded"};
    static const char *const contexts[FT_CONTEXT_COUNT] = {"ring of keys and values", "all-to-all of heads",
                                                           "keys and values gathered",
                                                           "keys and values as PyTorch gathers them"};
    bool any = false;
    ft__text_addf(t, "%" PRId64 " GPU%s: ", ft__view_gpus(v), ft__view_gpus(v) == 1 ? "" : "s");
    add_degree(t, style, "tensor", p->tp, &any);
    add_degree(t, style, "context", p->cp, &any);
    add_degree(t, style, "data", p->dp, &any);
    add_degree(t, style, "pipeline", p->pp, &any);
    if (p->ep > 1) ft__text_addf(t, "%sexperts over %" PRId64, any ? ", " : "", p->ep);
    if (ft__expert_overlaps(p) && v->work->task == FT_TRAIN) ft__text_add(t, " beside another micro-batch");
    if (p->sp && p->tp > 1) ft__text_add(t, ", sequence parallel");
    if (ft__ranks_in_pieces(p, v->work)) ft__text_add(t, " beside products");
    if (p->cp > 1 && p->context < FT_CONTEXT_COUNT) ft__text_addf(t, ", %s", contexts[p->context]);
    if (p->zero > 0 && p->zero <= 3 && p->dp * p->cp > 1) {
        ft__text_add(t, sharded[p->zero]);
        if (p->shard > 0) ft__text_addf(t, " in groups of %" PRId64, p->shard);
        if (ft__ranks_by_parameter(p, v->work)) ft__text_add(t, ", gathered tensor by tensor");
    }
    if (!ft__ranks_overlaps(p, v->work) && v->work->task == FT_TRAIN && p->dp * p->cp > 1)
        ft__text_add(t, ", gradients after the backward pass");
    if (p->pp > 1) {
        ft__text_addf(t, ", %s", ft__schedule_name(p->schedule));
        if (p->vpp > 1) ft__text_addf(t, " with %" PRId64 " chunks per GPU", p->vpp);
        if (ft__layout_deal(v->arch->layers, p->pp * ft__parallel_chunks(p), p->rest) != FT_DEAL_EVEN) {
            ft__text_add(t, ", ");
            ft__add_dealt(t, v);
        }
    }
    if (v->work->task == FT_TRAIN) {
        double global = (double)v->work->batch * (double)v->step->micros * (double)p->dp;
        ft__text_addf(t, ", %" PRId64 " micro-batch%s, global batch %.0f", v->step->micros,
                      v->step->micros == 1 ? "" : "es", global);
    }
}

void ft__screen_layout(ft_text *out, const ft_style *style, const ft_step_view *v)
{
    ft_text t = {0};
    add_layout(&t, style, v);
    ft__add_wrapped(out, style, t.at ? t.at : "");
    ft__text_empty(&t);
    if (v->device) ft__text_add_plain(&t, v->cluster->understood); /* several devices have several */
    ft__ink(out, style, FT_INK_DIM);
    if (v->device) ft__add_wrapped(out, style, t.at ? t.at : "");
    ft__ink_end(out, style);
    ft__text_drop(&t, out);
}

/* -- where the time goes ----------------------------------------------------------------------- */

static void stage_line(ft_text *out, const ft_style *style, const char *label, const ft_step_view *v, int64_t stage,
                       const char *remark)
{
    ft_text a = {0};
    ft__text_addf(&a, "stage %" PRId64 " of %" PRId64, stage + 1, v->parallel->pp);
    ft__line(out, style, label, &a, remark);
    ft__text_drop(&a, out);
}

void ft__screen_slowest(ft_text *out, const ft_style *style, const ft_step_view *v)
{
    if (v->parallel->pp > 1) stage_line(out, style, "slowest", v, ft__slowest_stage(v), "where its time goes");
}

void ft__screen_waits(ft_text *out, const ft_style *style, const ft_step_view *v)
{
    static const char *const labels[FT_AXIS_COUNT] = {[FT_AXIS_TENSOR] = "tp exchange",
                                                      [FT_AXIS_CONTEXT] = "cp exchange",
                                                      [FT_AXIS_EXPERT] = "ep exchange",
                                                      [FT_AXIS_DATA] = "dp exchange",
                                                      [FT_AXIS_PIPELINE] = "pp exchange"};
    const ft_step *s = v->step;
    double exposed[FT_AXIS_COUNT];
    if (!ft__axes_exposed(v, exposed)) {
        out->failed = true;
        return;
    }
    for (int a = 0; a < FT_AXIS_COUNT; a++) {
        if (s->axis_ms[a] <= 0) continue;
        double hidden = fmax(s->axis_ms[a] - exposed[a], 0);
        ft_text remark = {0};
        if (hidden > 0.01 * s->axis_ms[a]) {
            ft_time_unit unit = ft__time_unit(s->step_ms);
            ft__text_add(&remark, "+ ");
            ft__add_figure(&remark, hidden / unit.ms, 3);
            ft__text_addf(&remark, " %s hidden", unit.name);
        }
        ft__screen_part(out, style, labels[a], exposed[a], s->step_ms, remark.at);
        ft__text_drop(&remark, out);
    }
    if (v->parallel->pp > 1) ft__screen_part(out, style, "bubble", s->bubble_ms, s->step_ms, "other stages");
}

/* -- memory ------------------------------------------------------------------------------------ */

void ft__screen_fullest(ft_text *out, const ft_style *style, const ft_step_view *v)
{
    if (v->parallel->pp < 2) return;
    ft_text remark = {0};
    double flight = ft__in_flight(v, v->step->worst_stage);
    ft__text_addf(&remark, "holds most: %.3g micro-batch%s in flight", flight, flight > 1 ? "es" : "");
    stage_line(out, style, "fullest", v, v->step->worst_stage, remark.at);
    ft__text_drop(&remark, out);
}

/* -- stages ------------------------------------------------------------------------------------ */

static bool alike(const ft_step_view *v, int64_t a, int64_t b)
{
    const ft_stage *s = &v->ranked->stages[a], *t = &v->ranked->stages[b];
    return s->g == t->g && ft__in_flight(v, a) == ft__in_flight(v, b);
}

/* Equal neighbours share a row. */
bool ft__screen_stages(ft_text *out, const ft_style *style, const ft_step_view *v)
{
    static const char *const head[] = {"stage", "forward ms", "backward", "exposed", "update", "in flight", "peak GiB"};
    int64_t slowest = ft__slowest_stage(v), count = v->ranked->stage_count;
    ft_columns c;
    bool broad = style->width >= 90; /* a narrow one does without the update */
    ft__columns_init(&c, broad ? "lrrrrrrl" : "lrrrrrl");
    for (int i = 0; i < 7; i++)
        if (broad || i != 4) ft__cell_add(&c, head[i]);
    ft__cell_add(&c, "");
    for (int64_t s = 0, last; s < count; s = last + 1) {
        const ft_stage *g = &v->ranked->stages[s];
        for (last = s; last + 1 < count && alike(v, s, last + 1);) last++;
        if (last > s)
            ft__cell_addf(&c, "%" PRId64 "-%" PRId64, s + 1, last + 1);
        else
            ft__cell_addf(&c, "%" PRId64, s + 1);
        ft__add_figure(ft__cell(&c), g->forward_ms, 4);
        ft__add_figure(ft__cell(&c), g->backward_ms, 4);
        ft__add_figure(ft__cell(&c), g->exposed_ms, 3);
        if (broad) ft__add_figure(ft__cell(&c), g->update_ms, 3);
        ft__cell_addf(&c, "%.3g", ft__in_flight(v, s));
        ft__add_gib(ft__cell(&c), g->held.peak_bytes);
        bool slow = slowest >= s && slowest <= last, full = v->step->worst_stage >= s && v->step->worst_stage <= last;
        ft__cell_add(&c, slow && full ? "slowest, fullest" : slow ? "slowest" : full ? "fullest" : "");
    }
    bool printed = ft__columns_print(&c, out, style, 2, true);
    ft__columns_free(&c);
    ft__text_add(out, "\n  Times of one micro-batch.\n");
    return printed && !out->failed;
}

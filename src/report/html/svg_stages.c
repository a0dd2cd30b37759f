/* svg_stages.c: a pipeline: who runs which micro-batch when. What is left empty is the bubble. */
#include <math.h>
#include <stdio.h>

#include "report/html/svg_pictures.h"

enum { MOST_STAGES = 16 };

static const char *class_of(ft_pipe_kind kind)
{
    static const char *const classes[] = {"forward", "backward", "backward", "again"};
    return classes[kind];
}

/* Micro-batches that the list leaves out: forwards and backwards in turn, as high as their parts of the time. */
static void add_middle(ft_text *out, const ft_piped *pipe, int64_t s, const ft_ruler *x, double y, double height)
{
    const ft_pipe_op *ops = pipe->ops[s];
    double ms[2] = {0};
    char title[96];
    for (int32_t i = 0; i < pipe->op_count[s]; i++) ms[ops[i].kind != FT_PIPE_FORWARD] += ops[i].end - ops[i].start;
    double a = ft__ruler_at(x, ops[pipe->gap[s] - 1].end), b = ft__ruler_at(x, ops[pipe->gap[s]].start);
    double high = height * ms[0] / fmax(ms[0] + ms[1], 1e-9);
    snprintf(title, sizeof title, "stage %lld, %lld more micro-batches", (long long)s + 1, (long long)pipe->skipped);
    ft__svg_box(out, a, y, fmax(b - a, 0.5), high, "forward", title);
    ft__svg_box(out, a, y + high, fmax(b - a, 0.5), height - high, "backward", title);
}

/* Pieces narrower than a pixel and of one kind are drawn as one. */
static void add_stage(ft_text *out, const ft_piped *pipe, int64_t s, const ft_ruler *x, double y, double height)
{
    static const char *const words[] = {"forward", "backward", "backward of inputs", "gradients of weights"};
    for (int32_t i = 0; i < pipe->op_count[s];) {
        const ft_pipe_op *op = &pipe->ops[s][i];
        double a = ft__ruler_at(x, op->start), b = ft__ruler_at(x, op->end);
        int32_t to = i + 1, gap = pipe->skipped > 0 ? pipe->gap[s] : 0;
        while (to < pipe->op_count[s] && to != gap && b - a < 1.5) b = fmax(b, ft__ruler_at(x, pipe->ops[s][to++].end));
        if (to == gap && to < pipe->op_count[s]) add_middle(out, pipe, s, x, y, height);
        char title[128], number[24];
        if (to == i + 1)
            snprintf(title, sizeof title, "stage %lld, %s %lld: %.4g to %.4g ms", (long long)s + 1, words[op->kind],
                     (long long)op->micro + 1, op->start, op->end);
        else
            snprintf(title, sizeof title, "stage %lld, %d pieces", (long long)s + 1, (int)(to - i));
        ft__svg_box(out, a, y, fmax(b - a - (b - a > 4 ? 0.75 : 0), 0.5), height, class_of(op->kind), title);
        snprintf(number, sizeof number, "%lld", (long long)op->micro + 1);
        if (to == i + 1 && b - a > ft__svg_label_width(number) + 3)
            ft__svg_label(out, (a + b) / 2, y + height / 2 + 4, FT_MIDDLE, "onbar", number);
        i = to;
    }
}

bool ft__svg_stages(ft_text *out, const ft_frame *f, const ft_step_view *v)
{
    const ft_ranked *r = v->ranked;
    int64_t stages = r->stage_count, shown = stages < MOST_STAGES ? stages : MOST_STAGES, front = (shown + 1) / 2;
    double end = v->step->step_ms, height = f->narrow ? 16 : 20;
    bool split = false;
    for (int64_t s = 0; s < stages; s++) {
        end = fmax(end, r->pipe.finish[s]);
        for (int32_t i = 0; i < r->pipe.op_count[s]; i++) split |= r->pipe.ops[s][i].kind == FT_PIPE_WEIGHTS;
    }
    static const ft_key keys[] = {{"forward", "forward"}, {"backward", "backward"}, {"again", "gradients of weights"}};
    double top = ft__svg_keys_height(f, 0, keys, split ? 3 : 2) + 8, bottom = top + (height + 4) * (double)shown;
    ft_ruler x = {.low = 0, .high = end > 0 ? end : 1, .from = f->narrow ? 34 : 74, .to = f->width - 12};
    char desc[200];
    snprintf(desc, sizeof desc,
             "%lld pipeline stages over the step; numbers are micro-batches, empty places are the bubble. The table of "
             "stages has their times.",
             (long long)stages);
    ft__svg_open(out, f, "stages", bottom + 42, "Pipeline", desc);
    ft__svg_keys(out, f, 0, 0, keys, split ? 3 : 2);
    ft__svg_ruler_time(out, &x, top, bottom);
    for (int64_t i = 0; i < shown; i++) {
        int64_t s = i < front ? i : stages - shown + i;
        double y = top + (height + 4) * (double)i;
        char label[32];
        snprintf(label, sizeof label, f->narrow ? "%lld" : "stage %lld", (long long)s + 1);
        ft__svg_label(out, 0, y + height / 2 + 4, FT_START, "dim", label);
        ft__svg_box(out, x.from, y, x.to - x.from, height, "track", NULL);
        add_stage(out, &r->pipe, s, &x, y, height);
    }
    ft__svg_plot(out, f, &x, NULL);
    ft__svg_close(out);
    return !out->failed;
}

/* largest_screen.c: the largest model that trains or serves. */
#include "report/text/largest_screen.h"

#include <inttypes.h>

#include "report/json/answer.h"
#include "report/text/lines.h"

static void shape_lines(ft_text *out, const ft_style *style, const ft_step_view *v, const ft_largest *r)
{
    ft_text a = {0}, b = {0};
    ft__ink(&a, style, FT_INK_BOLD);
    ft__add_parameters(&a, v->graph->parameters);
    ft__ink_end(&a, style);
    ft__text_addf(&b, "%" PRId64 " layers of %" PRId64 ", %" PRId64 " heads, ffn %" PRId64 ", vocabulary %" PRId64,
                  r->layers, r->hidden, r->heads, r->ffn, r->vocab);
    ft__line(out, style, "parameters", &a, b.at);
    ft__text_clear(&a);
    ft__text_clear(&b);
    ft__add_gib(&a, r->need_bytes);
    ft__text_add(&a, " GiB");
    ft__text_add(&b, "of ");
    ft__add_gib(&b, v->step->memory.capacity_bytes);
    ft__text_addf(&b, "%s; one layer more is ", r->gpus > 1 ? " on each GPU" : "");
    ft__add_gib(&b, r->next_short_bytes);
    ft__text_add(&b, " GiB short");
    ft__line(out, style, "memory", &a, b.at);
    ft__text_clear(&a);
    ft__text_clear(&b);
    ft__add_gib(&a, r->shard_bytes);
    ft__text_add(&a, " GiB");
    ft__add_figure(&b, r->shard_bytes * (double)r->gpus / v->graph->parameters, 3);
    ft__text_addf(&b, " bytes per parameter%s%s", r->training ? " with gradients and optimizer" : "",
                  r->gpus > 1 ? ", sharded (ZeRO-3)" : "");
    ft__line(out, style, "states", &a, b.at);
    ft__text_clear(&a);
    ft__add_gib(&a, r->need_bytes - r->shard_bytes);
    ft__text_add(&a, " GiB");
    ft__line(out, style, "the rest", &a,
             r->training ? "activations, temporaries, reserve, context" : "cache, activations, reserve, context");
    ft__text_free(&a);
    ft__text_free(&b);
}

void ft__largest_title(ft_text *out, const ft_style *style, const ft_device *device, const ft_step_view *v,
                       const ft_largest *r)
{
    ft__ink(out, style, FT_INK_BOLD);
    ft__text_addf(out, "largest %s", r->family);
    ft__ink_end(out, style);
    ft__text_addf(out, "  that %s on ", r->training ? "trains" : "generates");
    if (r->gpus > 1) ft__text_addf(out, "%" PRId64 " %s ", r->gpus, ft__times(style));
    ft__text_add_plain(out, device->title[0] ? device->title : device->name);
    ft__text_add(out, "\n");
    if (!v) return;
    const ft_workload *w = v->work;
    ft_text t = {0};
    ft__text_addf(&t, "%s, batch %" PRId64 " %s %" PRId64 " tokens", v->dtype_name, w->batch, ft__times(style), w->seq);
    if (w->accumulate > 1) ft__text_addf(&t, " %s %" PRId64 " micro-batches", ft__times(style), w->accumulate);
    ft__text_addf(&t, ", %s attention", ft__attention_words[w->attention]);
    if (r->training)
        ft__text_addf(&t, ", %s%s, %s recompute", ft__optimizer_words[w->optimizer],
                      w->master_weights ? " with fp32 masters" : "",
                      w->recompute == FT_RECOMPUTE_NONE ? "no" : ft__recompute_words[w->recompute]);
    ft__ink(out, style, FT_INK_DIM);
    ft__add_wrapped(out, style, t.at ? t.at : "");
    ft__ink_end(out, style);
    out->failed |= t.failed;
    ft__text_free(&t);
}

bool ft__screen_largest(ft_text *out, const ft_style *style, const ft_device *device, const ft_step_view *v,
                        const ft_largest *r)
{
    ft__largest_title(out, style, device, v, r);
    if (!v) {
        ft__text_add(out, "\n  None: not even the smallest of the family fits.\n");
        return !out->failed;
    }
    ft__text_add(out, "\n");
    shape_lines(out, style, v, r);
    ft_text a = {0}, b = {0};
    ft__text_add(out, "\n");
    ft__add_figure(&a, v->step->step_ms, 4);
    ft__text_add(&a, " ms");
    ft__add_figure(&b, v->step->tokens_per_s, 4);
    ft__text_add(&b, " tokens/s per GPU, MFU ");
    ft__add_percent(&b, v->step->mfu);
    ft__line(out, style, r->training ? "step" : "TPOT", &a, b.at);
    ft__text_free(&a);
    ft__text_free(&b);
    if (r->training) ft__screen_days(out, style, &r->days);
    if (r->gpus > 1) ft__text_add(out, "\n  An upper bound: as if all communication were hidden.\n");
    return !out->failed;
}

void ft__answer_largest(ft_text *out, const ft_device *device, const ft_step_view *v, const ft_largest *r)
{
    ft__text_add(out, "{\"ok\":true,\"family\":");
    ft__text_add_json(out, r->family);
    ft__answer_word(out, "gpu", device->name);
    ft__answer_figure(out, "gpus", (double)r->gpus);
    ft__answer_word(out, "task", r->training ? "train" : "infer");
    ft__text_addf(out, ",\"fits\":%s", v ? "true" : "false");
    if (v) {
        ft__answer_key(out, "parameters");
        ft__text_add_number(out, v->graph->parameters, 15);
        ft__text_addf(out,
                      ",\"layers\":%" PRId64 ",\"hidden\":%" PRId64 ",\"heads\":%" PRId64 ",\"ffn\":%" PRId64
                      ",\"vocab\":%" PRId64,
                      r->layers, r->hidden, r->heads, r->ffn, r->vocab);
        ft__answer_figure(out, "need_bytes", r->need_bytes);
        ft__answer_figure(out, "states_bytes", r->shard_bytes);
        ft__answer_figure(out, "capacity_bytes", v->step->memory.capacity_bytes);
        ft__answer_figure(out, "next_parameters", r->next_parameters);
        ft__answer_figure(out, "step_ms", v->step->step_ms);
        ft__answer_figure(out, "low_ms", v->step->low_ms);
        ft__answer_figure(out, "high_ms", v->step->high_ms);
        ft__answer_figure(out, "tokens_per_s_per_gpu", v->step->tokens_per_s);
        ft__answer_figure(out, "mfu", v->step->mfu);
        if (r->training) ft__answer_days(out, &r->days);
    }
    ft__text_add(out, "}\n");
}

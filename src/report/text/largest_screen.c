/* largest_screen.c: the largest model that trains or serves. */
#include "report/text/largest_screen.h"

#include <inttypes.h>

#include "report/text/lines.h"
#include "report/text/step_screen.h"

static void shape_lines(ft_text *out, const ft_style *style, const ft_step_view *v, const ft_largest *r)
{
    ft_text a = {0}, b = {0};
    ft__ink(&a, style, FT_INK_BOLD);
    ft__add_parameters(&a, r->parameters);
    ft__ink_end(&a, style);
    ft__text_addf(&b, "%" PRId64 " layers of %" PRId64 ", %" PRId64 " heads, ffn %" PRId64 ", vocabulary %" PRId64,
                  r->layers, r->hidden, r->heads, r->ffn, r->vocab);
    ft__line(out, style, "parameters", &a, b.at);
    ft__text_empty(&a);
    ft__text_empty(&b);
    ft__add_gib(&a, r->need_bytes);
    ft__text_add(&a, " GiB");
    ft__text_add(&b, "of ");
    ft__add_gib(&b, v->step->memory.capacity_bytes);
    ft__text_addf(&b, "%s; one layer more is ", r->gpus > 1 ? " on each GPU" : "");
    ft__add_gib(&b, r->next_short_bytes);
    ft__text_add(&b, " GiB short");
    ft__line(out, style, "memory", &a, b.at);
    ft__text_empty(&a);
    ft__text_empty(&b);
    ft__add_gib(&a, r->state_bytes);
    ft__text_add(&a, " GiB");
    ft__add_figure(&b, r->state_bytes * (double)r->gpus / r->parameters, 3);
    ft__text_addf(&b, " bytes per parameter%s%s", r->training ? " with gradients and optimizer" : "",
                  r->gpus == 1  ? ""
                  : r->training ? ", sharded (ZeRO-3)"
                                : ", cut by tensor");
    ft__line(out, style, "states", &a, b.at);
    ft__text_empty(&a);
    ft__add_gib(&a, r->need_bytes - r->state_bytes);
    ft__text_add(&a, " GiB");
    ft__line(out, style, "the rest", &a,
             r->training ? "activations, temporaries, reserve, context" : "cache, activations, reserve, context");
    ft__text_drop(&a, out);
    ft__text_drop(&b, out);
}

void ft__largest_title(ft_text *out, const ft_style *style, const ft_largest *r)
{
    const ft_device *device = &r->device;
    ft__ink(out, style, FT_INK_BOLD);
    ft__text_addf(out, "largest %s", r->family);
    ft__ink_end(out, style);
    ft__text_addf(out, "  that %s on ", r->training ? "trains" : "generates");
    if (r->gpus > 1) ft__text_addf(out, "%" PRId64 " %s ", r->gpus, ft__times(style));
    ft__text_add_plain(out, device->title[0] ? device->title : device->name);
    ft__text_add(out, "\n");
    if (!r->layers) return;
    const ft_step_view *v = &r->view;
    const ft_workload *w = v->work;
    ft_text t = {0};
    ft__text_addf(&t, "%s, batch %" PRId64 " %s %" PRId64 " tokens", v->dtype_name, w->batch, ft__times(style), w->seq);
    if (w->accumulate > 1) ft__text_addf(&t, " %s %" PRId64 " micro-batches", ft__times(style), w->accumulate);
    ft__text_addf(&t, ", %s attention", ft__attention_words[w->attention]);
    if (r->training)
        ft__text_addf(&t, ", %s%s, %s recompute", ft__optimizer_words[w->optimizer],
                      w->master_weights ? " with fp32 masters" : "",
                      w->recompute == FT_RECOMPUTE_NONE ? "no" : ft__recompute_words[w->recompute]);
    if (w->lora_rank > 0) ft__text_addf(&t, ", LoRA rank %" PRId64, w->lora_rank);
    if (w->weight_bits > 0) ft__text_addf(&t, ", %g-bit weights", w->weight_bits);
    ft__ink(out, style, FT_INK_DIM);
    ft__add_wrapped(out, style, t.at ? t.at : "");
    ft__ink_end(out, style);
    ft__text_drop(&t, out);
    if (v->ranked) ft__screen_layout(out, style, v);
}

bool ft__screen_largest(ft_text *out, const ft_style *style, const ft_largest *r)
{
    const ft_step_view *v = &r->view;
    ft__largest_title(out, style, r);
    if (!r->layers) {
        ft__text_add(out, "\n  None: not even the smallest of the family fits.\n");
        return !out->failed;
    }
    ft__text_add(out, "\n");
    shape_lines(out, style, v, r);
    ft_text a = {0}, b = {0};
    ft__text_add(out, "\n");
    ft__add_figure(&a, v->step->step_ms, 4);
    ft__text_add(&a, " ms");
    ft__add_figure(&b, ft__view_tokens_per_s(v) / (double)ft__view_gpus(v), 4);
    ft__text_add(&b, " tokens/s per GPU, MFU ");
    ft__add_percent(&b, v->step->mfu);
    ft__line(out, style, r->training ? "step" : "TPOT", &a, b.at);
    ft__text_drop(&a, out);
    ft__text_drop(&b, out);
    if (r->days.tokens > 0) ft__screen_days(out, style, &r->days);
    return !out->failed;
}

/* models_screen.c: the catalogue of models, and one model's sheet. */
#include "report/text/models_screen.h"

#include <inttypes.h>

#include "report/json/answer.h"
#include "report/text/columns.h"
#include "report/text/lines.h"

static void whole_cell(ft_columns *c, int64_t value)
{
    if (value > 0)
        ft__cell_addf(c, "%" PRId64, value);
    else
        ft__cell_add(c, "");
}

static int64_t all_layers(const ft_arch *a) { return a->layers + a->decoder_layers; }

bool ft__screen_models(ft_text *out, const ft_style *style, const ft_model_sheet *sheets, size_t count, bool sources)
{
    static const char *const head[] = {"name",  "type", "parameters", "active",     "layers", "hidden",
                                       "heads", "kv",   "ffn",        "vocabulary", "source"};
    bool wide = style->width >= 100;
    ft_columns c;
    ft__columns_init(&c, sources ? "llrrrrrrrrl" : wide ? "llrrrrrrrr" : "llrrrrr");
    c.drop = sources ? NULL : wide ? "ihjdbgfe" : "dbgfe"; /* name and parameters stay */
    for (int i = 0; i < 11; i++)
        if ((i < 7 || wide || sources) && (i < 10 || sources)) ft__cell_add(&c, head[i]);
    for (size_t i = 0; i < count; i++) {
        const ft_model_sheet *s = &sheets[i];
        const ft_arch *a = &s->arch;
        ft__cell_add(&c, s->name);
        ft__cell_add(&c, a->model_type);
        ft__add_parameters(ft__cell(&c), s->parameters);
        if (s->active_parameters > 0 && s->active_parameters < 0.999 * s->parameters)
            ft__add_parameters(ft__cell(&c), s->active_parameters);
        else
            ft__cell_add(&c, "");
        whole_cell(&c, all_layers(a));
        whole_cell(&c, a->hidden);
        whole_cell(&c, a->heads);
        if (wide || sources) {
            whole_cell(&c, a->kv_heads);
            whole_cell(&c, a->ffn);
            whole_cell(&c, a->vocab);
        }
        if (sources) ft__cell_add(&c, s->entry ? s->entry->source : "");
    }
    bool printed = ft__columns_print(&c, out, style, 0, true);
    ft__columns_free(&c);
    return printed && !out->failed;
}

static void word_line(ft_text *out, const ft_style *style, const char *label, const char *word)
{
    ft_text a = {0};
    if (!word || !*word) return;
    ft__text_add_plain(&a, word);
    ft__line(out, style, label, &a, NULL);
    ft__text_drop(&a, out);
}

static void shape_lines(ft_text *out, const ft_style *style, const ft_arch *a)
{
    ft_text t = {0};
    ft__text_addf(&t, "%" PRId64 " layers", a->layers);
    if (a->decoder_layers > 0) ft__text_addf(&t, " + %" PRId64 " decoder layers", a->decoder_layers);
    if (a->hidden > 0) ft__text_addf(&t, " of %" PRId64, a->hidden);
    if (a->ffn > 0) ft__text_addf(&t, ", ffn %" PRId64 "%s", a->ffn, a->gated ? " gated" : "");
    if (a->activation && *a->activation) ft__text_addf(&t, " %s", a->activation);
    ft__line(out, style, "shape", &t, NULL);
    if (a->heads > 0) {
        ft__text_empty(&t);
        ft__text_addf(&t, "%" PRId64 " heads", a->heads);
        if (a->kv_heads > 0 && a->kv_heads != a->heads) ft__text_addf(&t, ", %" PRId64 " of keys", a->kv_heads);
        if (a->head_dim > 0) ft__text_addf(&t, ", width %" PRId64, a->head_dim);
        if (a->window > 0) ft__text_addf(&t, ", window %" PRId64, a->window);
        if (a->kv_lora > 0) ft__text_addf(&t, ", latent %" PRId64, a->kv_lora);
        ft__line(out, style, "attention", &t, NULL);
    }
    if (a->experts > 0) {
        ft__text_empty(&t);
        ft__text_addf(&t, "%" PRId64 ", %" PRId64 " per token, ffn %" PRId64, a->experts, a->topk, a->moe_ffn);
        if (a->shared_experts > 0) ft__text_addf(&t, ", %" PRId64 " shared", a->shared_experts);
        ft__line(out, style, "experts", &t, NULL);
    }
    if (a->vocab > 0) {
        ft__text_empty(&t);
        ft__text_addf(&t, "%" PRId64, a->vocab);
        ft__line(out, style, "vocabulary", &t, a->tied ? "head tied to the embedding" : "head of its own");
    }
    if (a->max_position > 0) {
        ft__text_empty(&t);
        ft__text_addf(&t, "%" PRId64, a->max_position);
        ft__line(out, style, "positions", &t, NULL);
    }
    ft__text_drop(&t, out);
}

bool ft__screen_model(ft_text *out, const ft_style *style, const ft_model_sheet *s, const ft_layer *layers,
                      size_t layer_count)
{
    const ft_model_entry *e = s->entry;
    ft_text a = {0}, b = {0};
    ft__ink(out, style, FT_INK_BOLD);
    ft__text_add_plain(out, s->name);
    ft__ink_end(out, style);
    ft__text_addf(out, "  %s\n\n", s->arch.model_type);
    ft__add_parameters(&a, s->parameters);
    ft__text_addf(&b, "%.0f", s->parameters);
    if (s->active_parameters > 0 && s->active_parameters < 0.999 * s->parameters) {
        ft__text_add(&b, ", ");
        ft__add_parameters(&b, s->active_parameters);
        ft__text_add(&b, " active per token");
    }
    if (e && e->published > 0) {
        ft__text_add(&b, "; published ");
        if (e->published_digits <= 1)
            ft__text_addf(&b, "%.0f", e->published);
        else
            ft__add_parameters(&b, e->published);
    }
    ft__line(out, style, "parameters", &a, b.at);
    ft__text_empty(&a);
    ft__add_gib(&a, 2 * s->parameters);
    ft__text_add(&a, " GiB");
    ft__line(out, style, "weights", &a, "in 16 bits");
    if (s->kv_bytes_per_token > 0) {
        ft__text_empty(&a);
        ft__add_figure(&a, s->kv_bytes_per_token / 1024, 4);
        ft__text_add(&a, " KiB");
        ft__line(out, style, "cache", &a, "per token, in 16 bits");
    }
    shape_lines(out, style, &s->arch);
    word_line(out, style, "hub", e ? e->hub : NULL);
    word_line(out, style, "source", e ? e->source : NULL);
    ft__text_drop(&a, out);
    ft__text_drop(&b, out);
    ft__text_add(out, "\n");

    ft_columns c;
    ft__columns_init(&c, "lrrr");
    static const char *const head[] = {"block", "times", "parameters", "share"};
    for (int i = 0; i < 4; i++) ft__cell_add(&c, head[i]);
    for (size_t i = 0; i < layer_count; i++) {
        if (layers[i].parameters <= 0) continue;
        ft__cell_add(&c, layers[i].name ? layers[i].name : "");
        ft__cell_addf(&c, "%.0f", layers[i].repeat);
        ft__cell_addf(&c, "%.0f", layers[i].parameters);
        ft__add_percent(ft__cell(&c), layers[i].parameters / s->parameters);
    }
    bool printed = ft__columns_print(&c, out, style, 2, true);
    ft__columns_free(&c);
    return printed && !out->failed;
}

/* step_words.c: a step in words. */
#include "report/text/step_words.h"

#include <inttypes.h>

#include "import/config/config.h"
#include "report/text/lines.h"

void ft__add_peak_place(ft_text *out, const ft_step_view *v)
{
    const ft_memory *m = &v->step->memory;
    const char *block = m->peak_block ? m->peak_block : "", *node = m->peak_node ? m->peak_node : "";
    ft__text_add(out, ft__phase_name(m->peak_phase));
    if (*block) ft__text_addf(out, " %s", block);
    if (*block && m->peak_layer >= 0) ft__text_addf(out, " %" PRId64, m->peak_layer);
    if (*node) ft__text_addf(out, ", %s", node);
}

/* As catalogues fold names: capitals, blanks and underscores tell nothing apart. */
static bool same_name(const char *a, const char *b)
{
    for (; *a && *b; a++, b++) {
        char x = *a >= 'A' && *a <= 'Z' ? (char)(*a - 'A' + 'a') : *a == '_' || *a == ' ' ? '-' : *a;
        if (x != *b) return false;
    }
    return *a == *b;
}

void ft__add_model_name(ft_text *out, const char *asked)
{
    const ft_model_entry *entry = ft__model_find(asked);
    ft__text_add_plain(out, entry ? entry->name : asked);
    if (!entry || same_name(asked, entry->name)) return;
    ft__text_add(out, " (");
    ft__text_add_plain(out, asked);
    ft__text_add(out, ")");
}

static void add_layers(ft_text *out, int64_t layers)
{
    ft__text_addf(out, "%" PRId64 " layer%s", layers, layers == 1 ? "" : "s");
}

void ft__add_dealt(ft_text *out, const ft_step_view *v)
{
    int64_t stages = v->parallel->pp, chunks = ft__parallel_chunks(v->parallel), layers = v->arch->layers, from, to;
    int64_t places = stages * chunks, more = layers % places, middle = places > 2 ? 1 : 0;
    ft_deal deal = ft__layout_deal(layers, places, v->parallel->rest);
    ft__layout_range(layers, places, v->parallel->rest, deal == FT_DEAL_ENDS ? middle : 0, &from, &to);
    add_layers(out, to - from);
    ft__text_add(out, chunks > 1 ? " per chunk" : " per stage");
    if (deal == FT_DEAL_ENDS)
        ft__text_addf(out, ", %" PRId64 " in the first and the last, with embedding and head", to - from - 1);
    if (deal == FT_DEAL_LOSS) ft__text_addf(out, ", %" PRId64 " in the last, with the head", to - from - 1);
    if (deal == FT_DEAL_REST)
        ft__text_addf(out, ", %" PRId64 " in the last, with the head", layers - (places - 1) * (to - from));
    if (deal == FT_DEAL_FRONT) ft__text_addf(out, ", %" PRId64 " in the last %" PRId64, to - from - 1, places - more);
}

const char *ft__step_bound_words(const ft_step *s)
{
    return ft__bound_by_bubble(s) ? "pipeline bubble" : ft__bound_words(s->bound);
}

const char *ft__view_bound_words(const ft_step_view *v)
{
    const ft_step *s = v->step;
    bool starves = s->bound == FT_BOUND_OVERHEAD &&
                   v->loading.wait_ms > 0.5 * s->regime[FT_BOUND_OVERHEAD] * s->step_ms;
    return starves ? "input pipeline" : ft__step_bound_words(s);
}

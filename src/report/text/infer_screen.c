/* infer_screen.c: TTFT, TPOT, what the cache holds, offline throughput. */
#include "report/text/infer_screen.h"
#include "report/text/step_words.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "report/text/advice_screen.h"
#include "report/text/columns.h"
#include "report/text/lines.h"
#include "report/text/picture_screen.h"
#include "report/text/step_screen.h"

static void heading(ft_text *out, const ft_style *style, const char *text, const char *remark)
{
    ft__text_add(out, "\n  ");
    ft__ink(out, style, FT_INK_BOLD);
    ft__text_add(out, text);
    ft__ink_end(out, style);
    ft__text_addf(out, "  %s\n", remark);
}

/* How far the truth may lie from a row's figures, by the widest of its intervals: "-12 +20 %". */
static void add_interval(ft_text *out, const ft_infer *r, const ft_infer_cell *cells)
{
    double below = 0, above = 0;
    for (size_t b = 0; b < r->batch_count; b++) {
        if (!cells[b].fits) continue;
        below = fmax(below, 1 - cells[b].low_ms / cells[b].ms);
        above = fmax(above, cells[b].high_ms / cells[b].ms - 1);
    }
    if (above > 0 || below > 0)
        ft__text_addf(out, "-%.0f +%.0f %%", 100 * below, 100 * above);
    else
        ft__text_add(out, "-");
}

/* Rows are lengths, columns batches; `-` where it does not fit. Times have an interval. `holds`: one more column, what
 * the cache holds. */
static bool grid(ft_text *out, const ft_style *style, const ft_infer *r,
                 const ft_infer_cell cells[FT_INFER_SIDE][FT_INFER_SIDE], bool rates, bool holds)
{
    char align[FT_MOST_COLUMNS + 1] = "r";
    size_t columns = 1 + r->batch_count + (rates ? 0 : 1) + (holds ? 1 : 0);
    for (size_t i = 1; i < columns; i++) align[i] = 'r';
    align[columns] = '\0';
    ft_columns c;
    const char interval[] = {(char)('b' + r->batch_count), '\0'};
    ft__columns_init(&c, align);
    if (!rates) c.drop = interval; /* where the terminal is narrow */
    ft__cell_add(&c, r->has_context ? "context" : "");
    for (size_t b = 0; b < r->batch_count; b++) ft__cell_addf(&c, "batch %" PRId64, r->batches[b]);
    if (!rates) ft__cell_add(&c, "interval");
    if (holds) ft__cell_add(&c, "cache holds");
    for (size_t s = 0; s < r->seq_count; s++) {
        if (r->has_context)
            ft__cell_addf(&c, "%" PRId64, r->seqs[s]);
        else
            ft__cell_add(&c, "");
        for (size_t b = 0; b < r->batch_count; b++) {
            const ft_infer_cell *cell = &cells[s][b];
            if (cell->fits)
                ft__add_figure(ft__cell(&c), rates ? cell->tokens_per_s : cell->ms, 4);
            else
                ft__cell_add(&c, "-");
        }
        if (!rates) add_interval(ft__cell(&c), r, cells[s]);
        if (holds) ft__cell_addf(&c, "%" PRId64 " sequence%s", r->sequences[s], r->sequences[s] == 1 ? "" : "s");
    }
    bool printed = ft__columns_print(&c, out, style, 2, true);
    ft__columns_free(&c);
    return printed;
}

static void offline_lines(ft_text *out, const ft_style *style, const ft_infer *r)
{
    const ft_offline *o = &r->offline;
    ft_text a = {0}, b = {0};
    if (o->isl == 0) return;
    ft__text_add(out, "\n");
    if (o->batch > 0) {
        ft__ink(&a, style, FT_INK_BOLD);
        ft__add_figure(&a, o->tokens_per_s, 4);
        ft__text_add(&a, " tokens/s");
        ft__ink_end(&a, style);
        ft__add_figure(&b, o->low_tokens_per_s, 3);
        ft__text_addf(&b, " %s ", ft__dash(style));
        ft__add_figure(&b, o->high_tokens_per_s, 3);
        ft__text_addf(&b, "; batch %" PRId64 ", prompts of %" PRId64 ", answers of %" PRId64, o->batch, o->isl, o->osl);
        ft__line(out, style, "offline", &a, b.at);
        ft__text_empty(&a);
        ft__text_empty(&b);
        ft__add_figure(&a, o->requests_per_s, 4);
        ft__text_add(&a, " requests/s");
        ft__add_figure(&b, o->total_tokens_per_s, 4);
        ft__text_add(&b, " tokens/s with the prompts");
        ft__line(out, style, "", &a, b.at);
        ft__text_empty(&a);
        ft__text_empty(&b);
        ft__add_figure(&a, o->tpot_ms, 4);
        ft__text_add(&a, " ms");
        ft__text_add(&b, "TPOT; prefill of the batch ");
        ft__add_figure(&b, o->prefill_ms, 4);
        ft__text_add(&b, " ms");
        ft__line(out, style, "", &a, b.at);
    } else {
        ft__text_add(&a, "does not fit");
        ft__text_addf(&b, "one sequence of %" PRId64 " tokens needs more memory", o->isl + o->osl);
        ft__line(out, style, "offline", &a, b.at);
    }
    ft__text_drop(&a, out);
    ft__text_drop(&b, out);
}

/* What the GPUs draw and what a joule buys: of the smallest and of the largest batch that fits at the first length. */
static void power_line(ft_text *out, const ft_style *style, const ft_infer *r)
{
    const ft_infer_cell *cells = r->generates ? r->decode[0] : r->prefill[0];
    size_t last = r->batch_count;
    while (last > 0 && !(cells[last - 1].fits && cells[last - 1].energy.watts > 0)) last--;
    if (last == 0 || !cells[0].fits) return;
    const size_t ends[] = {0, last - 1}, count = last > 1 ? 2 : 1;
    ft_text a = {0}, b = {0};
    for (size_t k = 0; k < count; k++) {
        const ft_infer_cell *cell = &cells[ends[k]];
        if (k) ft__text_add(&a, " to ");
        ft__add_figure(&a, cell->energy.watts, 3);
        if (k) ft__text_add(&b, " to ");
        ft__add_figure(&b, cell->tokens_per_s / (cell->energy.watts * (double)r->gpus), 3);
    }
    ft__text_addf(&a, " W%s", r->gpus > 1 ? " per GPU" : "");
    ft__text_addf(&b, " %s%s per joule", r->generates ? "decoded " : "",
                  ft__counts_samples(r->title.arch) ? "samples" : "tokens");
    if (count > 1) ft__text_addf(&b, ", batch %" PRId64 " to %" PRId64, r->batches[0], r->batches[last - 1]);
    if (r->offline.isl == 0) ft__text_add(out, "\n");
    ft__line(out, style, "power", &a, b.at);
    ft__text_drop(&a, out);
    ft__text_drop(&b, out);
}

static void cache_lines(ft_text *out, const ft_style *style, const ft_step_view *v, const ft_infer *r)
{
    ft_text a = {0}, b = {0};
    ft__add_gib(&a, r->weights_bytes);
    ft__text_add(&a, " GiB");
    ft__text_add(&b, "of ");
    ft__add_gib(&b, v->step->memory.capacity_bytes);
    if (r->gpus > 1) ft__text_add(&b, " on each GPU");
    ft__line(out, style, "weights", &a, b.at);
    const double lacks = r->weights_bytes - v->step->memory.capacity_bytes;
    if (lacks > 0) {
        ft__text_empty(&a);
        ft__text_empty(&b);
        ft__text_add(&a, "no");
        ft__text_add(&b, "short of ");
        ft__add_gib(&b, lacks);
        ft__text_addf(&b, " GiB%s for the weights alone", r->gpus > 1 ? " on each GPU" : "");
        ft__line(out, style, "fits", &a, b.at);
    }
    const char *remedy = v->step->memory.remedy;
    if (!v->step->memory.fits && remedy && *remedy && ft__widened_by(v->work) == FT_WEIGHTS_GGUF) {
        ft__text_empty(&a);
        ft__text_add_plain(&a, remedy);
        ft__line(out, style, "would fit", &a, "");
    }
    if (r->kv_bytes_per_token > 0) {
        ft__text_empty(&a);
        ft__text_empty(&b);
        ft__text_addf(&a, "%.0f tokens", r->cache_tokens);
        ft__add_figure(&b, r->kv_bytes_per_token / 1024, 4);
        ft__text_addf(&b, " KiB each%s in %s", r->gpus > 1 ? " on each GPU" : "", ft_dtype_name(v->work->kv_dtype));
        ft__line(out, style, "cache", &a, b.at);
    }
    ft__text_drop(&a, out);
    ft__text_drop(&b, out);
}

void ft__add_infer_words(ft_text *out, const ft_infer *r)
{
    const ft_step_view *v = &r->title;
    double parameters, active;
    if (!ft__view_parameters(v, &parameters, &active)) out->failed = true;
    ft__add_parameters(out, parameters);
    ft__text_addf(out, " parameters, %s", v->dtype_name);
    if (v->work->weight_bits > 0) ft__text_addf(out, ", %.0f-bit weights", v->work->weight_bits);
    ft__text_addf(out, ", %s", ft__execution_words[v->work->execution]);
    if (ft__view_attends(v)) ft__text_addf(out, ", %s attention", ft__attention_words[v->work->attention]);
    if (r->generates) ft__text_addf(out, ", %s cache", ft__cache_words[v->work->cache]);
}

bool ft__screen_infer(ft_text *out, const ft_style *style, const ft_infer *r)
{
    const ft_step_view *v = &r->title;
    ft__ink(out, style, FT_INK_BOLD);
    ft__add_model_name(out, v->model);
    ft__ink_end(out, style);
    ft__text_add(out, "  inference on ");
    if (r->gpus > 1) ft__text_addf(out, "%" PRId64 " %s ", r->gpus, ft__times(style));
    ft__text_add_plain(out, v->device->title[0] ? v->device->title : v->device->name);
    ft__text_add(out, "\n");
    ft__ink(out, style, FT_INK_DIM);
    ft__add_infer_words(out, r);
    ft__ink_end(out, style);
    ft__text_add(out, "\n");
    if (v->ranked) ft__screen_layout(out, style, v);
    ft__text_add(out, "\n");
    cache_lines(out, style, v, r);
    bool printed = true;
    if (r->generates) {
        heading(out, style, "prefill", "time to first token (TTFT) of the model alone, ms");
        printed = grid(out, style, r, r->prefill, false, false);
        heading(out, style, "decode", "time per output token (TPOT), ms");
        printed = printed && grid(out, style, r, r->decode, false, r->kv_bytes_per_token > 0);
        heading(out, style, "decode", "tokens/s of all sequences");
        printed = printed && grid(out, style, r, r->decode, true, false);
    } else {
        heading(out, style, "forward", "ms");
        printed = grid(out, style, r, r->prefill, false, false);
        heading(out, style, "forward", ft__rate_unit(v->arch));
        printed = printed && grid(out, style, r, r->prefill, true, false);
    }
    offline_lines(out, style, r);
    power_line(out, style, r);
    if (v->ranked && v->parallel->dp > 1)
        ft__text_addf(out, "\n  Batches and caches are those of one of %" PRId64 " data ranks; rates are of all.\n",
                      v->parallel->dp);
    return printed && ft__screen_picture(out, style, &r->made) && !out->failed;
}

/* Of each step, so that the screen stays one; kernels where the terminal is wide enough for their operators. */
enum { SHOWN_ADVICE = 3, SHOWN_KERNELS = 5, WIDE = 120 };

bool ft__screen_infer_step(ft_text *out, const ft_style *style, const ft_step_view *v, const char *how)
{
    static const char *const names[] = {
        [FT_FORWARD_PASS] = "forward", [FT_PREFILL] = "prefill", [FT_DECODE] = "decode", [FT_TRAIN] = "train"};
    const ft_step *s = v->step;
    ft_text remark = {0};
    ft__text_addf(&remark, "batch %" PRId64, v->work->batch);
    if (!ft__counts_samples(v->arch)) ft__text_addf(&remark, ", %" PRId64 " tokens", v->work->seq);
    ft__text_add(&remark, ": ");
    ft__add_figure(&remark, s->step_ms, 4);
    ft__text_addf(&remark, " ms, bound by %s (", ft__bound_words(s->bound));
    ft__add_percent(&remark, s->regime[s->bound]);
    ft__text_add(&remark, ")");
    heading(out, style, names[v->work->task], remark.at ? remark.at : "");
    ft__text_drop(&remark, out);
    if (style->width >= WIDE && !ft__screen_kernels(out, style, v, SHOWN_KERNELS)) return false;
    if (how && !strcmp(how, "techniques")) return ft__screen_techniques(out, style, v);
    if (how && !strcmp(how, "all")) return ft__screen_advice_all(out, style, v);
    if (v->advised && v->advised->count == 0)
        ft__text_addf(out, "%s  Nothing that was tried is faster.\n", style->width >= WIDE ? "\n" : "");
    return ft__screen_advice(out, style, v, SHOWN_ADVICE);
}

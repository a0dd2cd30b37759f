/* several_screen.c: inference, scaling, largest models on several kinds of GPU. */
#include "report/text/several_screen.h"
#include "memory/verdict.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "report/text/columns.h"
#include "report/text/infer_screen.h"
#include "report/text/lines.h"
#include "report/text/step_screen.h"
#include "report/text/step_words.h"

static void heading(ft_text *out, const ft_style *style, const char *text, const char *remark)
{
    ft__text_add(out, "\n  ");
    ft__ink(out, style, FT_INK_BOLD);
    ft__text_add(out, text);
    ft__ink_end(out, style);
    ft__text_addf(out, "  %s\n", remark);
}

/* -- inference --------------------------------------------------------------------------------- */

enum { ROW_HEAD = 20, LEAST_COLUMN = 9, MOST_ACROSS = FT_MOST_COLUMNS - 2 };

typedef struct across {
    const ft_infer *cases;
    const ft_device *devices;
    size_t first, end; /* GPUs of this table */
} across;

/* How many GPUs from `first` on stand beside each other. */
static size_t fitting(const ft_style *style, const ft_device *devices, size_t first, size_t count)
{
    int taken = ROW_HEAD;
    size_t end = first;
    while (end < count && end - first < MOST_ACROSS) {
        int wide = (int)strlen(devices[end].name);
        taken += 2 + (wide > LEAST_COLUMN ? wide : LEAST_COLUMN);
        if (style->terminal && taken > style->width && end > first) break;
        end++;
    }
    return end;
}

static void begin(ft_columns *c, char align[FT_MOST_COLUMNS + 1], const across *a, const char *first)
{
    size_t columns = 2 + a->end - a->first;
    memset(align, 'r', columns);
    align[columns] = '\0';
    ft__columns_init(c, align);
    ft__cell_add(c, first);
    ft__cell_add(c, "batch");
    for (size_t g = a->first; g < a->end; g++) ft__text_add_plain(ft__cell(c), a->devices[g].name);
}

typedef enum of_cell { TTFT, TPOT, RATE } of_cell;

static bool grid(ft_text *out, const ft_style *style, const across *a, of_cell what)
{
    char align[FT_MOST_COLUMNS + 1];
    const ft_infer *r = &a->cases[0];
    ft_columns c;
    begin(&c, align, a, r->has_context ? "context" : "");
    for (size_t s = 0; s < r->seq_count; s++)
        for (size_t b = 0; b < r->batch_count; b++) {
            if (r->has_context)
                ft__cell_addf(&c, "%" PRId64, r->seqs[s]);
            else
                ft__cell_add(&c, "");
            ft__cell_addf(&c, "%" PRId64, r->batches[b]);
            for (size_t g = a->first; g < a->end; g++) {
                const ft_infer *i = &a->cases[g];
                const ft_infer_cell *cell = what == TTFT || !i->generates ? &i->prefill[s][b] : &i->decode[s][b];
                if (cell->fits)
                    ft__add_figure(ft__cell(&c), what == RATE ? cell->tokens_per_s : cell->ms, 4);
                else
                    ft__cell_add(&c, "-");
            }
        }
    bool printed = ft__columns_print(&c, out, style, 2, true);
    ft__columns_free(&c);
    return printed;
}

/* What each holds, and its offline throughput where that was asked for. */
static bool holds(ft_text *out, const ft_style *style, const ft_infer *cases, const ft_device *devices, size_t count)
{
    bool cache = cases[0].generates && cases[0].kv_bytes_per_token > 0, offline = cases[0].offline.isl > 0;
    ft_columns c;
    ft__columns_init(&c, cache && offline ? "lrrrrr" : cache ? "lrrr" : offline ? "lrrrr" : "lrr");
    ft__cell_add(&c, "gpu");
    ft__cell_add(&c, "memory GiB");
    ft__cell_add(&c, "weights GiB");
    if (cache) ft__cell_add(&c, "cache tokens");
    if (offline) ft__cell_add(&c, "offline tokens/s");
    if (offline) ft__cell_add(&c, "at batch");
    for (size_t g = 0; g < count; g++) {
        const ft_infer *r = &cases[g];
        ft__text_add_plain(ft__cell(&c), devices[g].name);
        ft__add_figure(ft__cell(&c), devices[g].memory_gib, 3);
        ft__add_gib(ft__cell(&c), r->weights_bytes);
        if (cache && r->one_fits)
            ft__cell_addf(&c, "%.0f", r->cache_tokens);
        else if (cache)
            ft__cell_add(&c, "-");
        if (!offline) continue;
        if (r->offline.batch > 0)
            ft__add_figure(ft__cell(&c), r->offline.tokens_per_s, 4);
        else
            ft__cell_add(&c, "-");
        ft__cell_addf(&c, "%" PRId64, r->offline.batch);
    }
    bool printed = ft__columns_print(&c, out, style, 2, true);
    ft__columns_free(&c);
    return printed;
}

void ft__infers_title(ft_text *out, const ft_style *style, const ft_infer *r)
{
    ft__ink(out, style, FT_INK_BOLD);
    ft__add_model_name(out, r->title.model);
    ft__ink_end(out, style);
    ft__text_add(out, "  inference on several GPUs\n");
    ft__ink(out, style, FT_INK_DIM);
    ft__add_infer_words(out, r);
    ft__ink_end(out, style);
    ft__text_add(out, "\n\n");
}

bool ft__screen_infers(ft_text *out, const ft_style *style, const char *title, const ft_infer *cases,
                       const ft_device *devices, size_t count)
{
    const bool generates = cases[0].generates;
    ft__text_add(out, title);
    bool printed = holds(out, style, cases, devices, count);
    for (across a = {cases, devices, 0, 0}; a.first < count && printed; a.first = a.end) {
        a.end = fitting(style, devices, a.first, count);
        heading(out, style, generates ? "prefill" : "forward",
                generates ? "time to first token (TTFT) of the model alone, ms" : "ms");
        printed = grid(out, style, &a, TTFT);
        if (!generates) continue;
        heading(out, style, "decode", "time per output token (TPOT), ms");
        printed = printed && grid(out, style, &a, TPOT);
        heading(out, style, "decode", "tokens/s of all sequences");
        printed = printed && grid(out, style, &a, RATE);
    }
    return printed && !out->failed;
}

/* -- the largest model ------------------------------------------------------------------------- */

ft_largest_row ft__largest_row_of(const ft_largest *r)
{
    ft_largest_row row = {.device = r->device, .training = r->training, .layers = r->layers, .hidden = r->hidden};
    if (!r->layers) return row;
    row.parameters = r->parameters;
    row.need_bytes = r->need_bytes;
    row.capacity_bytes = r->view.step->memory.capacity_bytes;
    row.step_ms = r->view.step->step_ms;
    row.tokens_per_s = ft__view_tokens_per_s(&r->view) / (double)ft__view_gpus(&r->view);
    row.mfu = r->view.step->mfu;
    row.days = r->days.days;
    return row;
}

bool ft__screen_largests(ft_text *out, const ft_style *style, const ft_largest_row *rows, size_t count)
{
    static const char *const head[] = {"gpu", "parameters", "layers",       "hidden", "GiB",
                                       "of",  "step ms",    "tokens/s/GPU", "MFU",    "days to train"};
    const bool training = rows[0].training;
    ft_columns c;
    ft__columns_init(&c, training ? "lrrrrrrrrr" : "lrrrrrrrr");
    c.drop = "difeh";
    for (int i = 0; i < (training ? 10 : 9); i++) ft__cell_add(&c, i == 6 && !training ? "TPOT ms" : head[i]);
    for (size_t g = 0; g < count; g++) {
        const ft_largest_row *r = &rows[g];
        ft__text_add_plain(ft__cell(&c), r->device.name);
        if (!r->layers) {
            ft__cell_add(&c, "none fits");
            for (int i = 2; i < (training ? 10 : 9); i++) ft__cell_add(&c, "");
            continue;
        }
        ft__add_parameters(ft__cell(&c), r->parameters);
        ft__cell_addf(&c, "%" PRId64, r->layers);
        ft__cell_addf(&c, "%" PRId64, r->hidden);
        ft__add_gib(ft__cell(&c), r->need_bytes);
        ft__add_gib(ft__cell(&c), r->capacity_bytes);
        ft__add_figure(ft__cell(&c), r->step_ms, 4);
        ft__add_figure(ft__cell(&c), r->tokens_per_s, 4);
        ft__add_percent(ft__cell(&c), r->mfu);
        if (training) ft__add_figure(ft__cell(&c), r->days, 3);
    }
    bool printed = ft__columns_print(&c, out, style, 2, true);
    ft__columns_free(&c);
    return printed && !out->failed;
}

/* -- scaling ----------------------------------------------------------------------------------- */

static void add_end(ft_columns *c, const ft_scale_point *points, size_t count)
{
    if (!count) {
        for (int i = 0; i < 3; i++) ft__cell_add(c, "-");
        return;
    }
    const ft_scale_point *p = &points[count - 1];
    ft__add_figure(ft__cell(c), p->step_ms, 4);
    ft__add_figure(ft__cell(c), p->tokens_per_s, 4);
    ft__add_percent(ft__cell(c), p->efficiency);
}

static const ft_scale_knee *fsdp_of(const ft_scale *s)
{
    const ft_scale_knee *found = NULL;
    for (size_t i = 0; i < s->knee_count; i++)
        if (!strcmp(s->knees[i].name, "FSDP") || !found) found = &s->knees[i];
    return found;
}

bool ft__screen_scales(ft_text *out, const ft_style *style, const ft_scale *const *cases, size_t count)
{
    static const char *const head[] = {"gpu",      "GPUs",      "tokens hide", "timeline", "tensor ways",
                                       "timeline", "strong ms", "t/s/GPU",     "kept",     "weak ms",
                                       "t/s/GPU",  "kept",      "fits"};
    const ft_scale *first = cases[0];
    ft__ink(out, style, FT_INK_BOLD);
    ft__text_add(out, "scaling ");
    ft__add_model_name(out, first->model);
    ft__ink_end(out, style);
    ft__text_addf(out, "  on several GPUs, %s\n\n", first->dtype_name);
    ft_columns c;
    ft__columns_init(&c, "lrrrrrrrrrrrl");
    c.drop = "jgdfbh";
    for (size_t i = 0; i < sizeof head / sizeof *head; i++) ft__cell_add(&c, head[i]);
    for (size_t g = 0; g < count; g++) {
        const ft_scale *s = cases[g];
        const ft_scale_knee *knee = fsdp_of(s);
        double ways = ft__scale_crossing(s->tensor, s->tensor_count);
        ft_fit verdict = s->weak_count ? s->weak[s->weak_count - 1].verdict : FT_FIT_NO;
        ft__text_add_plain(ft__cell(&c), s->device.name);
        ft__cell_addf(&c, "%" PRId64, s->gpus);
        for (int k = 0; k < 2; k++) {
            double tokens = !knee ? 0 : k ? knee->timeline : knee->closed;
            if (tokens > 0 && isfinite(tokens))
                ft__cell_addf(&c, "%.0f", tokens);
            else
                ft__cell_add(&c, "-");
        }
        ft__add_figure(ft__cell(&c), s->closed.tensor.inside, 3);
        if (ways > 0)
            ft__add_figure(ft__cell(&c), ways, 3);
        else
            ft__cell_add(&c, "-");
        add_end(&c, s->strong, s->strong_count);
        add_end(&c, s->weak, s->weak_count);
        ft__cell_add(&c, ft__fit_answers[verdict]);
    }
    bool printed = ft__columns_print(&c, out, style, 2, true);
    ft__columns_free(&c);
    ft__text_add(out, "\n");
    ft_text words = {0};
    ft__text_add(&words, "Tokens per GPU that hide FSDP's exchange, and ways of tensor parallel up to which arithmetic "
                         "takes longer: the closed form, then the timeline. Strong and weak: the last points of the "
                         "curves, and what they keep of the rate of the first. One --gpu shows all of it.");
    ft__add_wrapped(out, style, words.at ? words.at : "");
    ft__text_drop(&words, out);
    ft__text_add(out, "\n");
    return printed && !out->failed;
}

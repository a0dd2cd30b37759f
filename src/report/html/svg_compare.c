/* svg_compare.c: the pictures of answers side by side: a bar each, by what their time or memory is. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/html/page_compare.h"
#include "report/html/svg_pictures.h"

_Static_assert((int)FT_MOST_CAUSES <= (int)FT_BAR_PARTS, "a bar has a part for every cause");

/* The parts of all answers' time, for the work of the first. */
bool ft__svg_compared_times(const ft_compared_page *p, const ft_frame *f)
{
    static const char *const classes[FT_MOST_CAUSES] = {"f0", "f2", "f4", "overhead", "f5", "f6", "f1", "f3"};
    ft_key keys[FT_MOST_CAUSES];
    size_t key_count = 0;
    ft_bar_row rows[FT_MOST_COMPARED] = {{0}};
    char remarks[FT_MOST_COMPARED][48];
    for (size_t i = 0; i < p->count; i++) {
        const ft_pair *pair = &p->pairs[i ? i : 1];
        snprintf(remarks[i], sizeof remarks[i], "%.4g ms", i ? pair->b_ms : pair->a_ms);
        rows[i] = (ft_bar_row){.label = p->labels[i], .remark = remarks[i]};
        for (size_t k = 0; k < pair->cause_count; k++) {
            size_t at = 0;
            while (at < key_count && strcmp(keys[at].name, pair->causes[k].name) != 0) at++;
            if (at == FT_MOST_CAUSES) continue;
            if (at == key_count) {
                keys[key_count] = (ft_key){classes[key_count], pair->causes[k].name};
                key_count++;
            }
            rows[i].part[at] = fmax(i ? pair->causes[k].b_ms : pair->causes[k].a_ms, 0);
        }
    }
    return ft__svg_bars(p->out, f,
                        &(ft_bars){"times", "Where the time goes", "ms", keys, key_count, rows, p->count, 0});
}

/* A kernel's time is one part: what its roofline asks for, and the rest. */
bool ft__svg_compared_kernels(const ft_compared_page *p, const ft_frame *f)
{
    static const ft_key keys[2] = {{"f0", "roofline"}, {"overhead", "beyond it"}};
    ft_bar_row rows[FT_MOST_COMPARED] = {{0}};
    char remarks[FT_MOST_COMPARED][48];
    for (size_t i = 0; i < p->count; i++) {
        double ms = ft__compared_figure(p->c[i].answer, "ms"),
               roof = ft__compared_figure(p->c[i].answer, "roofline_ms");
        snprintf(remarks[i], sizeof remarks[i], "%.4g ms", ms);
        rows[i] = (ft_bar_row){.label = p->labels[i], .remark = remarks[i], .part = {roof, fmax(ms - roof, 0)}};
    }
    return ft__svg_bars(p->out, f, &(ft_bars){"times", "Time", "ms", keys, 2, rows, p->count, 0});
}

bool ft__svg_compared_memory(const ft_compared_page *p, const ft_frame *f)
{
    static const char *const paths[] = {
        "memory.weights_bytes",  "memory.optimizer_bytes",     "memory.gradients_bytes", "memory.activations_bytes",
        "memory.kv_cache_bytes", "memory.communication_bytes", "memory.temporary_bytes"};
    ft_bar_row rows[FT_MOST_COMPARED] = {{0}};
    char remarks[FT_MOST_COMPARED][48];
    for (size_t i = 0; i < p->count; i++) {
        snprintf(remarks[i], sizeof remarks[i], "%.3g GiB",
                 ft__compared_figure(p->c[i].answer, "memory.peak_bytes") / 1073741824.0);
        rows[i] = (ft_bar_row){.label = p->labels[i], .remark = remarks[i]};
        for (int k = 0; k < 7; k++)
            rows[i].part[k] = fmax(ft__compared_figure(p->c[i].answer, paths[k]), 0) / 1073741824.0;
    }
    return ft__svg_bars(p->out, f, &(ft_bars){"memories", "Memory", "GiB", ft__memory_keys, 7, rows, p->count, 0});
}

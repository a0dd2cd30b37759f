/* picture_answer.c: an image or a video of its prompt, as a member of an answer. */
#include "report/json/picture_answer.h"

#include <stdio.h>

#include "memory/verdict.h"
#include "report/json/answer.h"
#include "report/json/answer_energy.h"
#include "request/words.h"

static void add_seconds(ft_text *out, double ms, double low_ms, double high_ms)
{
    ft__answer_figure(out, "seconds", ms * 1e-3);
    ft__answer_figure(out, "low_seconds", low_ms * 1e-3);
    ft__answer_figure(out, "high_seconds", high_ms * 1e-3);
}

static void add_fit(ft_text *out, double need, double capacity, ft_fit verdict)
{
    ft__json_member_number(out, "need_bytes", need, 15);
    ft__json_member_number(out, "capacity_bytes", capacity, 15);
    ft__answer_word(out, "verdict", ft__fit_words[verdict]);
    ft__json_member_flag(out, "fits", verdict != FT_FIT_NO);
}

static void add_parts(ft_text *out, const ft_generated *g)
{
    ft__json_member_list(out, "parts");
    for (size_t i = 0; i < g->part_count; i++) {
        const ft_generated_part *p = &g->parts[i];
        ft__json_open(out);
        ft__answer_word(out, "part", p->what);
        if (p->model[0]) ft__answer_word(out, "model", p->model);
        ft__answer_figure(out, "calls", p->calls);
        add_seconds(out, p->ms, p->low_ms, p->high_ms);
        if (p->weights_bytes > 0) ft__json_member_number(out, "weights_bytes", p->weights_bytes, 15);
        ft__json_close(out);
    }
    ft__json_close_list(out);
}

void ft__answer_picture(ft_text *out, const ft_generated *g)
{
    char size[48];
    if (!g->by) return;
    snprintf(size, sizeof size, "%lldx%lld", (long long)g->size.height, (long long)g->size.width);
    ft__json_member_open(out, "generation");
    ft__answer_word(out, "pipeline", g->by->name);
    add_seconds(out, g->ms, g->low_ms, g->high_ms);
    ft__answer_figure(out, "per_hour", (double)g->batch * 3600e3 / g->ms);
    ft__json_member_whole(out, "batch", g->batch);
    ft__json_member_whole(out, "steps", g->steps);
    ft__answer_word(out, "guidance", ft__guidance_words[g->guidance]);
    ft__answer_word(out, "image_size", size);
    if (g->size.frames > 0) ft__json_member_whole(out, "frames", g->size.frames);
    ft__json_member_flag(out, "tiled", g->tiled);
    ft__answer_word(out, "execution", ft__execution_words[g->execution]);
    ft__answer_word(out, "attention", ft__attention_words[g->attention]);
    add_parts(out, g);
    if (!g->by->decoder[0]) ft__answer_word(out, "left_out", "decoder");
    ft__json_member_open(out, "memory");
    add_fit(out, g->need_bytes, g->capacity_bytes, g->fits);
    ft__json_close(out);
    ft__json_member_open(out, "offload");
    add_seconds(out, g->offload_ms, g->offload_low_ms, g->offload_high_ms);
    add_fit(out, g->offload_need_bytes, g->capacity_bytes, g->offload_fits);
    ft__json_close(out);
    ft__answer_energy(out, &g->energy, 1, "samples_per_joule", (double)g->batch);
    ft__json_close(out);
}

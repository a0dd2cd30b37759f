/* largest_answer.c: the largest model of a family as one JSON object. */
#include "report/json/largest_answer.h"

#include "report/json/answer.h"
#include "report/json/answer_step.h"
#include "report/text/step_screen.h"

void ft__answer_largest(ft_text *out, const json_t *id, const ft_largest *r)
{
    const ft_step_view *v = r->layers ? &r->view : NULL;
    ft__answer_begin(out, id);
    ft__answer_word(out, "family", r->family);
    ft__answer_word(out, "gpu", r->device.name);
    ft__answer_figure(out, "gpus", (double)r->gpus);
    ft__answer_word(out, "task", r->training ? "train" : "infer");
    ft__json_member_flag(out, "fits", v);
    if (v) {
        ft__json_member_number(out, "parameters", r->parameters, 15);
        ft__json_member_whole(out, "layers", r->layers);
        ft__json_member_whole(out, "hidden", r->hidden);
        ft__json_member_whole(out, "heads", r->heads);
        ft__json_member_whole(out, "ffn", r->ffn);
        ft__json_member_whole(out, "vocab", r->vocab);
        ft__answer_bytes(out, "need_bytes", r->need_bytes);
        ft__answer_bytes(out, "states_bytes", r->state_bytes);
        ft__answer_bytes(out, "capacity_bytes", v->step->memory.capacity_bytes);
        ft__answer_figure(out, "next_parameters", r->next_parameters);
        ft__answer_figure(out, "step_ms", v->step->step_ms);
        ft__answer_figure(out, "low_ms", v->step->low_ms);
        ft__answer_figure(out, "high_ms", v->step->high_ms);
        ft__answer_figure(out, "tokens_per_s_per_gpu", ft__view_tokens_per_s(v) / (double)ft__view_gpus(v));
        ft__answer_figure(out, "mfu", v->step->mfu);
        if (r->days.tokens > 0) ft__answer_days(out, &r->days);
        if (v->ranked) ft__answer_ranks(out, v);
        ft__answer_lines(out, "warnings", v->warnings);
    }
    ft__json_close(out);
}

/* largest_answer.c: the largest model of a family as one JSON object. */
#include "report/json/largest_answer.h"

#include <inttypes.h>

#include "report/json/answer.h"
#include "report/json/answer_step.h"
#include "report/text/step_screen.h"

void ft__answer_largest(ft_text *out, const json_t *id, const ft_largest *r)
{
    const ft_step_view *v = r->layers ? &r->view : NULL;
    ft__answer_begin(out, id, false);
    ft__text_add(out, "true");
    ft__answer_word(out, "family", r->family);
    ft__answer_word(out, "gpu", r->device.name);
    ft__answer_figure(out, "gpus", (double)r->gpus);
    ft__answer_word(out, "task", r->training ? "train" : "infer");
    ft__text_addf(out, ",\"fits\":%s", v ? "true" : "false");
    if (v) {
        ft__answer_key(out, "parameters");
        ft__text_add_number(out, r->parameters, 15);
        ft__text_addf(out,
                      ",\"layers\":%" PRId64 ",\"hidden\":%" PRId64 ",\"heads\":%" PRId64 ",\"ffn\":%" PRId64
                      ",\"vocab\":%" PRId64,
                      r->layers, r->hidden, r->heads, r->ffn, r->vocab);
        ft__answer_figure(out, "need_bytes", r->need_bytes);
        ft__answer_figure(out, "states_bytes", r->state_bytes);
        ft__answer_figure(out, "capacity_bytes", v->step->memory.capacity_bytes);
        ft__answer_figure(out, "next_parameters", r->next_parameters);
        ft__answer_figure(out, "step_ms", v->step->step_ms);
        ft__answer_figure(out, "low_ms", v->step->low_ms);
        ft__answer_figure(out, "high_ms", v->step->high_ms);
        ft__answer_figure(out, "tokens_per_s_per_gpu", ft__view_tokens_per_s(v) / (double)ft__view_gpus(v));
        ft__answer_figure(out, "mfu", v->step->mfu);
        if (r->training) ft__answer_days(out, &r->days);
        if (v->ranked) ft__answer_ranks(out, v);
        ft__answer_lines(out, "warnings", v->warnings);
    }
    ft__text_add(out, "}");
}

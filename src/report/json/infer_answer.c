/* infer_answer.c: inference over batches and lengths as one JSON object. */
#include "report/json/infer_answer.h"

#include <inttypes.h>

#include "report/json/answer.h"
#include "report/json/answer_step.h"

static void add_cells(ft_text *out, const char *key, const char *time, const ft_infer *r,
                      const ft_infer_cell cells[FT_INFER_SIDE][FT_INFER_SIDE], bool samples)
{
    bool first = true;
    ft__answer_key(out, key);
    ft__text_add(out, "[");
    for (size_t s = 0; s < r->seq_count; s++)
        for (size_t b = 0; b < r->batch_count; b++) {
            const ft_infer_cell *c = &cells[s][b];
            ft__text_addf(out, "%s{\"batch\":%" PRId64, first ? "" : ",", r->batches[b]);
            if (r->has_context) ft__text_addf(out, ",\"seq\":%" PRId64, r->seqs[s]);
            first = false;
            ft__answer_figure(out, time, c->ms);
            ft__answer_figure(out, "low_ms", c->low_ms);
            ft__answer_figure(out, "high_ms", c->high_ms);
            ft__answer_figure(out, samples ? "samples_per_s_per_gpu" : "tokens_per_s_per_gpu",
                              c->tokens_per_s / (double)r->gpus);
            ft__text_addf(out, ",\"fits\":%s}", c->fits ? "true" : "false");
        }
    ft__text_add(out, "]");
}

/* The answers of single steps, each with its task as id. */
static void add_steps(ft_text *out, const ft_infer *r)
{
    ft__answer_key(out, "steps");
    for (size_t i = 0; i < r->step_count; i++) {
        json_t *id = json_string(ft__task_words[r->steps[i].work->task]);
        if (!id) out->failed = true;
        ft__text_add(out, i ? "," : "[");
        ft__answer_step(out, id, &r->steps[i]);
        json_decref(id);
    }
    ft__text_add(out, "]");
}

void ft__answer_infer(ft_text *out, const json_t *id, const ft_infer *r)
{
    const ft_step_view *v = &r->title;
    ft__answer_begin(out, id, false);
    ft__text_add(out, "true");
    ft__answer_word(out, "model", v->model);
    ft__answer_word(out, "gpu", v->device->name);
    double parameters, active;
    if (!ft__view_parameters(v, &parameters, &active)) out->failed = true;
    ft__answer_figure(out, "parameters", parameters);
    if (v->ranked) ft__answer_ranks(out, v);
    if (r->generates) {
        add_cells(out, "prefill", "ttft_ms", r, r->prefill, false);
        add_cells(out, "decode", "tpot_ms", r, r->decode, false);
    } else {
        add_cells(out, "forward", "step_ms", r, r->prefill, !r->has_context);
    }
    ft__answer_key(out, "capacity");
    ft__text_add(out, "{\"weights_bytes\":");
    ft__text_add_number(out, r->weights_bytes, 15);
    if (r->kv_bytes_per_token > 0) {
        ft__answer_figure(out, "kv_bytes_per_token", r->kv_bytes_per_token);
        ft__answer_figure(out, "tokens", r->cache_tokens);
        ft__answer_key(out, "sequences");
        for (size_t s = 0; s < r->seq_count; s++)
            ft__text_addf(out, "%s{\"seq\":%" PRId64 ",\"sequences\":%" PRId64 "}", s ? "," : "[", r->seqs[s],
                          r->sequences[s]);
        ft__text_add(out, "]");
    }
    ft__text_add(out, "}");
    const ft_offline *o = &r->offline;
    if (o->isl > 0) {
        ft__answer_key(out, "offline");
        ft__text_addf(out, "{\"isl\":%" PRId64 ",\"osl\":%" PRId64 ",\"batch\":%" PRId64, o->isl, o->osl, o->batch);
        if (o->batch > 0) {
            ft__answer_figure(out, "tokens_per_s_per_gpu", o->tokens_per_s / (double)r->gpus);
            ft__answer_figure(out, "low_tokens_per_s_per_gpu", o->low_tokens_per_s / (double)r->gpus);
            ft__answer_figure(out, "high_tokens_per_s_per_gpu", o->high_tokens_per_s / (double)r->gpus);
            ft__answer_figure(out, "total_tokens_per_s_per_gpu", o->total_tokens_per_s / (double)r->gpus);
            ft__answer_figure(out, "requests_per_s", o->requests_per_s);
            ft__answer_figure(out, "prefill_ms", o->prefill_ms);
            ft__answer_figure(out, "tpot_ms", o->tpot_ms);
        }
        ft__text_add(out, "}");
    }
    if (r->step_count > 0) add_steps(out, r);
    ft__answer_lines(out, "warnings", v->warnings);
    ft__text_add(out, "}");
}

/* infer_answer.c: inference over batches and lengths as one JSON object. */
#include "report/json/infer_answer.h"

#include "report/json/answer.h"
#include "report/json/answer_energy.h"
#include "report/json/answer_step.h"
#include "report/json/picture_answer.h"

static void add_cells(ft_text *out, const char *key, const char *time, const ft_infer *r,
                      const ft_infer_cell cells[FT_INFER_SIDE][FT_INFER_SIDE], bool samples)
{
    ft__json_member_list(out, key);
    for (size_t s = 0; s < r->seq_count; s++)
        for (size_t b = 0; b < r->batch_count; b++) {
            const ft_infer_cell *c = &cells[s][b];
            ft__json_open(out);
            ft__json_member_whole(out, "batch", r->batches[b]);
            if (r->has_context) ft__json_member_whole(out, "seq", r->seqs[s]);
            ft__answer_figure(out, time, c->ms);
            ft__answer_figure(out, "low_ms", c->low_ms);
            ft__answer_figure(out, "high_ms", c->high_ms);
            ft__answer_figure(out, samples ? "samples_per_s_per_gpu" : "tokens_per_s_per_gpu",
                              c->tokens_per_s / (double)r->gpus);
            ft__answer_energy(out, &c->energy, (double)r->gpus, samples ? "samples_per_joule" : "tokens_per_joule",
                              c->tokens_per_s * c->ms * 1e-3);
            ft__json_member_flag(out, "fits", c->fits);
            ft__json_close(out);
        }
    ft__json_close_list(out);
}

/* The answers of single steps, each with its task as id. */
static void add_steps(ft_text *out, const ft_infer *r)
{
    ft__json_member_list(out, "steps");
    for (size_t i = 0; i < r->step_count; i++) {
        json_t *id = json_string(ft__task_words[r->steps[i].work->task]);
        if (!id) out->failed = true;
        ft__answer_step(out, id, &r->steps[i]);
        json_decref(id);
    }
    ft__json_close_list(out);
}

void ft__answer_infer(ft_text *out, const json_t *id, const ft_infer *r)
{
    const ft_step_view *v = &r->title;
    ft__answer_begin(out, id);
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
    ft__json_member_open(out, "capacity");
    ft__json_member_number(out, "weights_bytes", r->weights_bytes, 15);
    if (r->kv_bytes_per_token > 0) {
        ft__answer_figure(out, "kv_bytes_per_token", r->kv_bytes_per_token);
        ft__answer_figure(out, "tokens", r->cache_tokens);
        ft__json_member_list(out, "sequences");
        for (size_t s = 0; s < r->seq_count; s++) {
            ft__json_open(out);
            ft__json_member_whole(out, "seq", r->seqs[s]);
            ft__json_member_whole(out, "sequences", r->sequences[s]);
            ft__json_close(out);
        }
        ft__json_close_list(out);
    }
    ft__json_close(out);
    const ft_offline *o = &r->offline;
    if (o->isl > 0) {
        ft__json_member_open(out, "offline");
        ft__json_member_whole(out, "isl", o->isl);
        ft__json_member_whole(out, "osl", o->osl);
        ft__json_member_whole(out, "batch", o->batch);
        if (o->batch > 0) {
            ft__answer_figure(out, "tokens_per_s_per_gpu", o->tokens_per_s / (double)r->gpus);
            ft__answer_figure(out, "low_tokens_per_s_per_gpu", o->low_tokens_per_s / (double)r->gpus);
            ft__answer_figure(out, "high_tokens_per_s_per_gpu", o->high_tokens_per_s / (double)r->gpus);
            ft__answer_figure(out, "total_tokens_per_s_per_gpu", o->total_tokens_per_s / (double)r->gpus);
            ft__answer_figure(out, "requests_per_s", o->requests_per_s);
            ft__answer_figure(out, "prefill_ms", o->prefill_ms);
            ft__answer_figure(out, "tpot_ms", o->tpot_ms);
            if (o->tokens_per_joule > 0) ft__answer_figure(out, "tokens_per_joule", o->tokens_per_joule);
        }
        ft__json_close(out);
    }
    ft__answer_picture(out, &r->made);
    if (r->step_count > 0) add_steps(out, r);
    ft__answer_lines(out, "warnings", v->warnings);
    ft__json_close(out);
}

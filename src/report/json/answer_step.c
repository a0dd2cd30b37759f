/* answer_step.c: a step as one JSON object.
 *
 * The keys are those of docs/interface.md. Times of phases are the GPU's; what the host adds is the difference between
 * busy_ms and step_ms.
 */
#include "report/json/answer_step.h"
#include "memory/verdict.h"
#include "report/text/step_words.h"

#include "model/stack.h"
#include "report/json/answer.h"
#include "report/json/answer_energy.h"
#include "report/text/network_screen.h"
#include "report/text/step_screen.h"
#include "study/lengths.h"

enum { DIGITS = 6 };

static void add_times(ft_text *out, const ft_step_view *v)
{
    const ft_step *s = v->step;
    ft__answer_figure(out, "step_ms", s->step_ms);
    if (v->work->task == FT_PREFILL) ft__answer_figure(out, "ttft_ms", s->step_ms);
    if (v->work->task == FT_DECODE) ft__answer_figure(out, "tpot_ms", s->step_ms);
    ft__answer_figure(out, "low_ms", s->low_ms);
    ft__answer_figure(out, "high_ms", s->high_ms);
    ft__answer_figure(out, "forward_ms", s->phase_ms[FT_FORWARD]);
    ft__answer_figure(out, "backward_ms", s->phase_ms[FT_BACKWARD]);
    ft__answer_figure(out, "optimizer_ms", s->phase_ms[FT_UPDATE]);
    ft__answer_figure(out, "recompute_ms", s->phase_ms[FT_RECOMPUTE]);
    ft__answer_figure(out, "host_ms", s->host_ms);
    ft__answer_figure(out, "comm_ms", s->comm_ms);
    ft__answer_figure(out, "comm_exposed_ms", s->comm_exposed_ms);
    ft__answer_figure(out, "bubble_ms", s->bubble_ms);
    ft__answer_figure(out, "busy_ms", s->busy_ms);
    ft__answer_figure(out, "idle_ms", s->idle_ms);
    ft__answer_figure(out, "between_ms", ft__between_ms(s));
    if (s->offload.copied_bytes > 0) {
        ft__answer_figure(out, "host_update_ms", s->offload.update_ms);
        ft__answer_figure(out, "host_copies_ms", s->offload.copies_ms);
        ft__answer_figure(out, "host_exposed_ms", s->offload.exposed_ms);
    }
    if (s->reference_ms > 0) ft__answer_figure(out, "reference_ms", s->reference_ms);
    if (s->critic_ms > 0) ft__answer_figure(out, "critic_ms", s->critic_ms);
    if (s->rollout_ms > 0) ft__answer_figure(out, "rollout_ms", s->rollout_ms);
    if (s->refit_ms > 0) ft__answer_figure(out, "refit_ms", s->refit_ms);
    if (s->onload_ms > 0) ft__answer_figure(out, "onload_ms", s->onload_ms);
    ft__answer_figure(out, "launches", s->launches);
    double gpus = (double)ft__view_gpus(v);
    ft__answer_figure(out, "tokens_per_s_per_gpu", ft__view_tokens_per_s(v) / gpus);
    ft__answer_figure(out, "samples_per_s_per_gpu", ft__view_samples_per_s(v) / gpus);
    ft__answer_figure(out, "model_tflops_per_gpu", s->model_tflops);
    ft__answer_figure(out, "mfu", s->mfu);
    ft__answer_figure(out, "hfu", s->hfu);
    ft__answer_figure(out, "model_flops", s->model_flops);
    ft__answer_figure(out, "executed_flops", s->executed_flops);
}

/* Sequences of many lengths: what a step is made of, and how steps differ. */
static void add_lengths(ft_text *out, const ft_step_view *v)
{
    const ft_lengths_view *l = v->lengths;
    if (!l) return;
    ft__json_member_open(out, "lengths");
    ft__answer_figure(out, "mean_tokens", l->mean);
    ft__answer_figure(out, "padded_tokens", l->padded);
    ft__answer_figure(out, "longest_tokens", (double)l->longest);
    ft__answer_figure(out, "typical_tokens", (double)l->typical);
    ft__answer_figure(out, "padding_share", 1 - l->useful);
    ft__answer_figure(out, "kept_share", l->kept);
    if (!v->memory_only) {
        ft__answer_figure(out, "useful_tokens_per_s_per_gpu",
                          ft__view_tokens_per_s(v) / (double)ft__view_gpus(v) * l->useful);
        ft__answer_figure(out, "step_sd_ms", l->sd_ms);
        ft__answer_figure(out, "step_p10_ms", l->p10_ms);
        ft__answer_figure(out, "step_p90_ms", l->p90_ms);
        ft__answer_figure(out, "waits_ms", l->waits_ms);
        if (l->fresh.ms > 0) {
            ft__answer_figure(out, "new_length_ms", l->fresh.ms);
            ft__answer_figure(out, "new_lengths", l->fresh.count);
            ft__answer_figure(out, "run_batches", l->fresh.batches);
        }
    }
    ft__json_close(out);
}

static void add_energy(ft_text *out, const ft_step_view *v)
{
    ft_energy e = ft__view_energy(v);
    bool samples = ft__counts_samples(v->arch);
    double rate = samples ? ft__view_samples_per_s(v) : ft__view_tokens_per_s(v);
    ft__answer_energy(out, &e, (double)ft__view_gpus(v), samples ? "samples_per_joule" : "tokens_per_joule",
                      rate * v->step->step_ms * 1e-3);
}

static void add_memory(ft_text *out, const ft_step_view *v)
{
    const ft_memory *m = &v->step->memory;
    ft_text place = {.cap = 512};
    ft__json_member_open(out, "memory");
    ft__answer_bytes(out, "weights_bytes", m->weights_bytes);
    ft__answer_bytes(out, "gradients_bytes", m->gradients_bytes);
    ft__answer_bytes(out, "optimizer_bytes", m->optimizer_bytes);
    if (m->host_bytes > 0) ft__answer_bytes(out, "host_bytes", m->host_bytes);
    if (m->streamed_bytes > 0) ft__answer_bytes(out, "streamed_bytes", m->streamed_bytes);
    if (m->away_bytes > 0) ft__answer_bytes(out, "away_bytes", m->away_bytes);
    if (m->paged_bytes > 0) ft__answer_bytes(out, "paged_bytes", m->paged_bytes);
    ft__answer_bytes(out, "activations_bytes", m->activations_bytes);
    ft__answer_bytes(out, "temporary_bytes", m->temporary_bytes);
    ft__answer_bytes(out, "kv_cache_bytes", m->kv_cache_bytes);
    ft__answer_bytes(out, "communication_bytes", m->communication_bytes);
    ft__answer_bytes(out, "context_bytes", m->context_bytes);
    ft__answer_bytes(out, "peak_bytes", m->peak_bytes);
    ft__answer_bytes(out, "reserved_bytes", m->reserved_bytes);
    ft__answer_bytes(out, "capacity_bytes", m->capacity_bytes);
    ft__add_peak_place(&place, v);
    ft__answer_word(out, "peak_at", place.at);
    if (v->ranked) { /* of the rank that holds most */
        ft__answer_figure(out, "stage", (double)v->step->worst_stage);
        ft__answer_figure(out, "in_flight", ft__in_flight(v, v->step->worst_stage));
    }
    ft__json_member_flag(out, "fits", m->fits);
    ft__answer_word(out, "verdict", ft__fit_words[m->verdict]);
    ft__answer_figure(out, "chance_fits", m->chance_fits);
    if (m->verdict != FT_FIT_YES) {
        ft__answer_bytes(out, "short_bytes", m->reserved_bytes + m->context_bytes - m->capacity_bytes);
        ft__answer_word(out, "remedy", m->remedy);
    }
    ft__json_close(out);
    ft__text_drop(&place, out);
}

static void add_shares(ft_text *out, const ft_step *s)
{
    ft__json_member_open(out, "regime");
    ft__json_member_number(out, "compute", s->regime[FT_BOUND_COMPUTE], DIGITS);
    ft__answer_figure(out, "memory", s->regime[FT_BOUND_MEMORY]);
    ft__answer_figure(out, "overhead", s->regime[FT_BOUND_OVERHEAD]);
    ft__answer_figure(out, "communication", s->regime[FT_BOUND_COMMUNICATION]);
    ft__answer_word(out, "bound", ft_bound_name(s->bound));
    ft__json_close(out);
    ft__json_member_open(out, "source");
    ft__json_member_number(out, "learned", s->learned, DIGITS);
    ft__answer_figure(out, "sibling", s->sibling);
    ft__answer_figure(out, "physics", s->physics);
    ft__answer_figure(out, "calibrated", s->calibrated);
    ft__answer_figure(out, "roofline", s->roofline);
    ft__json_close(out);
    ft__json_member_open(out, "classes");
    for (int c = 0; c < FT_CLASS_COUNT; c++) {
        ft__json_member_open(out, ft__class_name((ft_class)c));
        ft__json_member_number(out, "ms", s->class_ms[c], DIGITS);
        ft__answer_figure(out, "flops", s->class_flops[c]);
        ft__json_close(out);
    }
    ft__json_close(out);
}

static void add_kernels(ft_text *out, const ft_step_view *v)
{
    size_t count;
    const ft_merged *merged = ft__merge_kernels(v, &count);
    if (!merged) out->failed = true;
    ft__json_member_list(out, "kernels");
    for (size_t i = 0; merged && i < count; i++) {
        const ft_merged *m = &merged[i];
        const ft_forecast *f = m->forecast;
        ft__json_open(out);
        ft__json_member_text(out, "name", m->node->name ? m->node->name : "");
        ft__answer_word(out, "op", m->node->op.name);
        ft__answer_figure(out, "count", m->count);
        ft__answer_figure(out, "ms", f->ms);
        ft__answer_figure(out, "low_ms", f->low_ms);
        ft__answer_figure(out, "high_ms", f->high_ms);
        ft__answer_figure(out, "total_ms", m->total_ms);
        ft__answer_figure(out, "flops", f->flops);
        ft__answer_figure(out, "bytes", f->bytes);
        ft__answer_word(out, "bound", ft_bound_name(f->bound));
        ft__answer_word(out, "source", ft_source_name(f->source));
        ft__answer_word(out, "phase", ft__phase_name(m->node->phase));
        ft__answer_word(out, "block", m->block->name);
        if (m->node->members > 1) ft__answer_figure(out, "members", m->node->members);
        if (v->advised) ft__answer_evidence(out, v, m);
        ft__json_close(out);
    }
    ft__json_close_list(out);
}

static void add_layers(ft_text *out, const ft_step_view *v)
{
    size_t count;
    const ft_layer *layers = ft__layers(v, &count);
    if (!layers) out->failed = true;
    ft__json_member_list(out, "layers");
    for (size_t i = 0; layers && i < count; i++) {
        const ft_layer *l = &layers[i];
        ft__json_open(out);
        ft__json_member_text(out, "name", l->name ? l->name : "");
        ft__answer_figure(out, "repeat", l->repeat);
        ft__answer_figure(out, "forward_ms", l->forward_ms);
        ft__answer_figure(out, "backward_ms", l->backward_ms);
        ft__answer_figure(out, "recompute_ms", l->recompute_ms);
        ft__answer_figure(out, "flops", l->flops);
        ft__answer_bytes(out, "parameters", l->parameters); /* whole, like bytes */
        ft__answer_bytes(out, "activations_bytes", l->saved_bytes);
        ft__json_close(out);
    }
    ft__json_close_list(out);
}

void ft__answer_step(ft_text *out, const json_t *id, const ft_step_view *v)
{
    ft__answer_begin(out, id);
    if (!v->memory_only) add_times(out, v);
    if (v->work->host) ft__answer_word(out, "host", v->work->host->name);
    double parameters, active;
    if (!ft__view_parameters(v, &parameters, &active)) out->failed = true;
    ft__answer_bytes(out, "parameters", parameters);
    ft__answer_bytes(out, "active_parameters", active);
    if (v->work->task == FT_TRAIN) ft__answer_word(out, "stack", v->stack->name);
    if (v->ranked) ft__answer_ranks(out, v);
    add_lengths(out, v);
    add_memory(out, v);
    if (!v->memory_only) add_energy(out, v);
    if (!v->memory_only) add_shares(out, v->step);
    if (!v->memory_only) ft__answer_advice(out, v);
    if (!v->memory_only && v->cluster && v->cluster->simulated) ft__answer_network(out, v->cluster->simulated);
    if (!v->memory_only && v->detail == FT_LAYERS) add_layers(out, v);
    if (!v->memory_only && v->detail == FT_KERNELS) add_kernels(out, v);
    if (!v->memory_only && v->course) ft__answer_course(out, v);
    if (v->pictures) ft__answer_pictures(out, v);
    ft__answer_lines(out, "warnings", v->warnings);
    if (!v->memory_only && v->tokens > 0) {
        ft_days days = ft__days_of(v, v->tokens, (double)ft__view_gpus(v));
        ft__answer_days(out, &days);
    }
    ft__json_close(out);
}

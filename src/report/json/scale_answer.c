/* scale_answer.c: scaling as JSON and as comma-separated values. */
#include <inttypes.h>

#include "report/json/answer.h"
#include "report/text/scale_screen.h"

/* Also where it is infinite or negative, which ft__answer_figure leaves out. */
static void add_always(ft_text *out, const char *key, double value) { ft__json_member_number(out, key, value, 6); }

static void add_knees(ft_text *out, const ft_scale *s)
{
    ft__json_member_list(out, "knees");
    for (size_t i = 0; i < s->knee_count; i++) {
        const ft_scale_knee *k = &s->knees[i];
        ft__json_open(out);
        ft__json_member_text(out, "name", k->key);
        ft__answer_figure(out, "gpus", (double)ft__parallel_ranks(&k->parallel));
        ft__answer_figure(out, "tp", (double)k->parallel.tp);
        ft__answer_figure(out, "pp", (double)k->parallel.pp);
        ft__answer_figure(out, "zero", (double)k->parallel.zero);
        ft__answer_figure(out, "closed_tokens_per_gpu", k->closed);
        if (k->timeline > 0) ft__answer_figure(out, "timeline_tokens_per_gpu", k->timeline);
        ft__answer_figure(out, "of_peak", k->math);
        ft__answer_figure(out, "of_link", k->wire);
        ft__answer_figure(out, "exposed", k->exposed);
        ft__json_close(out);
    }
    ft__json_close_list(out);
}

static void add_degrees(ft_text *out, const ft_scale_degree *d, size_t count)
{
    ft__json_member_list(out, "degrees");
    for (size_t i = 0; i < count; i++) {
        ft__json_open(out);
        add_always(out, "degree", (double)d[i].degree);
        ft__answer_figure(out, "closed_ratio", d[i].closed);
        if (d[i].layer > 0) ft__answer_figure(out, "closed_layer_ratio", d[i].layer);
        ft__answer_figure(out, "timeline_ratio", d[i].timeline);
        ft__answer_figure(out, "of_peak", d[i].math);
        ft__answer_figure(out, "of_link", d[i].wire);
        ft__answer_figure(out, "tokens_per_s_per_gpu", d[i].tokens_per_s);
        ft__answer_figure(out, "efficiency", d[i].efficiency);
        ft__json_close(out);
    }
    ft__json_close_list(out);
}

static void add_curve(ft_text *out, const char *key, const ft_scale_point *p, size_t count)
{
    ft__json_member_list(out, key);
    for (size_t i = 0; i < count; i++) {
        ft__json_open(out);
        add_always(out, "gpus", (double)p[i].gpus);
        ft__answer_figure(out, "dp", (double)p[i].dp);
        ft__answer_figure(out, "micro_batches", (double)p[i].micros);
        ft__answer_figure(out, "global_batch", (double)p[i].global_batch);
        ft__answer_figure(out, "step_ms", p[i].step_ms);
        ft__answer_figure(out, "low_ms", p[i].low_ms);
        ft__answer_figure(out, "high_ms", p[i].high_ms);
        ft__answer_figure(out, "tokens_per_s", p[i].tokens_per_s * (double)p[i].gpus);
        ft__answer_figure(out, "tokens_per_s_per_gpu", p[i].tokens_per_s);
        ft__answer_figure(out, "efficiency", p[i].efficiency);
        ft__answer_figure(out, "mfu", p[i].mfu);
        ft__answer_figure(out, "comm_ms", p[i].comm_ms);
        ft__answer_figure(out, "comm_exposed_ms", p[i].exposed_ms);
        ft__answer_figure(out, "bubble_ms", p[i].bubble_ms);
        ft__answer_bytes(out, "peak_bytes", p[i].peak_bytes);
        ft__json_member_flag(out, "fits", p[i].fits);
        ft__json_close(out);
    }
    ft__json_close_list(out);
}

static void add_cluster(ft_text *out, const ft_scale *s)
{
    const ft_scaling *c = &s->closed;
    ft__json_member_open(out, "cluster");
    ft__json_member_text(out, "understood", s->understood);
    ft__answer_figure(out, "domain_gpus", (double)c->tensor.domain);
    ft__answer_figure(out, "inside_gbps", c->inside_rate * 1e-9);
    ft__answer_figure(out, "nic_gbps", c->nic_rate * 1e-9);
    ft__answer_figure(out, "outside_gbps", c->outside_rate * 1e-9);
    ft__json_member_flag(out, "inside_reduces", c->inside_reduces);
    ft__json_member_flag(out, "outside_reduces", c->outside_reduces);
    ft__json_close(out);
}

static void add_data(ft_text *out, const ft_scale *s)
{
    const ft_scaling *c = &s->closed;
    ft__json_member_open(out, "data");
    add_always(out, "inside_tokens_per_gpu", c->data.inside);
    ft__answer_figure(out, "outside_tokens_per_gpu", c->data.outside);
    ft__answer_figure(out, "reduced_inside_tokens_per_gpu", c->data.reduced_inside);
    ft__answer_figure(out, "reduced_outside_tokens_per_gpu", c->data.reduced_outside);
    ft__answer_figure(out, "sparsity", c->data.sparsity);
    ft__answer_figure(out, "sparse_outside_tokens_per_gpu", c->data.sparse_outside);
    ft__answer_figure(out, "whole_sparsity", c->data.whole_sparsity);
    ft__answer_figure(out, "ddp_tokens_per_gpu", c->data.ddp);
    ft__answer_figure(out, "zero1_tokens_per_gpu", c->data.zero1);
    ft__answer_figure(out, "fsdp_tokens_per_gpu", c->data.fsdp);
    add_knees(out, s);
    ft__json_close(out);
}

static void add_tensor(ft_text *out, const ft_scale *s)
{
    const ft_scaling *c = &s->closed;
    double crossing = ft__scale_crossing(s->tensor, s->tensor_count);
    ft__json_member_open(out, "tensor");
    add_always(out, "domain", (double)c->tensor.domain);
    ft__answer_figure(out, "inside_ways", c->tensor.inside);
    ft__answer_figure(out, "outside_ways", c->tensor.outside);
    ft__answer_figure(out, "layer_ways", c->tensor.layer);
    ft__answer_figure(out, "limit_ways", c->tensor.limit);
    if (crossing > 0) ft__answer_figure(out, "timeline_ways", crossing);
    add_degrees(out, s->tensor, s->tensor_count);
    ft__json_close(out);
}

static void add_expert(ft_text *out, const ft_scale *s)
{
    const ft_scaling *c = &s->closed;
    double crossing = ft__scale_crossing(s->expert, s->expert_count);
    ft__json_member_open(out, "expert");
    add_always(out, "few_ways", c->expert.few);
    ft__answer_figure(out, "wide_ffn", c->expert.wide_ffn);
    ft__json_member_flag(out, "wide", c->expert.wide);
    ft__answer_figure(out, "wide_ways", c->expert.wide_limit); /* left out where it is infinite */
    if (crossing > 0) ft__answer_figure(out, "timeline_ways", crossing);
    add_degrees(out, s->expert, s->expert_count);
    ft__json_close(out);
}

static void add_pipeline(ft_text *out, const ft_scale *s)
{
    const ft_scaling *c = &s->closed;
    ft__json_member_open(out, "pipeline");
    add_always(out, "stages", (double)s->parallel.pp);
    ft__answer_figure(out, "closed_hop", c->pipeline.hop);
    ft__answer_figure(out, "timeline_hop", s->pipeline_hop);
    ft__answer_figure(out, "closed_share", c->pipeline.share);
    ft__answer_figure(out, "closed_bubble", c->pipeline.bubble);
    ft__answer_figure(out, "timeline_bubble", s->pipeline_bubble);
    ft__json_close(out);
}

void ft__answer_scale(ft_text *out, const json_t *id, const ft_scale *s)
{
    ft__answer_begin(out, id);
    ft__answer_word(out, "model", s->model);
    ft__answer_word(out, "gpu", s->device.name);
    ft__answer_word(out, "dtype", s->dtype_name);
    ft__answer_figure(out, "gpus", (double)s->gpus);
    ft__json_member_number(out, "parameters", s->parameters, 15);
    ft__json_member_number(out, "active_parameters", s->active_parameters, 15);
    add_cluster(out, s);
    ft__answer_figure(out, "peak_tflops", s->closed.flops * 1e-12);
    add_data(out, s);
    add_tensor(out, s);
    if (s->closed.expert.any) add_expert(out, s);
    if (s->parallel.pp > 1) add_pipeline(out, s);
    add_curve(out, "strong", s->strong, s->strong_count);
    add_curve(out, "weak", s->weak, s->weak_count);
    if (s->warnings.length) ft__answer_lines(out, "warnings", s->warnings.at);
    ft__json_close(out);
}

static void csv_curve(ft_text *out, const char *curve, const ft_scale_point *p, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        ft__text_addf(out, "%s,%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64, curve, p[i].gpus, p[i].dp, p[i].micros,
                      p[i].global_batch);
        const double figures[] = {
            p[i].step_ms,      p[i].low_ms,     p[i].high_ms,   p[i].tokens_per_s * (double)p[i].gpus,
            p[i].tokens_per_s, p[i].efficiency, p[i].mfu,       p[i].comm_ms,
            p[i].exposed_ms,   p[i].bubble_ms,  p[i].peak_bytes};
        for (size_t k = 0; k < sizeof figures / sizeof *figures; k++) {
            ft__text_add(out, ",");
            ft__text_add_number(out, figures[k], 6);
        }
        ft__text_addf(out, ",%s\n", p[i].fits ? "true" : "false");
    }
}

bool ft__csv_scale(ft_text *out, const ft_scale *s)
{
    ft__text_add(out, "curve,gpus,dp,micro_batches,global_batch,step_ms,low_ms,high_ms,tokens_per_s,"
                      "tokens_per_s_per_gpu,efficiency,mfu,comm_ms,comm_exposed_ms,bubble_ms,peak_bytes,fits\n");
    csv_curve(out, "strong", s->strong, s->strong_count);
    csv_curve(out, "weak", s->weak, s->weak_count);
    return !out->failed;
}

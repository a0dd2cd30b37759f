/* answer_ranks.c: what a step on many GPUs adds to its JSON object. */
#include <stdio.h>

#include "report/json/answer.h"
#include "report/json/answer_step.h"
#include "report/text/step_words.h"

static void add_whole(ft_text *out, const char *key, int64_t value) { ft__json_member_whole(out, key, value); }

/* As it was understood, so that a request made of it asks the same. */
static void add_parallel(ft_text *out, const ft_parallel *p)
{
    ft__json_member_open(out, "parallel");
    ft__json_member_whole(out, "dp", p->dp);
    add_whole(out, "tp", p->tp);
    add_whole(out, "pp", p->pp);
    add_whole(out, "vpp", p->vpp);
    add_whole(out, "cp", p->cp);
    add_whole(out, "ep", p->ep);
    if (ft__expert_tensor(p) != p->tp) add_whole(out, "etp", p->etp);
    add_whole(out, "zero", p->zero);
    ft__json_member_flag(out, "sp", p->sp);
    ft__answer_word(out, "schedule", ft__schedule_name(p->schedule));
    ft__json_close(out);
}

static void add_dealt(ft_text *out, const ft_step_view *v)
{
    if (v->parallel->pp < 2) return;
    ft_text words = {0};
    ft__add_dealt(&words, v);
    ft__answer_word(out, "dealt", words.at ? words.at : "");
    ft__text_drop(&words, out);
}

static void add_cluster(ft_text *out, const ft_cluster *c)
{
    ft__json_member_open(out, "cluster");
    ft__json_member_whole(out, "nodes", c->nodes);
    add_whole(out, "gpus_per_node", c->gpus_per_node);
    ft__answer_word(out, "understood", c->understood);
    ft__json_close(out);
}

static void add_comm(ft_text *out, const ft_step_view *v)
{
    ft__json_member_open(out, "comm");
    for (int a = 0; a < FT_AXIS_COUNT; a++) {
        char key[48];
        snprintf(key, sizeof key, "%s_ms", ft__axis_words[a]);
        ft__json_member_number(out, key, v->step->axis_ms[a], 6);
    }
    ft__answer_figure(out, "exposed_ms", v->step->comm_exposed_ms);
    ft__json_close(out);
}

/* By chunk: how many layers it has. */
static void add_layers(ft_text *out, const ft_step_view *v, int64_t stage)
{
    int64_t stages = v->parallel->pp, chunks = ft__parallel_chunks(v->parallel), from, to;
    ft__json_member_list(out, "layers");
    for (int64_t c = 0; c < chunks; c++) {
        ft__layout_range(v->arch->layers, stages * chunks, v->parallel->rest, c * stages + stage, &from, &to);
        ft__json_add_whole(out, to - from);
    }
    ft__json_close_list(out);
}

static void add_stages(ft_text *out, const ft_step_view *v)
{
    ft__json_member_list(out, "stages");
    for (int64_t s = 0; s < v->ranked->stage_count; s++) {
        const ft_stage *g = &v->ranked->stages[s];
        ft__json_open(out);
        ft__json_member_number(out, "forward_ms", g->forward_ms, 6);
        ft__answer_figure(out, "backward_ms", g->backward_ms);
        ft__answer_figure(out, "update_ms", g->update_ms);
        ft__answer_figure(out, "exposed_ms", g->exposed_ms);
        ft__answer_figure(out, "in_flight", ft__in_flight(v, s));
        ft__answer_bytes(out, "saved_bytes", g->saved_bytes);
        ft__answer_bytes(out, "peak_bytes", g->held.peak_bytes);
        if (v->parallel->pp > 1) add_layers(out, v, s);
        ft__json_close(out);
    }
    ft__json_close_list(out);
}

void ft__answer_ranks(ft_text *out, const ft_step_view *v)
{
    add_whole(out, "ranks", ft__view_gpus(v));
    add_whole(out, "micro_batches", v->step->micros);
    add_parallel(out, v->parallel);
    add_dealt(out, v);
    add_cluster(out, v->cluster);
    if (v->memory_only) return;
    add_comm(out, v);
    add_whole(out, "slowest_stage", ft__slowest_stage(v));
    if (v->detail != FT_SUMMARY) add_stages(out, v);
}

/* answer_course.c: a step over time as JSON, for who draws it.
 *
 * Kernels are listed once for each kind of pass (`walks`), times counted from its beginning; `passes` say where those
 * stand. An event is a row, not an object: there are some hundreds, and who draws them reads all. */
#include <math.h>
#include <stdlib.h>

#include "report/json/answer.h"
#include "report/json/answer_step.h"
#include "report/trace/course.h"

enum { DIGITS = 6, BYTE_DIGITS = 15, MOMENTS = 400, MOST_STAGES = 16, WALKS = 6 };

static const char *const walk_names[WALKS] = {"first_forward", "first_backward", "forward",
                                              "backward",      "last_backward",  "update"};

static void add_ms(ft_text *out, double ms) { ft__json_add_number(out, ms, DIGITS); }

/* -- walks ------------------------------------------------------------------------------------- */

static const ft_pass_events *walk_of(const ft_rank_events *r, int i)
{
    const ft_pass_events *const all[WALKS] = {&r->first_forward, &r->first_backward, &r->forward,
                                              &r->backward,      &r->last_backward,  &r->update};
    return all[i];
}

static const char *lane_name(int lane)
{
    return lane == FT_LANE_GPU ? "gpu" : lane == FT_LANE_HOST ? "host" : ft__axis_words[lane];
}

static const char *known(const char *name) { return name ? name : ""; }

/* [lane, block, name, start, end, bound, folded] */
static void add_event(ft_text *out, const ft_rank_events *r, const int32_t *block_of, const ft_event *e)
{
    const ft_graph *g = r->g;
    bool of_node = e->kind == FT_SEEN_KERNEL || e->kind == FT_SEEN_EXCHANGE || e->kind == FT_SEEN_AGAIN;
    int32_t block = of_node ? block_of[e->at] : e->at;
    const ft_timed *k = e->kind == FT_SEEN_KERNEL ? r->timed[e->at] : NULL;
    const char *bound = e->lane == FT_LANE_HOST  ? ft_bound_name(FT_BOUND_OVERHEAD)
                        : e->lane != FT_LANE_GPU ? ft_bound_name(FT_BOUND_COMMUNICATION)
                        : k                      ? ft_bound_name(k->forecast.bound)
                                                 : "";
    ft__json_open_list(out);
    ft__json_add_text(out, lane_name(e->lane));
    ft__json_add_text(out, block >= 0 ? known(g->blocks[block].name) : "");
    ft__json_add_text(out, of_node ? known(g->nodes[e->at].name) : "");
    add_ms(out, e->start);
    add_ms(out, e->end);
    ft__json_add_text(out, bound);
    ft__json_add_number(out, e->kind == FT_SEEN_FOLDED ? e->folded : 0, DIGITS);
    ft__json_close_list(out);
}

static void add_walks(ft_text *out, const ft_step_view *v, const ft_step_course *c)
{
    const ft_graph *g = c->rank.g;
    int32_t *block_of = ft__arena_array(v->arena, (size_t)g->node_count + 1, sizeof *block_of);
    if (!block_of) {
        out->failed = true;
        return;
    }
    for (int32_t b = 0; b < g->block_count; b++)
        for (int32_t n = 0; n < g->blocks[b].count; n++) block_of[g->blocks[b].first + n] = b;
    ft__json_member_open(out, "walks");
    for (int i = 0; i < WALKS; i++) {
        const ft_pass_events *w = walk_of(&c->rank, i);
        bool used = false;
        for (size_t p = 0; p < c->count; p++) used |= c->passes[p].walk == w;
        if (!used) continue;
        ft__json_member_open(out, walk_names[i]);
        ft__answer_figure(out, "ms", w->ms);
        ft__json_member_list(out, "events");
        for (size_t e = 0; e < w->count; e++)
            if (w->events[e].end > w->events[e].start) add_event(out, &c->rank, block_of, &w->events[e]);
        ft__json_close_list(out);
        ft__json_close(out);
    }
    ft__json_close(out);
}

static void add_passes(ft_text *out, const ft_step_course *c)
{
    ft__json_member_list(out, "passes");
    for (size_t i = 0; i < c->count; i++) {
        const ft_placed_pass *p = &c->passes[i];
        ft__json_open(out);
        ft__answer_word(out, "what", p->what);
        if (p->micro >= 0) ft__json_member_whole(out, "micro", p->micro);
        if (p->count > 1) ft__answer_figure(out, "count", p->count);
        ft__answer_figure(out, "start_ms", p->start);
        ft__answer_figure(out, "end_ms", p->end);
        for (int w = 0; w < WALKS; w++)
            if (p->walk == walk_of(&c->rank, w)) ft__answer_word(out, "walk", walk_names[w]);
        if (p->from > 0 || p->to < 1) {
            ft__answer_figure(out, "from", p->from);
            ft__answer_figure(out, "to", p->to);
        }
        ft__json_close(out);
    }
    ft__json_close_list(out);
}

/* -- memory and the pipeline ------------------------------------------------------------------- */

static void add_memory(ft_text *out, const ft_step_view *v)
{
    static const char *const kinds[FT_COURSE_KINDS] = {"weights",  "optimizer",     "gradients", "activations",
                                                       "kv_cache", "communication", "temporary"};
    ft_memory_course c;
    if (!ft__memory_course(v, &c)) {
        free(c.at);
        return; /* no kernels, no curve */
    }
    ft__memory_course_thin(&c, MOMENTS);
    ft__json_member_open(out, "memory");
    ft__answer_figure(out, "end_ms", c.end);
    ft__json_member_flag(out, "slanted", c.slanted);
    ft__json_member_list(out, "kinds");
    for (int k = 0; k < FT_COURSE_KINDS; k++) ft__json_add_text(out, kinds[k]);
    ft__json_close_list(out);
    ft__json_member_list(out, "moments"); /* [ms, bytes by kind] */
    for (size_t i = 0; i < c.count; i++) {
        ft__json_open_list(out);
        add_ms(out, c.at[i].ms);
        for (int k = 0; k < FT_COURSE_KINDS; k++) ft__json_add_number(out, rint(c.at[i].bytes[k]), BYTE_DIGITS);
        ft__json_close_list(out);
    }
    ft__json_close_list(out);
    ft__json_close(out);
    free(c.at);
}

/* Of more stages than a picture has room for, the first and the last. */
static void add_pipeline(ft_text *out, const ft_ranked *r)
{
    static const char *const kinds[] = {[FT_PIPE_FORWARD] = "forward",
                                        [FT_PIPE_BACKWARD] = "backward",
                                        [FT_PIPE_INPUTS] = "inputs",
                                        [FT_PIPE_WEIGHTS] = "weights"};
    const ft_piped *pipe = &r->pipe;
    int64_t shown = r->stage_count < MOST_STAGES ? r->stage_count : MOST_STAGES, front = (shown + 1) / 2;
    ft__json_member_open(out, "pipeline");
    ft__answer_figure(out, "ms", pipe->total_ms);
    if (pipe->skipped > 0) ft__json_member_whole(out, "skipped", pipe->skipped);
    ft__json_member_list(out, "stages");
    for (int64_t i = 0; i < shown; i++) {
        int64_t s = i < front ? i : r->stage_count - shown + i;
        ft__json_open(out);
        ft__json_member_whole(out, "stage", s);
        if (pipe->skipped > 0) ft__json_member_whole(out, "gap", pipe->gap[s]);
        ft__json_member_list(out, "pieces"); /* [kind, micro-batch, chunk, start, end] */
        for (int32_t k = 0; k < pipe->op_count[s]; k++) {
            const ft_pipe_op *op = &pipe->ops[s][k];
            ft__json_open_list(out);
            ft__json_add_text(out, kinds[op->kind]);
            ft__json_add_whole(out, op->micro);
            ft__json_add_whole(out, op->chunk);
            add_ms(out, op->start);
            add_ms(out, op->end);
            ft__json_close_list(out);
        }
        ft__json_close_list(out);
        ft__json_close(out);
    }
    ft__json_close_list(out);
    ft__json_close(out);
}

void ft__answer_course(ft_text *out, const ft_step_view *v)
{
    int64_t stage = v->ranked ? ft__slowest_stage(v) : -1;
    ft_step_course c;
    ft_error err = {0};
    ft_status status = ft__step_course(v, stage, &c, &err);
    if (status != FT_OK) {
        out->failed |= status == FT_E_MEMORY;
        return; /* no streams, no course */
    }
    ft__json_member_open(out, "course");
    ft__answer_figure(out, "end_ms", c.end);
    if (stage >= 0) ft__json_member_whole(out, "stage", stage);
    add_passes(out, &c);
    add_walks(out, v, &c);
    add_memory(out, v);
    if (v->ranked && v->ranked->stage_count > 1) add_pipeline(out, v->ranked);
    ft__json_close(out);
}

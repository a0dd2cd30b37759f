/* serve_trace.c: trace events of iterations and requests, and a table of requests.
 *
 * One track has the iterations, those of decoding alone and those with prompts apart by their names; requests are
 * drawn as asynchronous events from sending to the last token, their first token in between. */
#include "report/trace/serve_trace.h"

#include <stdio.h>

#include "base/json_write.h"

static void add_us(ft_text *out, const char *key, double ms)
{
    char text[48];
    snprintf(text, sizeof text, "%.3f", ms * 1e3);
    ft__json_member_written(out, key, text);
}

static void begin(ft_text *out, const char *kind, const char *name, int tid, double ms)
{
    ft__json_line(out);
    ft__json_open(out);
    ft__json_member_text(out, "ph", kind);
    ft__json_member_text(out, "name", name);
    ft__json_member_whole(out, "pid", 1);
    ft__json_member_whole(out, "tid", tid);
    add_us(out, "ts", ms);
}

static void add_step(ft_text *out, const ft_served_step *s)
{
    begin(out, "X", s->prompts > 0 ? "with prompts" : s->steps > 1 ? "decode steps" : "decode step", 1, s->start_ms);
    add_us(out, "dur", s->ms);
    ft__json_member_open(out, "args");
    ft__json_member_whole(out, "steps", (int64_t)s->steps);
    ft__json_member_whole(out, "decoding", (int64_t)s->decoders);
    ft__json_member_whole(out, "prompts", (int64_t)s->prompts);
    ft__json_member_whole(out, "prompt_tokens", (int64_t)s->prompt_tokens);
    ft__json_close(out);
    ft__json_close(out);
}

static void add_edge(ft_text *out, const char *kind, const char *name, double ms, size_t id)
{
    begin(out, kind, name, 2, ms);
    ft__json_member_text(out, "cat", "request");
    ft__json_member_whole(out, "id", (int64_t)id + 1);
    ft__json_close(out);
}

void ft__perfetto_serve(ft_text *out, const ft_roll *r)
{
    ft__json_open(out);
    ft__json_member_list(out, "traceEvents");
    for (size_t i = 0; i < r->step_count; i++) add_step(out, &r->steps[i]);
    for (size_t i = 0; i < r->request_count; i++) {
        const ft_served_request *q = &r->requests[i];
        add_edge(out, "b", "to the first token", q->sent_ms, i);
        add_edge(out, "e", "to the first token", q->first_ms, i);
        add_edge(out, "b", "to the last token", q->first_ms, i);
        add_edge(out, "e", "to the last token", q->ended_ms, i);
    }
    ft__json_close_list(out);
    ft__json_member_text(out, "displayTimeUnit", "ms");
    ft__json_close(out);
    ft__text_add(out, "\n");
}

void ft__csv_serve(ft_text *out, const ft_roll *r)
{
    ft__text_add(out, "sent_ms,wait_ms,ttft_ms,tpot_ms,e2e_ms,input,output,client,priority\n");
    for (size_t i = 0; i < r->request_count; i++) {
        const ft_served_request *q = &r->requests[i];
        const double figures[] = {q->sent_ms, q->started_ms - q->sent_ms, q->first_ms - q->sent_ms,
                                  q->answer > 1 ? (q->ended_ms - q->first_ms) / (q->answer - 1) : 0,
                                  q->ended_ms - q->sent_ms};
        for (size_t k = 0; k < 5; k++) {
            ft__text_add_number(out, figures[k], 9);
            ft__text_add(out, ",");
        }
        ft__text_addf(out, "%d,%d,%d,%d\n", q->prompt, q->answer, q->client, q->priority);
    }
}

/* simulate.c: arrivals, routing, clients and what is counted.
 *
 * The engine whose clock is furthest behind goes next; before it does, every request that has arrived by then is
 * routed. Engines that only decode until somebody ends are not looked at before, unless a request comes to them. A
 * client of a closed loop sends its next request when its last token has come, so that arrivals are made by ends. */
#include "serving/simulate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "serving/arrivals.h"
#include "serving/clocks.h"
#include "serving/prefix.h"

typedef struct fleet {
    const ft_scene *s;
    ft_load *load;
    ft_outcome *out;
    ft_pool pool;
    ft_replica *replicas; /* those that prefill first */
    int64_t count, prefills;
    ft_clocks clocks; /* of engines that have something to do */
    ft_listener *listeners;
    ft_arrivals arrivals;
    ft_dispatcher prefilling, others; /* of engines that prefill, of the rest */
    int64_t sent, came, ended, goal;
    bool hopeless; /* not as many requests as must be good can be any more */
    bool drained;  /* an open loop has no more requests */
    ft_client_service *clients;
    size_t client_room;
    int32_t *turn; /* of every client of a closed loop: its session's next turn, and its tokens so far */
    int32_t *history;
    ft_error *err;
    ft_status status;
} fleet;

/* -- arrivals ---------------------------------------------------------------------------------- */

static bool out_of_memory(fleet *f)
{
    if (f->status == FT_OK) f->status = ft__no_memory(f->err);
    return false;
}

/* A request sets out; it is in a queue after the front end had it. */
static bool send_call(fleet *f, const ft_call *c)
{
    uint32_t index;
    const ft_policy *p = f->s->policy;
    double most = (double)c->prompt + (double)c->answer + p->block + p->state;
    if (most > p->capacity || (f->s->prefill_policy && (double)c->prompt + p->block > f->s->prefill_policy->capacity)) {
        f->status = ft__fail_at(f->err, FT_E_RANGE, "isl", 0, 0,
                                "a prompt of %d tokens with an answer of %d does not fit the cache, which holds %.0f; "
                                "more GPUs, a narrower kv_dtype or shorter requests would",
                                c->prompt, c->answer, p->capacity);
        return false;
    }
    if (!ft__pool_take(&f->pool, &index)) return out_of_memory(f);
    ft_live *l = &f->pool.at[index];
    l->sent_ms = c->sent_ms;
    l->started_ms = -1;
    l->prompt = l->tokens = c->prompt;
    l->answer = c->answer;
    l->done = c->cached < c->prompt ? c->cached : c->prompt - 1;
    l->client = c->client;
    l->priority = c->priority;
    l->turn = c->turn;
    if (c->hash_count > 0 && f->s->hash_tokens > 0) {
        l->hashes = malloc((size_t)c->hash_count * sizeof *l->hashes);
        if (!l->hashes) return out_of_memory(f);
        memcpy(l->hashes, c->hashes, (size_t)c->hash_count * sizeof *l->hashes);
        l->hash_count = c->hash_count;
    }
    l->arrived_ms = c->sent_ms + f->s->request_ms + f->s->prompt_token_ms * (double)c->prompt;
    f->sent++;
    f->out->sent_last_ms = c->sent_ms;
    return ft__arrive(&f->arrivals, l->arrived_ms, index) ? true : out_of_memory(f);
}

/* A client's next request; a session goes on with everything said so far in front. */
static bool send_client(fleet *f, int32_t client, double ms)
{
    ft_call c;
    ft_load *l = f->load;
    ft__load_call(l, client, ms, &c);
    if (f->turn) {
        if (f->turn[client] == 0) f->history[client] = 0;
        const int64_t grown = (int64_t)c.prompt + f->history[client];
        if (grown + c.answer > INT32_MAX) {
            f->status = ft__fail_at(f->err, FT_E_RANGE, "turns", 0, 0,
                                    "by its turn %d a session has grown to a prompt of %lld tokens with an answer of "
                                    "%d; sessions of up to 2^31 - 1 are simulated",
                                    f->turn[client] + 1, (long long)grown, c.answer);
            return false;
        }
        c.turn = f->turn[client];
        c.cached += f->history[client];
        c.prompt += f->history[client];
        f->history[client] = c.prompt + c.answer;
        f->turn[client] = (int32_t)((f->turn[client] + 1) % l->turns);
    }
    return send_call(f, &c);
}

/* Open loops: everything that is sent before the next arrival is known. */
static bool look_ahead(fleet *f)
{
    while (!f->drained && (!f->arrivals.count || f->out->sent_last_ms <= f->arrivals.heap[0].ms)) {
        ft_call c;
        bool more;
        f->status = ft__load_next(f->load, &more, &c, f->err);
        if (f->status != FT_OK) return false;
        if (more && !send_call(f, &c)) return false;
        f->drained = !more;
    }
    return true;
}

static bool open_clients(fleet *f)
{
    ft_load *l = f->load;
    int64_t first = l->clients < l->requests ? l->clients : l->requests;
    double alone = 0;
    if (l->steady) { /* spread over what one request takes by itself */
        ft_iteration one = {.decoders = (double)l->clients / (double)f->s->replicas, .tokens_each = 1};
        one.context = one.decoders * (l->prompt.mean + l->answer.mean / 2);
        one.rows = one.decoders;
        alone = l->answer.mean / f->s->policy->accepted * ft__iteration_ms(f->s->costs, &one);
    }
    if (l->turns > 1) {
        f->turn = calloc((size_t)l->clients, sizeof *f->turn);
        f->history = calloc((size_t)l->clients, sizeof *f->history);
        if (!f->turn || !f->history) return out_of_memory(f);
    }
    for (int64_t i = 0; i < first; i++)
        if (!send_client(f, (int32_t)i, alone * (double)i / (double)first)) return false;
    f->drained = true;
    return true;
}

/* -- routing ----------------------------------------------------------------------------------- */

static void note(fleet *f, const ft_replica *r)
{
    const bool idle = ft__replica_idle(r) && !r->queue.count;
    const int64_t at = r - f->replicas;
    ft__clocks_set(&f->clocks, at, idle ? INFINITY : r->ahead > 0 ? r->ahead_ms : r->now_ms);
    ft__dispatcher_note(at < f->prefills ? &f->prefilling : &f->others, at < f->prefills ? at : at - f->prefills);
}

static bool deliver(fleet *f, ft_arrival a)
{
    const ft_live *l = &f->pool.at[a.index];
    bool handed_over = f->prefills > 0 && l->ready, prefills = f->prefills > 0 && !l->ready;
    int64_t at = prefills ? ft__dispatched_to(&f->prefilling, l, a.ms)
                          : f->prefills + ft__dispatched_to(&f->others, l, a.ms);
    ft_replica *r = &f->replicas[at];
    if (!ft__replica_catch_up(r, a.ms)) return out_of_memory(f);
    if (ft__replica_idle(r) && !r->queue.count && r->now_ms < a.ms) r->now_ms = a.ms;
    if (!ft__replica_take(r, a.index)) return out_of_memory(f);
    note(f, r);
    ft_outcome *o = f->out;
    double waiting = 0;
    f->came += !handed_over;
    if (f->load->clients || handed_over || (f->sent != f->goal / 2 && f->sent != f->goal)) return true;
    for (int64_t i = 0; i < f->count; i++) waiting += (double)f->replicas[i].queue.count;
    if (f->sent == f->goal)
        o->waiting_end = waiting;
    else
        o->waiting_half = waiting;
    if (f->s->give_up > 0 && f->came == f->goal) f->hopeless = f->hopeless || ft__queue_grows(o, f->goal);
    return true;
}

/* -- what replicas tell ------------------------------------------------------------------------ */

typedef struct speaker {
    fleet *f;
    ft_replica *r;
} speaker;

static bool told_first(void *user, uint32_t index, double ms)
{
    const speaker *s = user;
    s->f->pool.at[index].first_ms = ms;
    return true;
}

static bool count_client(fleet *f, const ft_live *l)
{
    if (l->client < 0) return true;
    size_t at = (size_t)l->client;
    if (at >= f->client_room) {
        size_t room = f->client_room ? f->client_room : 64;
        while (room <= at) room *= 2;
        ft_client_service *clients = realloc(f->clients, room * sizeof *clients);
        if (!clients) return out_of_memory(f);
        memset(clients + f->client_room, 0, (room - f->client_room) * sizeof *clients);
        f->clients = clients;
        f->client_room = room;
    }
    f->clients[at].tokens += (double)(l->prompt + l->answer);
    f->clients[at].wait_ms += l->first_ms - l->sent_ms;
    f->clients[at].requests++;
    return true;
}

static bool count(fleet *f, const ft_live *l, double ms)
{
    ft_outcome *o = f->out;
    const ft_scene *s = f->s;
    double ttft = l->first_ms - l->sent_ms, tpot = l->answer > 1 ? (ms - l->first_ms) / (double)(l->answer - 1) : 0;
    if (f->ended <= s->warmup) return true;
    ft__tally_add(&o->ttft, ttft, 1);
    ft__tally_add(&o->e2e, ms - l->sent_ms, 1);
    ft__tally_add(&o->queue, l->queued_ms, 1);
    if (l->answer > 1) ft__tally_add(&o->tpot, tpot, 1);
    bool good = (s->slo_ttft_ms <= 0 || ttft <= s->slo_ttft_ms) && (s->slo_tpot_ms <= 0 || tpot <= s->slo_tpot_ms) &&
                (s->slo_e2e_ms <= 0 || ms - l->sent_ms <= s->slo_e2e_ms);
    o->good += good;
    if (o->requests == 0 || l->sent_ms < o->first_ms) o->first_ms = l->sent_ms;
    o->last_ms = fmax(o->last_ms, ms);
    o->requests++;
    if (s->give_up > 0 && f->goal < INT64_MAX)
        f->hopeless = o->requests - o->good > (1 - s->give_up) * (double)(f->goal - s->warmup) + 1e-6;
    o->prompt_tokens += (double)l->prompt;
    o->known_tokens += (double)l->known;
    o->answer_tokens += (double)l->answer;
    if (s->sink && s->sink->request) {
        ft_served_request r = {l->sent_ms, l->started_ms, l->first_ms, ms,
                               l->prompt,  l->answer,     l->client,   l->priority};
        s->sink->request(s->sink->user, &r);
    }
    return count_client(f, l);
}

static bool told_ended(void *user, uint32_t index, double ms)
{
    const speaker *s = user;
    fleet *f = s->f;
    ft_live *l = &f->pool.at[index];
    if (s->r->policy->prefill_only && l->made < l->answer) { /* its cache travels */
        l->ready = true;
        l->arrived_ms = s->r->now_ms + f->s->transfer_ms_per_token * (double)l->tokens;
        return ft__arrive(&f->arrivals, l->arrived_ms, index) ? true : out_of_memory(f);
    }
    f->ended++;
    f->out->front_lag_ms += ms - s->r->now_ms;
    if (!count(f, l, ms)) return false;
    int32_t client = l->client;
    bool session = f->turn && f->turn[client] != 0;
    ft__pool_give(&f->pool, index);
    if (f->s->sink && f->s->sink->progress && f->ended % 4096 == 0)
        f->s->sink->progress(f->s->sink->watcher,
                             f->load->log ? ft__log_share(f->load->log) : (double)f->ended / (double)f->goal);
    if (!f->load->clients || f->sent >= f->goal) return true;
    double think = session || f->load->turns <= 1 ? f->load->think_ms : 0;
    return send_client(f, client, ms + think);
}

static void told_gaps(void *user, double ms, double many)
{
    const speaker *s = user;
    if (s->f->ended >= s->f->s->warmup) ft__tally_add(&s->f->out->itl, ms, many);
}

static void note_course(fleet *f, const ft_replica *r)
{
    ft_course *c = &f->out->course;
    if (r != &f->replicas[f->prefills] || !ft__course_due(c)) return;
    double waiting = 0, now = 0;
    for (int64_t i = 0; i < f->count; i++) {
        waiting += (double)f->replicas[i].queue.count;
        now += (double)(f->replicas[i].decoder_count + f->replicas[i].prompt_count);
    }
    c->at[c->count++] = (ft_course_point){r->now_ms, waiting, now, ft__replica_used(r) / r->policy->capacity};
}

static void told_iterated(void *user, const ft_iteration *i, double start_ms, double ms, double steps)
{
    const speaker *s = user;
    ft_outcome *o = s->f->out;
    if (i->prompts > 0) {
        o->steps_mixed += steps;
        o->mixed_ms += ms;
    } else {
        o->steps_decode += steps;
        o->decode_ms += ms;
    }
    bool prefills = s->r < &s->f->replicas[s->f->prefills];
    ft__worked_add(prefills ? &o->prefilled : i->prompts > 0 ? &o->mixed : &o->decoded, i, steps);
    double running = (double)(s->r->decoder_count + s->r->prompt_count);
    o->busy_ms += ms;
    o->running_ms += running * ms;
    o->running_max = fmax(o->running_max, running);
    note_course(s->f, s->r);
    const ft_serving_sink *sink = s->f->s->sink;
    if (sink && sink->step)
        sink->step(sink->user, &(ft_served_step){start_ms, ms, steps, i->decoders, i->prompts, i->prompt_tokens});
}

/* -- the run ----------------------------------------------------------------------------------- */

static bool run(fleet *f)
{
    while (f->status == FT_OK && !f->hopeless) {
        double second;
        if (!look_ahead(f)) return false;
        int64_t at = ft__clocks_first(&f->clocks, &second);
        if (at < 0 && !f->arrivals.count) return true;
        double now = at < 0 ? f->arrivals.heap[0].ms : f->clocks.ms[at];
        bool came = false;
        while (f->arrivals.count && f->arrivals.heap[0].ms <= now) {
            if (!deliver(f, ft__arrival_first(&f->arrivals)) || !look_ahead(f)) return false;
            if (f->count > 1) now = fmin(now, f->clocks.ms[ft__clocks_first(&f->clocks, &second)]);
            came = true;
        }
        if (at < 0 || (came && f->count > 1)) continue; /* who is furthest behind may have changed */
        ft_replica *r = &f->replicas[at];
        double until = f->arrivals.count ? f->arrivals.heap[0].ms : INFINITY;
        if (f->count > 1) until = fmin(until, fmax(second, now));
        if (!ft__replica_catch_up(r, INFINITY) || !ft__replica_advance(r, until)) return out_of_memory(f);
        note(f, r);
    }
    return false;
}

static ft_status set_up(fleet *f, speaker *speakers)
{
    const ft_scene *s = f->s;
    for (int64_t i = 0; i < f->count; i++) {
        bool prefills = i < f->prefills;
        ft_replica *r = &f->replicas[i];
        speakers[i] = (speaker){f, r};
        f->listeners[i] = (ft_listener){&speakers[i], told_first, told_ended, told_gaps, told_iterated};
        r->costs = prefills ? s->prefill_costs : s->costs;
        r->policy = prefills ? s->prefill_policy : s->policy;
        r->pool = &f->pool;
        r->listener = &f->listeners[i];
        r->queue.by = r->policy->scheduling;
        r->foresees = f->count > 1;
        if (s->hash_tokens > 0 && !(r->prefixes = ft__prefixes_new(s->hash_tokens))) return ft__no_memory(f->err);
    }
    f->out->course.every = 1;
    if (f->load->clients) open_clients(f);
    return f->status;
}

ft_status ft__simulate(const ft_scene *s, ft_load *load, ft_outcome *out, ft_error *err)
{
    fleet f = {.s = s, .load = load, .out = out, .err = err, .goal = load->requests};
    memset(out, 0, sizeof *out);
    f.prefills = s->prefill_costs ? s->prefill_replicas : 0;
    f.count = s->replicas + f.prefills;
    f.replicas = calloc((size_t)f.count, sizeof *f.replicas);
    f.listeners = calloc((size_t)f.count, sizeof *f.listeners);
    speaker *speakers = calloc((size_t)f.count, sizeof *speakers);
    const bool open = ft__clocks_open(&f.clocks, f.count) && f.replicas &&
                      ft__dispatcher_open(&f.prefilling, s->routing, f.replicas, f.prefills, s->hash_tokens) &&
                      ft__dispatcher_open(&f.others, s->routing, f.replicas + f.prefills, s->replicas, s->hash_tokens);
    if (!open || !f.listeners || !speakers) out_of_memory(&f);
    if (f.status == FT_OK && set_up(&f, speakers) == FT_OK) run(&f);
    if (f.status == FT_OK) ft__judge_fairness(f.clients, f.client_room, out);
    for (int64_t i = 0; f.replicas && i < f.count; i++) {
        out->preemptions += f.replicas[i].preemptions;
        out->peak_tokens = fmax(out->peak_tokens, f.replicas[i].peak);
        out->blocked_ms += f.replicas[i].blocked_ms;
        out->full_ms += f.replicas[i].full_ms;
        ft__replica_free(&f.replicas[i]);
    }
    ft__pool_free(&f.pool);
    ft__clocks_close(&f.clocks);
    ft__dispatcher_close(&f.prefilling);
    ft__dispatcher_close(&f.others);
    free(f.replicas);
    free(f.listeners);
    free(speakers);
    free(f.arrivals.heap);
    free(f.clients);
    free(f.turn);
    free(f.history);
    return f.status;
}

/* replica.c: continuous batching, iteration by iteration.
 *
 * Decoding sequences all move by one token in a step, so that only three sums are kept of them: how many there are, how
 * much their caches hold, and who ends first. While nothing but decoding happens, steps until the next end or arrival
 * are taken at once: contexts grow evenly, and the mean of the first and the last step is their time (0.07 % off). Of
 * several engines each does so by itself, however long the steps of the others are. */
#include "serving/replica.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "serving/cache.h"
#include "serving/prefix.h"

/* -- starting ---------------------------------------------------------------------------------- */

bool ft__replica_take(ft_replica *r, uint32_t index)
{
    const ft_live *l = &r->pool->at[index];
    r->waiting_tokens += (double)(l->tokens - l->done);
    return ft__queue_add(&r->queue, index, l->arrived_ms, l->client, l->priority, l->prompt, false);
}

bool ft__replica_idle(const ft_replica *r) { return !r->decoder_count && !r->prompt_count; }

static bool grow(void **at, size_t *room, size_t count, size_t size)
{
    if (count < *room) return true;
    size_t more = *room ? 2 * *room : 64;
    void *moved = realloc(*at, more * size);
    if (!moved) return false;
    *at = moved;
    *room = more;
    return true;
}

static bool add_decoder(ft_replica *r, uint32_t index)
{
    ft_live *l = &r->pool->at[index];
    void *at = r->decoding;
    if (!grow(&at, &r->decoder_room, r->decoder_count, sizeof *r->decoding)) return false;
    r->decoding = at;
    l->joined = r->step;
    l->finish = r->step + (int64_t)ceil((double)(l->answer - l->made) / r->policy->accepted);
    r->decoding[r->decoder_count] = (ft_due){l->finish, l->order, index};
    ft__due_settle(r->decoding, r->decoder_count++);
    r->context += (double)l->tokens + 1;
    return true;
}

/* The cache of a request goes to the host, or comes back; nothing else runs meanwhile. */
static void swap(ft_replica *r, const ft_live *l)
{
    double ms = (double)l->tokens * r->policy->swap_ms;
    r->now_ms += ms;
    r->since_decode_ms += ms;
}

/* The first of the queue begins. */
static bool start(ft_replica *r, uint32_t index)
{
    ft_live *l = &r->pool->at[index];
    void *at = r->prompts;
    ft__queue_drop_first(&r->queue);
    r->waiting_tokens -= (double)(l->tokens - l->done);
    double begins_ms = fmax(r->now_ms, l->arrived_ms);
    if (l->started_ms < 0 || (l->ready && !l->swapped)) l->queued_ms += begins_ms - l->arrived_ms;
    if (l->started_ms < 0) l->started_ms = begins_ms;
    l->order = r->order++;
    l->reserved = (double)l->tokens + 1 + ft__cache_padding(r) +
                  r->policy->reserved_output * (double)(l->answer - l->made);
    if (r->policy->admission == FT_ADMISSION_RESERVE) r->reserved += l->reserved;
    if (!ft__queue_began(&r->queue, l->client, (double)l->tokens, (double)(l->prompt + l->answer))) return false;
    if (l->swapped) swap(r, l);
    l->swapped = false;
    if (l->ready) return add_decoder(r, index);
    if (!grow(&at, &r->prompt_room, r->prompt_count, sizeof *r->prompts)) return false;
    r->prompts = at;
    r->prompts[r->prompt_count++] = (ft_piece){index, 0};
    r->held += (double)l->tokens + 1 + ft__cache_padding(r);
    ft__cache_share(r, l);
    if (l->made == 0 && l->known == 0) l->known = l->done;
    return true;
}

/* -- an iteration's prompts -------------------------------------------------------------------- */

static double running(const ft_replica *r) { return (double)(r->decoder_count + r->prompt_count); }

static double piece(const ft_replica *r, const ft_live *l, double budget, bool first)
{
    double left = (double)(l->tokens - l->done);
    if (left <= budget) return left;
    return r->policy->chunked || first ? fmin(left, fmax(budget, r->policy->chunked ? 0 : left)) : 0;
}

/* Fills `tokens` of the prompts under way and starts what may start. False: out of memory. */
static bool choose(ft_replica *r)
{
    const ft_policy *p = r->policy;
    bool alone = p->order == FT_ORDER_PROMPTS_ALONE;
    double budget = p->budget * (double)r->costs->pp;
    if (!alone) budget -= (double)r->decoder_count * (1 + p->drafts);
    bool any = false;
    r->blocked = r->full = false;
    for (size_t i = 0; i < r->prompt_count; i++) {
        double tokens = budget > 0 ? piece(r, &r->pool->at[r->prompts[i].index], budget, !any) : 0;
        r->prompts[i].tokens = (int32_t)tokens;
        ft__cache_scheduled(r, &r->pool->at[r->prompts[i].index], r->prompts[i].tokens);
        budget -= tokens;
        any = any || tokens > 0;
    }
    if (ft__replica_waits(r) > 0) return true;
    while (r->queue.count && budget > 0 && ft__replica_sees(r)) {
        uint32_t index = ft__queue_first(&r->queue);
        ft_live *l = &r->pool->at[index];
        if (running(r) >= p->max_sequences) {
            r->full = true;
            break;
        }
        if (!ft__cache_fits(r, l)) {
            r->blocked = true;
            break;
        }
        if (!l->ready && piece(r, l, budget, !any) <= 0) break;
        bool ready = l->ready;
        if (!start(r, index)) return false;
        if (ready) continue;
        l = &r->pool->at[index];
        ft_piece *last = &r->prompts[r->prompt_count - 1];
        last->tokens = (int32_t)piece(r, l, budget, !any);
        ft__cache_scheduled(r, l, last->tokens);
        budget -= last->tokens;
        any = true;
    }
    ft__cache_note(r);
    return true;
}

/* -- steps ------------------------------------------------------------------------------------- */

/* The front end sends what a step made, one token after another. */
static double send(ft_replica *r, double tokens)
{
    r->front_ms = fmax(r->front_ms, r->now_ms) + tokens * r->policy->stream_ms;
    return r->front_ms;
}

static bool end(ft_replica *r, uint32_t index, double ms)
{
    ft_live *l = &r->pool->at[index];
    r->just_ended++;
    ft__cache_release(r, l);
    if (r->policy->admission == FT_ADMISSION_RESERVE) r->reserved -= l->reserved;
    if (!ft__queue_left(&r->queue, l->client, (double)l->answer, (double)(l->prompt + l->answer))) return false;
    return r->listener->ended(r->listener->user, index, ms);
}

static bool end_due(ft_replica *r, double ms)
{
    while (r->decoder_count && r->decoding[0].finish <= r->step) {
        uint32_t index = r->decoding[0].index;
        ft__cache_release(r, &r->pool->at[index]);
        r->context -= ft__cache_context(r, &r->pool->at[index]);
        ft__due_remove(r, 0);
        if (!end(r, index, ms)) return false;
    }
    if (!r->decoder_count) r->context = 0;
    return true;
}

/* A prompt is done: its first token is there. */
static bool finish_prompt(ft_replica *r, uint32_t index, double ms)
{
    ft_live *l = &r->pool->at[index];
    r->held -= (double)l->tokens + 1 + ft__cache_padding(r);
    ft__cache_computed(r, l);
    if (l->made == 0 && !r->listener->first(r->listener->user, index, ms)) return false;
    l = &r->pool->at[index];
    l->made += 1;
    if (l->made >= l->answer || r->policy->prefill_only) return end(r, index, ms);
    return add_decoder(r, index);
}

static bool step_with_prompts(ft_replica *r)
{
    const ft_policy *p = r->policy;
    bool alone = p->order == FT_ORDER_PROMPTS_ALONE;
    ft_iteration i = {
        .decoders = alone ? 0 : (double)r->decoder_count, .context = r->context, .tokens_each = 1 + p->drafts};
    double done = 0;
    for (size_t k = 0; k < r->prompt_count; k++) {
        const ft_live *l = &r->pool->at[r->prompts[k].index];
        if (!r->prompts[k].tokens) continue;
        i.prompts++;
        i.prompt_tokens += (double)r->prompts[k].tokens;
        i.prompt_ms += ft__prompt_ms(r->costs, (double)(l->done + r->prompts[k].tokens)) -
                       ft__prompt_ms(r->costs, (double)l->done);
        done += l->done + r->prompts[k].tokens >= l->tokens;
    }
    i.rows = i.decoders * i.tokens_each + done;
    double ms = ft__iteration_ms(r->costs, &i), begun = r->now_ms;
    r->begun_ms = begun;
    r->now_ms += ms;
    r->waited = 0;
    r->unseen = p->receive_interval; /* who worked on prompts looks again at once */
    r->since_decode_ms += ms;
    if (i.decoders > 0) {
        r->step++;
        r->taken += ft__cache_growth(r);
        r->context += ft__cache_growth(r);
        r->listener->gaps(r->listener->user, r->since_decode_ms, i.decoders);
        r->since_decode_ms = 0;
    }
    r->listener->iterated(r->listener->user, &i, begun, ms, 1);
    double sent = send(r, i.decoders * p->accepted + done);
    size_t kept = 0, count = r->prompt_count;
    if (i.decoders > 0 && !end_due(r, sent)) return false;
    for (size_t k = 0; k < count; k++) {
        ft_piece one = r->prompts[k];
        ft_live *l = &r->pool->at[one.index];
        l->done += one.tokens;
        if (l->done < l->tokens)
            r->prompts[kept++] = one;
        else if (!finish_prompt(r, one.index, sent))
            return false;
    }
    r->prompt_count = kept;
    return true;
}

/* The newest goes back to the queue and starts over with what it has made. */
static bool preempt(ft_replica *r)
{
    size_t newest = 0;
    for (size_t i = 1; i < r->decoder_count; i++)
        if (r->decoding[i].order > r->decoding[newest].order) newest = i;
    uint32_t index = r->decoding[newest].index;
    ft_live *l = &r->pool->at[index];
    double made = r->policy->accepted * (double)(r->step - l->joined);
    ft__cache_preempted(r, l);
    r->context -= ft__cache_context(r, l);
    ft__due_remove(r, newest);
    if (r->policy->admission == FT_ADMISSION_RESERVE) r->reserved -= l->reserved;
    l->made += (int32_t)made;
    l->tokens = l->prompt + l->made;
    l->done = 0;
    l->ready = l->swapped = r->policy->swap_ms > 0;
    if (l->swapped) swap(r, l);
    r->preemptions++;
    if (!ft__queue_left(&r->queue, l->client, 0, (double)(l->prompt + l->answer))) return false;
    r->waiting_tokens += (double)l->tokens;
    return ft__queue_add(&r->queue, index, l->arrived_ms, l->client, l->priority, l->prompt, true);
}

/* How many steps of decoding alone go before somebody ends, or the cache is full. */
static double steps_at_once(const ft_replica *r, double prompts_wait)
{
    const ft_policy *p = r->policy;
    double steps = (double)(r->decoding[0].finish - r->step), each = p->accepted * (double)r->decoder_count;
    double room = floor((p->capacity - ft__replica_used(r)) / each);
    if (room < steps) steps = room;
    if (r->queue.count) steps = fmin(steps, ft__replica_unnoticed(r));
    if (prompts_wait > 0) steps = fmin(steps, prompts_wait);
    return fmax(1, steps);
}

static ft_iteration decoding(const ft_replica *r)
{
    ft_iteration i = {
        .decoders = (double)r->decoder_count, .context = r->context, .tokens_each = 1 + r->policy->drafts};
    i.rows = i.decoders * i.tokens_each;
    return i;
}

/* The last of so many steps. */
static double last_ms(const ft_replica *r, double first_ms, double steps)
{
    if (steps <= 1) return first_ms;
    ft_iteration i = decoding(r);
    i.context += r->policy->accepted * i.decoders * (steps - 1);
    return ft__iteration_ms(r->costs, &i);
}

/* As many of the steps as begin before `until_ms`: they grow evenly longer, by what the last one is longer than the
 * first, so that their sum is a square. */
static double steps_until(const ft_replica *r, double until_ms, double first_ms, double steps)
{
    double left = until_ms - r->now_ms;
    if (isinf(left)) return steps;
    steps = fmax(1, fmin(steps, ceil(left / first_ms)));
    while (steps > 2) {
        double grow = (last_ms(r, first_ms, steps) - first_ms) / (steps - 1), half = first_ms - grow / 2;
        if (grow <= 0) break;
        double fewer = fmax(1, ceil((sqrt(half * half + 2 * grow * fmax(0, left)) - half) / grow));
        if (fewer >= steps) break;
        steps = fewer;
    }
    return steps;
}

static bool decode(ft_replica *r, double until_ms, double most)
{
    const ft_policy *p = r->policy;
    double waits = ft__replica_waits(r);
    ft_iteration i = decoding(r);
    double first = ft__iteration_ms(r->costs, &i), begun = r->now_ms;
    double steps = steps_until(r, until_ms, first, fmin(most, steps_at_once(r, waits)));
    double last = last_ms(r, first, steps), ms = steps * (first + last) / 2;
    i.context += p->accepted * i.decoders * (steps - 1) / 2; /* of their mean */
    r->step += (int64_t)steps;
    r->taken += p->accepted * i.decoders * steps;
    r->context += p->accepted * i.decoders * steps;
    r->now_ms += ms;
    r->begun_ms = r->now_ms - last;
    if (waits > 0) r->waited += steps;
    r->unseen += steps;
    if (r->blocked) r->blocked_ms += ms;
    if (r->full) r->full_ms += ms;
    r->listener->gaps(r->listener->user, ms / steps + r->since_decode_ms, i.decoders);
    if (steps > 1) r->listener->gaps(r->listener->user, ms / steps, i.decoders * (steps - 1));
    r->since_decode_ms = 0;
    r->listener->iterated(r->listener->user, &i, begun, ms, steps);
    ft__cache_note(r);
    double tokens = i.decoders * p->accepted;
    r->front_ms += (steps - 1) * tokens * p->stream_ms;
    return end_due(r, send(r, tokens));
}

/* Decoding alone: others may be looked at until the step that somebody ends with begins. */
static bool foresee(ft_replica *r)
{
    ft_iteration i = decoding(r);
    double first = ft__iteration_ms(r->costs, &i), steps = steps_at_once(r, ft__replica_waits(r)) - 1;
    if (steps < 1) return decode(r, INFINITY, 1);
    r->ahead = steps;
    r->ahead_ms = r->now_ms + steps * (first + last_ms(r, first, steps)) / 2;
    return true;
}

bool ft__replica_catch_up(ft_replica *r, double until_ms)
{
    double left = r->ahead;
    r->ahead = 0;
    return left < 1 || r->now_ms >= until_ms ? true : decode(r, until_ms, left);
}

bool ft__replica_advance(ft_replica *r, double until_ms)
{
    bool prompts = false;
    r->just_ended = 0;
    while (running(r) > 1 && r->decoder_count && ft__replica_used(r) + ft__cache_growth(r) > r->policy->capacity)
        if (!preempt(r)) return false;
    ft__replica_look(r);
    if (!choose(r)) return false;
    for (size_t i = 0; i < r->prompt_count; i++) prompts = prompts || r->prompts[i].tokens > 0;
    if (prompts) return step_with_prompts(r);
    if (r->decoder_count) return r->foresees ? foresee(r) : decode(r, until_ms, INFINITY);
    if (until_ms > r->now_ms && until_ms < INFINITY) r->now_ms = until_ms;
    return true;
}

void ft__replica_free(ft_replica *r)
{
    ft__queue_free(&r->queue);
    ft__prefixes_free(r->prefixes);
    free(r->prompts);
    free(r->decoding);
    *r = (ft_replica){0};
}

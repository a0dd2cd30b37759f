/* The simulator on engines whose iterations cost what a test says: closed forms of queues, what must be conserved, and
 * the policies' promises. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "failing_alloc.h"
#include "serving/simulate.h"
#include "simple_engine.h"

typedef struct watched {
    double requests, prompt_tokens, answer_tokens, before_arrival;
    uint64_t hash;
} watched;

static void on_request(void *user, const ft_served_request *r)
{
    watched *w = user;
    w->requests++;
    w->prompt_tokens += r->prompt;
    w->answer_tokens += r->answer;
    w->before_arrival += r->started_ms < r->sent_ms || r->first_ms < r->started_ms || r->ended_ms < r->first_ms;
    uint64_t bits[2];
    memcpy(&bits[0], &r->first_ms, sizeof bits[0]);
    memcpy(&bits[1], &r->ended_ms, sizeof bits[1]);
    w->hash = (w->hash ^ bits[0]) * 0x100000001b3u;
    w->hash = (w->hash ^ bits[1]) * 0x100000001b3u;
}

static ft_load closed(int64_t clients, int64_t requests, double prompt, double answer)
{
    ft_load l = poisson(1, requests, prompt, answer);
    l.clients = clients;
    l.prompt.low = l.answer.low = 0.8;
    return l;
}

static ft_outcome *run(const ft_policy *p, ft_load *l, watched *w)
{
    ft_outcome *o = malloc(sizeof *o);
    ft_serving_sink sink = {.user = w, .request = on_request};
    ft_scene s = {.costs = &costs, .policy = p, .replicas = 1, .sink = &sink};
    ft_error err = {0};
    watched none = {0};
    if (!w) sink.user = &none;
    if (ft__simulate(&s, l, o, &err) != FT_OK) fail_msg("%s", err.message);
    return o;
}

static void near(double found, double wanted, double share, const char *what)
{
    if (fabs(found - wanted) > share * wanted) fail_msg("%s: %g, expected %g", what, found, wanted);
}

/* One server, equal work: the mean wait of M/D/1 is r D / (2 (1 - r)). Iterations start where the last one ended, so an
 * arrival at an idle engine starts at once. */
static void waits_as_m_d_1(void **state)
{
    (void)state;
    static const double loads[] = {0.3, 0.6, 0.8};
    for (size_t i = 0; i < 3; i++) {
        ft_policy p = decode_first();
        p.max_sequences = 1;
        ft_load l = poisson(1000 * loads[i], 200000, 1, 1);
        ft_outcome *o = run(&p, &l, NULL);
        near(ft__tally_mean(&o->queue), loads[i] / (2 * (1 - loads[i])), 0.03, "M/D/1");
        near(o->ttft.sum / o->ttft.count, 1 + loads[i] / (2 * (1 - loads[i])), 0.02, "its time in the system");
        free(o);
    }
}

/* Work between 1 and 19 iterations, evenly: Pollaczek and Khinchine. */
static void waits_as_m_g_1(void **state)
{
    (void)state;
    ft_policy p = decode_first();
    p.max_sequences = 1;
    ft_load l = poisson(60, 300000, 1, 10);
    l.answer.low = 0.05; /* 0.5 to 19.5, rounded: 1 to 19 but for the ends */
    l.answer.high = 1.949;
    ft_outcome *o = run(&p, &l, NULL);
    double first = 0, second = 0;
    for (int k = 1; k <= 19; k++) {
        first += k / 19.0;
        second += k * (double)k / 19.0;
    }
    double rate = 0.06, wait = rate * second / (2 * (1 - rate * first));
    near(o->answer_tokens / o->requests, first, 0.01, "the mean answer");
    near(ft__tally_mean(&o->queue), wait, 0.06, "M/G/1");
    free(o);
}

static void everything_ends_and_adds_up(void **state)
{
    (void)state;
    static const ft_order orders[] = {FT_ORDER_DECODE_FIRST, FT_ORDER_PROMPTS_ALONE, FT_ORDER_MIXED};
    for (size_t k = 0; k < 3; k++)
        for (int reserve = 0; reserve < 2; reserve++) {
            watched w = {0};
            ft_policy p = decode_first();
            p.order = orders[k];
            p.admission = reserve ? FT_ADMISSION_RESERVE : FT_ADMISSION_PROMPT;
            p.reserved_output = reserve ? 0.7 : 0;
            p.capacity = 6000; /* two or three at once: requests wait for the cache, and are preempted */
            ft_load l = closed(32, 640, 1000, 1000);
            ft_outcome *o = run(&p, &l, &w);
            assert_true(w.requests == 640 && o->requests == 640);
            assert_true(w.before_arrival == 0);
            assert_true(o->peak_tokens <= p.capacity);
            assert_true(o->peak_tokens > 0.5 * p.capacity);
            if (!reserve) assert_true(o->preemptions > 0);
            assert_true(w.prompt_tokens == o->prompt_tokens && w.answer_tokens == o->answer_tokens);
            assert_true(o->ttft.count == 640 && o->e2e.count == 640);
            /* every token but a request's first has a gap before it, but where a preempted one starts over */
            double gaps = o->answer_tokens - o->requests;
            near(o->itl.count, gaps - (double)o->preemptions, 1e-9, "gaps between tokens");
            free(o);
        }
}

/* First come, first served: of requests that do not begin together nobody starts before one that was sent earlier. */
typedef struct starts {
    double sent[2000], started[2000];
    int count;
} starts;

static void note_start(void *user, const ft_served_request *r)
{
    starts *s = user;
    s->sent[s->count] = r->sent_ms;
    s->started[s->count++] = r->started_ms;
}

static int overtakers(ft_scheduling by)
{
    static starts s;
    s.count = 0;
    ft_policy p = decode_first();
    p.scheduling = by;
    p.max_sequences = 4; /* requests queue for a place */
    ft_load l = poisson(35, 2000, 1000, 100);
    l.prompt.low = l.answer.low = 0.2;
    ft_outcome *o = malloc(sizeof *o);
    ft_serving_sink sink = {.user = &s, .request = note_start};
    ft_scene scene = {.costs = &costs, .policy = &p, .replicas = 1, .sink = &sink};
    assert_int_equal(ft__simulate(&scene, &l, o, NULL), FT_OK);
    free(o);
    int found = 0;
    for (int i = 0; i < s.count; i++)
        for (int k = 0; k < s.count; k++) found += s.sent[i] < s.sent[k] && s.started[i] > s.started[k];
    assert_int_equal(s.count, 2000);
    return found;
}

static void nobody_overtakes_where_that_is_promised(void **state)
{
    (void)state;
    assert_int_equal(overtakers(FT_FCFS), 0);
    assert_true(overtakers(FT_SHORTEST_FIRST) > 100);
}

static void one_client_alone_is_prefill_and_decode(void **state)
{
    (void)state;
    ft_policy p = decode_first();
    ft_load l = closed(1, 20, 1000, 100);
    l.answer.low = l.prompt.low = 1;
    ft_outcome *o = run(&p, &l, NULL);
    near(ft__tally_mean(&o->ttft), 1, 1e-9, "a prompt is one iteration");
    near(ft__tally_mean(&o->e2e), 100, 1e-9, "an answer is one for each token");
    near(ft__tally_mean(&o->tpot), 1, 1e-9, "one token in each");
    free(o);
}

static void prompts_are_cut_where_the_budget_ends(void **state)
{
    (void)state;
    ft_policy p = decode_first();
    p.budget = 100;
    ft_load l = closed(1, 5, 1000, 2);
    l.answer.low = l.prompt.low = 1;
    ft_outcome *o = run(&p, &l, NULL);
    near(ft__tally_mean(&o->ttft), 10, 1e-9, "ten pieces of a hundred");
    free(o);
    p.chunked = false;
    l = closed(1, 5, 1000, 2);
    l.answer.low = l.prompt.low = 1;
    o = run(&p, &l, NULL);
    near(ft__tally_mean(&o->ttft), 1, 1e-9, "whole");
    free(o);
}

static void more_rate_is_never_faster(void **state)
{
    (void)state;
    double last = 0;
    for (double rate = 100; rate <= 900; rate += 100) {
        ft_policy p = decode_first();
        p.max_sequences = 1;
        ft_load l = poisson(rate, 20000, 1, 1);
        ft_outcome *o = run(&p, &l, NULL);
        double ttft = ft__tally_mean(&o->ttft);
        if (ttft < 0.99 * last) fail_msg("at %g/s %g ms, before %g", rate, ttft, last);
        last = ttft;
        free(o);
    }
}

static void equal_seeds_equal_bytes(void **state)
{
    (void)state;
    watched a = {0}, b = {0}, c = {0};
    ft_policy p = decode_first();
    ft_load l = closed(16, 400, 1000, 200), again = l, other = l;
    ft__load_seed(&other, 8);
    free(run(&p, &l, &a));
    free(run(&p, &again, &b));
    free(run(&p, &other, &c));
    assert_true(a.hash == b.hash);
    assert_true(a.hash != c.hash);
}

/* A greedy client beside a modest one: who is served least goes first. */
static void fair_queues_share_tokens(void **state)
{
    (void)state;
    ft_queue q = {.by = FT_FAIR}, first_come = {.by = FT_FCFS};
    double served[2] = {0}, plain[2] = {0};
    for (uint32_t i = 0; i < 100; i++) {
        int32_t client = i < 90 ? 0 : 1; /* the greedy one came first */
        assert_true(ft__queue_add(&q, i, i, client, 0, 10, false));
        assert_true(ft__queue_add(&first_come, i, i, client, 0, 10, false));
    }
    for (int turn = 0; turn < 20; turn++) {
        uint32_t at = ft__queue_first(&q);
        ft__queue_drop_first(&q);
        served[at >= 90]++;
        assert_true(ft__queue_serve(&q, at >= 90, 10));
        at = ft__queue_first(&first_come);
        assert_int_equal(at, turn); /* in the order of arrival */
        ft__queue_drop_first(&first_come);
        plain[at >= 90]++;
    }
    assert_true(served[0] == 10 && served[1] == 10);
    assert_true(plain[0] == 20);
    ft__queue_free(&q);
    ft__queue_free(&first_come);
}

/* Who has least of the engine now is next, whatever was had before; an end gives a share back. */
static void max_min_fills_the_least_share(void **state)
{
    (void)state;
    ft_queue q = {.by = FT_MAX_MIN};
    for (uint32_t i = 0; i < 12; i++) assert_true(ft__queue_add(&q, i, i, i < 6 ? 0 : i < 9 ? 1 : 2, 0, 10, false));
    static const uint32_t first[] = {0, 6, 9}; /* each has nothing: in the order of arrival */
    for (int turn = 0; turn < 3; turn++) {
        assert_int_equal(ft__queue_first(&q), first[turn]);
        ft__queue_drop_first(&q);
        assert_true(ft__queue_began(&q, turn, 10, turn == 0 ? 100 : 40)); /* the first client's is a long one */
    }
    assert_int_equal(ft__queue_first(&q), 7); /* 100, 40, 40 tokens run */
    ft__queue_drop_first(&q);
    assert_true(ft__queue_began(&q, 1, 10, 40));
    assert_int_equal(ft__queue_first(&q), 10);
    assert_true(ft__queue_left(&q, 0, 90, 100)); /* the long one ends: its client has nothing again */
    assert_int_equal(ft__queue_first(&q), 1);
    ft__queue_drop_first(&q);
    assert_true(ft__queue_add(&q, 12, 99, 1, 0, 10, true)); /* who was preempted goes first all the same */
    assert_int_equal(ft__queue_first(&q), 12);
    ft__queue_free(&q);
}

static void too_long_for_the_cache(void **state)
{
    (void)state;
    ft_policy p = decode_first();
    p.capacity = 1000;
    ft_load l = closed(2, 4, 2000, 10);
    ft_outcome *o = malloc(sizeof *o);
    ft_scene s = {.costs = &costs, .policy = &p, .replicas = 1};
    ft_error err = {0};
    assert_int_equal(ft__simulate(&s, &l, o, &err), FT_E_RANGE);
    assert_string_equal(err.where, "isl");
    assert_non_null(strstr(err.message, "which holds 1000"));
    free(o);
}

static ft_status attempt(void *user)
{
    ft_policy p = decode_first();
    p.capacity = 6000;
    ft_load l = closed(64, 300, 1000, 1000);
    ft_scene s = {.costs = &costs, .policy = &p, .replicas = 2, .hash_tokens = 512};
    l.turns = 1;
    return ft__simulate(&s, &l, user, NULL);
}

static void memory_may_run_out(void **state)
{
    (void)state;
    ft_outcome *o = malloc(sizeof *o);
    assert_true(failing_alloc_sweep(attempt, o) > 10);
    free(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waits_as_m_d_1),
        cmocka_unit_test(waits_as_m_g_1),
        cmocka_unit_test(everything_ends_and_adds_up),
        cmocka_unit_test(nobody_overtakes_where_that_is_promised),
        cmocka_unit_test(one_client_alone_is_prefill_and_decode),
        cmocka_unit_test(prompts_are_cut_where_the_budget_ends),
        cmocka_unit_test(more_rate_is_never_faster),
        cmocka_unit_test(equal_seeds_equal_bytes),
        cmocka_unit_test(fair_queues_share_tokens),
        cmocka_unit_test(max_min_fills_the_least_share),
        cmocka_unit_test(too_long_for_the_cache),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

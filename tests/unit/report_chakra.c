/* Chakra's graphs, read back: what is in them adds up, and every send is received. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "traced_requests.h"

/* -- Chakra ------------------------------------------------------------------------------------ */

/* A reader of its own: only the wire format of protobuf, and the schema's numbers. */
typedef struct cursor {
    const uint8_t *at, *end;
} cursor;

static uint64_t varint(cursor *c)
{
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        assert_true(c->at < c->end);
        uint8_t byte = *c->at++;
        value |= (uint64_t)(byte & 127) << shift;
        if (!(byte & 128)) return value;
    }
    fail_msg("a varint has no end");
    return 0;
}

static cursor part(cursor *c)
{
    uint64_t length = varint(c);
    assert_true(length <= (uint64_t)(c->end - c->at));
    cursor inside = {c->at, c->at + length};
    c->at += length;
    return inside;
}

enum { COMP = 4, SEND = 5, RECV = 6, COLL = 7 };
enum { MOST_MESSAGES = 8192 };

typedef struct message { /* a send or a receive, by its ends and tag */
    int64_t from, to, tag;
    uint64_t bytes;
} message;
typedef struct tally {
    uint64_t ids;
    double comp_us, coll_us;
    uint64_t count[8];
    message sent[MOST_MESSAGES], got[MOST_MESSAGES];
    size_t sends, receives, files;
    json_t *groups;
    bool uses[128]; /* by the number of the group */
    uint64_t rank_comp_us[64], rank_coll_us[64];
} tally;

static void read_attr(cursor c, char name[32], int64_t *value, char text[32])
{
    *value = 0;
    text[0] = 0;
    while (c.at < c.end) {
        uint64_t key = varint(&c);
        if ((key & 7) == 2) {
            cursor s = part(&c);
            size_t n = (size_t)(s.end - s.at);
            char *into = key >> 3 == 1 ? name : text;
            assert_true(n < 32);
            memcpy(into, s.at, n);
            into[n] = 0;
        } else {
            assert_int_equal(key & 7, 0);
            *value = (int64_t)varint(&c);
        }
    }
}

static void read_node(cursor c, tally *t)
{
    uint64_t id = 0, type = 0, duration = 0;
    message m = {0};
    char group[32] = "";
    while (c.at < c.end) {
        uint64_t key = varint(&c), field = key >> 3;
        if ((key & 7) == 0) {
            uint64_t v = varint(&c);
            if (field == 1) id = v;
            if (field == 3) type = v;
            if (field == 7) duration = v;
            if (field == 5) assert_true(v > 0 && v < id);
            continue;
        }
        cursor inside = part(&c);
        if (field == 5)
            while (inside.at < inside.end) {
                uint64_t before = varint(&inside);
                assert_true(before > 0 && before < id); /* back alone: there is no circle */
            }
        if (field == 10) {
            char name[32] = "", text[32];
            int64_t value;
            read_attr(inside, name, &value, text);
            if (!strcmp(name, "comm_src")) m.from = value;
            if (!strcmp(name, "comm_dst")) m.to = value;
            if (!strcmp(name, "comm_tag")) m.tag = value;
            if (!strcmp(name, "comm_size")) m.bytes = (uint64_t)value;
            if (!strcmp(name, "pg_name")) strcpy(group, text);
        }
    }
    assert_int_equal(id, t->ids + 1);
    t->ids = id;
    assert_in_range(type, COMP, COLL);
    t->count[type]++;
    if (type == COMP) t->comp_us += (double)duration;
    if (type == COLL) {
        t->coll_us += (double)duration;
        assert_true(m.bytes > 0);
        assert_true(group[0]);
        t->uses[atoi(group) & 127] = true;
    }
    if (type == SEND && t->sends < MOST_MESSAGES) t->sent[t->sends++] = m;
    if (type == RECV && t->receives < MOST_MESSAGES) t->got[t->receives++] = m;
}

static bool take(void *user, const char *name, const char *at, size_t length)
{
    tally *t = user;
    if (!strcmp(name, "groups.json")) {
        t->groups = json_loadb(at, length, 0, NULL);
        assert_non_null(t->groups);
        return true;
    }
    cursor c = {(const uint8_t *)at, (const uint8_t *)at + length};
    double before = t->comp_us, exchanged = t->coll_us;
    t->ids = 0;
    t->files++;
    part(&c); /* metadata */
    while (c.at < c.end) read_node(part(&c), t);
    int rank = 0;
    assert_int_equal(sscanf(name, "step.%d.et", &rank), 1);
    if (rank < 64) t->rank_comp_us[rank] = (uint64_t)(t->comp_us - before);
    if (rank < 64) t->rank_coll_us[rank] = (uint64_t)(t->coll_us - exchanged);
    return true;
}

static int by_message(const void *a, const void *b)
{
    const message *x = a, *y = b;
    if (x->from != y->from) return x->from < y->from ? -1 : 1;
    if (x->to != y->to) return x->to < y->to ? -1 : 1;
    return x->tag < y->tag ? -1 : x->tag > y->tag;
}

static bool has_chakra(void)
{
    ft_step_view view;
    ft_error err = {0};
    static tally t;
    memset(&t, 0, sizeof t);
    json_t *request = forecast(ALONE, &view);
    ft_status status = ft__chakra(&view, take, &t, &err);
    if (status == FT_E_UNSUPPORTED) assert_non_null(strstr(err.message, "protobuf-c"));
    json_decref(t.groups);
    json_decref(request);
    return status == FT_OK;
}

static void one_gpus_kernels_add_up_to_its_busy_time(void **state)
{
    (void)state;
    if (!has_chakra()) skip();
    ft_step_view view;
    static tally t;
    memset(&t, 0, sizeof t);
    json_t *request = forecast(ALONE, &view);
    assert_int_equal(ft__chakra(&view, take, &t, NULL), FT_OK);
    assert_int_equal(t.files, 1);
    assert_true(fabs(t.comp_us / (view.step->busy_ms * 1e3) - 1) < 1e-3);
    assert_true(fabs((double)t.count[COMP] / view.step->launches - 1) < 0.02);
    assert_int_equal(t.count[COLL] + t.count[SEND] + t.count[RECV], 0);
    json_decref(t.groups);
    json_decref(request);
}

static void graphs_have_no_circles_and_every_send_is_received(void **state)
{
    (void)state;
    if (!has_chakra()) skip();
    static tally t;
    for (int i = 2; i < REQUESTS; i++) {
        ft_step_view view;
        ft_error err = {0};
        memset(&t, 0, sizeof t);
        json_t *request = forecast(requests[i], &view);
        if (ft__chakra(&view, take, &t, &err) != FT_OK) fail_msg("%s: %s", requests[i], err.message);
        int64_t ranks = view.step->ranks;
        bool all = ranks <= FT_CHAKRA_RANKS;
        assert_int_equal(t.files, all ? ranks : view.parallel->pp);
        /* Kernels of the slowest stage's first rank are the step's busy time. */
        int64_t same = view.parallel->tp * view.parallel->cp * view.parallel->dp,
                slow = ft__slowest_stage(&view) * same;
        double busy = view.step->busy_ms * 1e3;
        bool split = view.parallel->schedule == FT_ZERO_BUBBLE || view.parallel->schedule == FT_DUALPIPE;
        if (slow < 64 && !split && fabs((double)t.rank_comp_us[slow] / busy - 1) > 2e-3)
            fail_msg("%s: %g us of kernels, not %g", requests[i], (double)t.rank_comp_us[slow], busy);
        if (view.step->comm_ms > 0 && view.parallel->pp == 1) assert_true(t.count[COLL] > 0);
        if (all) {
            assert_int_equal(t.sends, t.receives);
            qsort(t.sent, t.sends, sizeof *t.sent, by_message);
            qsort(t.got, t.receives, sizeof *t.got, by_message);
            for (size_t k = 0; k < t.sends; k++) {
                assert_int_equal(by_message(&t.sent[k], &t.got[k]), 0);
                assert_int_equal(t.sent[k].bytes, t.got[k].bytes);
                if (k) assert_true(by_message(&t.sent[k - 1], &t.sent[k]) < 0); /* a tag is used once */
            }
            int64_t micros = view.work->accumulate, places = view.parallel->pp * view.parallel->vpp;
            bool tied = view.ranked->stages[0].tied_ms > 0; /* the two ends send each other their table's gradient */
            int64_t sends = (2 * (places - 1) * micros + (tied ? 2 : 0)) * same;
            if (view.parallel->pp > 1) assert_int_equal(t.sends, (size_t)sends);
        }
        json_decref(t.groups);
        json_decref(request);
    }
}

static void exchanges_of_a_layer_add_up(void **state)
{
    (void)state;
    if (!has_chakra()) skip();
    ft_step_view view;
    static tally t;
    memset(&t, 0, sizeof t);
    json_t *request = forecast(LAID_OUT("llama-3-8b", "4", "{\"tp\":4}"), &view);
    assert_int_equal(ft__chakra(&view, take, &t, NULL), FT_OK);
    assert_true(fabs(t.coll_us / 4 / (view.step->comm_ms * 1e3) - 1) < 0.02); /* four ranks, each as long */
    assert_int_equal(json_object_size(t.groups), 1);
    assert_int_equal(json_array_size(json_object_get(t.groups, "1")), 4);
    json_decref(t.groups);
    json_decref(request);
}

/* Copies of two ranks each: they gather and scatter in pairs, and sum over the four that hold the same. */
static void hybrid_shards_have_groups_of_their_own(void **state)
{
    (void)state;
    if (!has_chakra()) skip();
    for (int zero = 1; zero < 4; zero++) {
        ft_step_view view;
        static tally t;
        char text[400];
        memset(&t, 0, sizeof t);
        snprintf(text, sizeof text, LAID_OUT("llama-3-8b", "16", "{\"dp\":8,\"tp\":2,\"zero\":%d,\"shard\":2}"), zero);
        json_t *request = forecast(text, &view), *group;
        assert_int_equal(ft__chakra(&view, take, &t, NULL), FT_OK);
        double us = (double)t.rank_coll_us[0], said = view.step->comm_ms * 1e3;
        if (fabs(us / said - 1) > 0.01) fail_msg("zero %d: %g us of exchanges, not %g", zero, us, said);
        int pairs = 0, fours = 0, other = 0;
        const char *key;
        json_object_foreach (t.groups, key, group) {
            int64_t apart = json_integer_value(json_array_get(group, 1)) - json_integer_value(json_array_get(group, 0));
            size_t size = json_array_size(group);
            if (!t.uses[atoi(key)]) continue;
            pairs += size == 2 && apart == 2;
            fours += size == 4 && apart == 4;
            other += !(size == 2 || (size == 4 && apart == 4));
        }
        assert_int_equal(pairs, 8);
        assert_int_equal(fours, 4);
        assert_int_equal(other, 0); /* nobody speaks to all data ranks */
        json_decref(t.groups);
        json_decref(request);
    }
}

/* Ranks exchange as much as the forecast says, in whatever order and halves a stage goes back. */
static void nothing_is_left_out_in_any_schedule(void **state)
{
    static const char *const data[] = {
        LAID_OUT("llama-3-8b", "16", "{\"pp\":4,\"dp\":2}"),
        LAID_OUT("llama-3-8b", "16", "{\"pp\":4,\"dp\":2,\"zero\":2}"),
        LAID_OUT("llama-3-8b", "16", "{\"pp\":4,\"dp\":2,\"zero\":1,\"vpp\":2}"),
        LAID_OUT("llama-3-8b", "16", "{\"pp\":4,\"dp\":2,\"zero\":1,\"gather_overlap\":true}"),
        LAID_OUT("llama-3-8b", "16", "{\"pp\":4,\"dp\":2,\"schedule\":\"zero_bubble\"}"),
        LAID_OUT("llama-3-8b", "16", "{\"pp\":4,\"dp\":2,\"zero\":1,\"schedule\":\"zero_bubble\"}"),
        LAID_OUT("llama-3-8b", "16", "{\"pp\":4,\"dp\":2,\"zero\":2,\"schedule\":\"zero_bubble\"}"),
        LAID_OUT("llama-3-8b", "16", "{\"pp\":4,\"dp\":2,\"zero\":3,\"schedule\":\"zero_bubble\"}"),
        LAID_OUT("llama-3-8b", "16", "{\"pp\":4,\"dp\":2,\"zero\":3,\"reshard\":true,\"schedule\":\"zero_bubble\"}"),
    };
    (void)state;
    if (!has_chakra()) skip();
    static tally t;
    for (size_t i = 0; i < sizeof data / sizeof *data; i++) {
        ft_step_view view;
        memset(&t, 0, sizeof t);
        json_t *request = forecast(data[i], &view);
        assert_int_equal(ft__chakra(&view, take, &t, NULL), FT_OK);
        double us = (double)t.rank_coll_us[ft__slowest_stage(&view) * 2], said = view.step->axis_ms[FT_AXIS_DATA] * 1e3;
        if (fabs(us / said - 1) > 0.01) fail_msg("%s: %g us of exchanges, not %g", data[i], us, said);
        json_decref(t.groups);
        json_decref(request);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_gpus_kernels_add_up_to_its_busy_time),
        cmocka_unit_test(graphs_have_no_circles_and_every_send_is_received),
        cmocka_unit_test(exchanges_of_a_layer_add_up),
        cmocka_unit_test(hybrid_shards_have_groups_of_their_own),
        cmocka_unit_test(nothing_is_left_out_in_any_schedule),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}

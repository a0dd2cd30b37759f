/* Profiler traces: bytes to events, events to figures, inputs to shapes; and everything a file can do wrong. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "failing_alloc.h"
#include "scratch.h"
#include "trace/inputs.h"
#include "trace/record.h"

/* -- slices ------------------------------------------------------------------------------------ */

/* Events that come until the end or an error; `why` is what broke it off. Closes. */
static int drain(ft_slices *s, char *why, size_t room, ft_error *err)
{
    char *event;
    size_t length;
    bool more = true;
    int count = 0;
    while (more && ft__slices_next(s, &event, &length, &more, err) == FT_OK) {
        count += more;
        if (more) assert_int_equal(strlen(event), length);
    }
    if (why) snprintf(why, room, "%s", ft__slices_broken(s));
    ft__slices_close(s);
    return count;
}

/* How many events come, or -1 where it is no trace. */
static int events_of(const char *text, char why[128])
{
    ft_slices *s;
    ft_error err = {0};
    assert_int_equal(ft__slices_of(text, strlen(text), &s, &err), FT_OK);
    int count = drain(s, why, 128, &err);
    if (err.code == FT_OK) return count;
    assert_int_equal(err.code, FT_E_FORMAT);
    assert_non_null(strstr(err.message, "traceEvents"));
    return -1;
}

static void test_forms(void **state)
{
    (void)state;
    char why[128];
    assert_int_equal(events_of("{\"traceEvents\":[{\"a\":1},{\"b\":\"}\\\"]\"}]}", why), 2);
    assert_string_equal(why, "");
    assert_int_equal(events_of(" [ {\"a\":{\"b\":[1,{}]}} , {} ] ", why), 2); /* the bare array */
    assert_string_equal(why, "");
    assert_int_equal(events_of("{\"x\":[1,[2]],\"y\":\"traceEvents\",\"traceEvents\":[],\"z\":0}", why), 0);
    assert_int_equal(events_of("\xEF\xBB\xBF{\"traceEvents\":[{}]}", why), 1);
    assert_int_equal(events_of("{\"traceEvents\":[1,\"x\",null,{}]}", why), 1); /* what is no object is passed over */
}

static void test_no_trace(void **state)
{
    (void)state;
    static const char *const texts[] = {"",          "   ",
                                        "hello",     "{}",
                                        "{\"a\":1}", "{\"a\":[{\"ph\":\"X\"}]}",
                                        "\"x\"",     "{1:2}",
                                        "\x1f\x8b",  "{\"traceEvents\":7}"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (events_of(texts[i], NULL) != -1) fail_msg("\"%s\" was taken for a trace", texts[i]);
}

/* Cut anywhere, a trace gives the events before the cut, and says so. */
static void test_cut_off(void **state)
{
    (void)state;
    const char whole[] =
        "{\"schemaVersion\":1,\"deviceProperties\":[{\"id\":0,\"name\":\"NVIDIA H200\"}],\"traceEvents\":["
        "{\"ph\":\"X\",\"name\":\"a\\\"b\"},{\"ph\":\"X\",\"args\":{\"x\":[[1],[2]]}},{\"c\":3}]}";
    char part[sizeof whole], why[128];
    int before = 0;
    size_t begins = (size_t)(strstr(whole, "\"traceEvents\":[") - whole) + 15;
    for (size_t n = 0; n + 1 < sizeof whole; n++) {
        memcpy(part, whole, n);
        part[n] = 0;
        int count = events_of(part, why);
        if (n < begins) {
            assert_int_equal(count, -1);
            continue;
        }
        assert_true(count >= before && count <= 3);
        if (n + 2 < sizeof whole) assert_true(why[0] != 0); /* the last brace alone is not missed */
        before = count;
    }
    assert_int_equal(before, 3);
}

static void test_damaged_gzip(void **state)
{
    (void)state;
    char text[40000] = "{\"traceEvents\":[";
    size_t used = strlen(text);
    for (int i = 0; used < sizeof text - 64; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "{\"ph\":\"X\",\"ts\":%d},", i * 7919 % 100003);
    strcpy(text + used, "{}]}");
    const char *path = scratch_gzip("whole.json.gz", text, strlen(text));
    FILE *f = fopen(path, "rb");
    unsigned char packed[40000];
    size_t size = fread(packed, 1, sizeof packed, f);
    fclose(f);
    for (size_t keep = size; keep > 0; keep -= keep > 997 ? 997 : keep) {
        if (keep == size) continue;
        ft_slices *s;
        ft_error err = {0};
        char *event;
        size_t length;
        bool more = true;
        assert_int_equal(ft__slices_open(scratch_file("cut.json.gz", packed, keep), &s, &err), FT_OK);
        ft_status status = FT_OK;
        while (more && status == FT_OK) status = ft__slices_next(s, &event, &length, &more, &err);
        if (status == FT_OK) assert_non_null(strstr(ft__slices_broken(s), "ends early"));
        ft__slices_close(s);
    }
}

/* Events of a gzip file whose byte at `at` from its end is another: how many come out, and what is said of it. */
static int events_with_a_fault(unsigned char *packed, size_t size, size_t at, char why[120])
{
    ft_slices *s;
    ft_error err = {0};
    packed[size - at] ^= 0x10;
    assert_int_equal(ft__slices_open(scratch_file("fault.json.gz", packed, size), &s, &err), FT_OK);
    packed[size - at] ^= 0x10;
    return drain(s, why, 120, &err);
}

/* A wrong checksum or length is found behind the last event: none of them is lost. Members behind the first are read,
 * and what is none of gzip's is passed over. */
static void test_wrong_checksum(void **state)
{
    (void)state;
    static const char text[] = "{\"traceEvents\":[{\"ts\":1},{\"ts\":2},{\"ts\":3}]}";
    const char *path = scratch_gzip("small.json.gz", text, strlen(text));
    unsigned char packed[400];
    char why[120];
    FILE *f = fopen(path, "rb");
    size_t size = fread(packed, 1, sizeof packed / 2 - 8, f);
    fclose(f);
    assert_int_equal(events_with_a_fault(packed, size, 6, why), 3); /* of the checksum */
    assert_non_null(strstr(why, "damaged: incorrect data check"));
    assert_int_equal(events_with_a_fault(packed, size, 2, why), 3); /* of the length */
    assert_non_null(strstr(why, "damaged: incorrect length check"));
    memset(packed + size, 'x', 8);
    assert_int_equal(events_with_a_fault(packed, size + 8, 1, why), 3);
    assert_string_equal(why, "");
    static const char first[] = "[{\"ts\":1},", second[] = "{\"ts\":2}]";
    size = 0;
    for (int i = 0; i < 2; i++) {
        path = scratch_gzip("member.gz", i ? second : first, strlen(i ? second : first));
        f = fopen(path, "rb");
        size += fread(packed + size, 1, sizeof packed - size, f);
        fclose(f);
    }
    memset(packed + size, 0, 1);
    assert_int_equal(events_with_a_fault(packed, size + 1, 1, why), 2);
    assert_string_equal(why, "");
    assert_int_equal(events_with_a_fault(packed, size, 6, why), 2);
    assert_non_null(strstr(why, "incorrect data check"));
}

static void test_huge_and_deep(void **state)
{
    (void)state;
    size_t room = 9u << 20;
    char *text = malloc(room + 64), why[128];
    assert_non_null(text);
    /* one event beyond the limit is passed over, its neighbours are not */
    strcpy(text, "[{\"a\":1},{\"name\":\"");
    size_t used = strlen(text);
    memset(text + used, 'x', room - used);
    strcpy(text + room, "\"},{\"b\":2}]");
    assert_int_equal(events_of(text, why), 2);
    assert_string_equal(why, "");
    /* nesting is counted, not recursed into */
    strcpy(text, "[{\"a\":");
    used = strlen(text);
    memset(text + used, '[', 1 << 20);
    memset(text + used + (1 << 20), ']', 1 << 20);
    strcpy(text + used + (2 << 20), "}]");
    assert_int_equal(events_of(text, why), 1);
    memset(text, '[', 1 << 20);
    text[1 << 20] = 0;
    assert_int_equal(events_of(text, why), 0);
    assert_true(why[0] != 0);
    free(text);
}

/* -- events ------------------------------------------------------------------------------------ */

static ft_trace_event event_of(const char *text, char room[1024])
{
    ft_trace_event e;
    snprintf(room, 1024, "%s", text);
    assert_true(ft__event_read(room, strlen(room), &e));
    return e;
}

static void test_event(void **state)
{
    (void)state;
    char room[1024];
    ft_trace_event e =
        event_of("{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"void "
                 "f<int>\\u0041\\n\",\"pid\":0,\"tid\":7,\"ts\":3873995729106.765,"
                 "\"dur\":157.949,\"args\":{\"External id\": 91137,\"device\":1,\"stream\":7,\"correlation\":12,"
                 "\"grid\":[2, 66, 1],\"block\":[384,1,1],\"bytes\":4096,\"Collective name\":\"all_reduce\",\"In msg "
                 "nelems\":10,"
                 "\"dtype\":\"BFloat16\",\"Group size\":8}}",
                 room);
    assert_int_equal(e.kind, FT_EVENT_KERNEL);
    assert_true(e.timed);
    assert_true(e.start_ns == INT64_C(3873995729106765) && e.duration_ns == 157949);
    assert_true(e.external == 91137 && e.correlation == 12 && e.stream == 7 && e.device == 1 && e.ranks == 8);
    assert_true(e.grid[1] == 66 && e.block[0] == 384 && e.bytes == 4096 && e.elements == 10);
    assert_int_equal(e.name.length, strlen("void f<int>A "));
    assert_memory_equal(e.name.at, "void f<int>A ", e.name.length);
}

static void test_odd_events(void **state)
{
    (void)state;
    char room[1024];
    assert_false(event_of("{\"ph\":\"X\",\"cat\":\"kernel\",\"ts\":1}", room).timed);           /* no duration */
    assert_false(event_of("{\"ph\":\"B\",\"cat\":\"kernel\",\"ts\":1,\"dur\":2}", room).timed); /* no whole event */
    assert_false(event_of("{\"ph\":\"X\",\"ts\":\"x\",\"dur\":2}", room).timed);
    /* beyond any clock: timed, and left out as one that jumped */
    assert_true(event_of("{\"ph\":\"X\",\"ts\":99999999999999999999999,\"dur\":2}", room).start_ns == INT64_MAX);
    assert_true(event_of("{\"ph\":\"X\",\"ts\":1.5e3,\"dur\":-2.25}", room).duration_ns == -2250);
    assert_true(event_of("{\"ph\":\"X\",\"ts\":1.5e3,\"dur\":2}", room).start_ns == 1500000);
    assert_true(event_of("{\"ts\":1,\"args\":{\"External id\":1e400,\"grid\":[-5,{},\"x\"]}}", room).external == 0);
    ft_trace_event e;
    char broken[] = "{\"name\":\"a\\";
    assert_true(ft__event_read(broken, strlen(broken), &e));
    assert_false(ft__event_read(broken, 0, &e));
    /* threads of one number in two processes are two */
    uint64_t one = event_of("{\"pid\":1,\"tid\":7}", room).thread, two = event_of("{\"pid\":2,\"tid\":7}", room).thread;
    assert_true(one != two);
}

/* -- inputs ------------------------------------------------------------------------------------ */

static void test_inputs(void **state)
{
    (void)state;
    ft_inputs in;
    ft_signature_text text = {"[[8, 1024, 768], [768, 3072], [[4, 2], [3]], [], [16, 12, 64, 1024], [5, 5]]",
                              "[\"c10::BFloat16\", \"float\", \"TensorList\", \"Scalar\", \"c10::Half\", \"bool\"]",
                              "[[786432, 768, 1], [1, 768], [[2, 1], [1]], [], [786432, 64, 1, 768], [0, 1]]",
                              "[\"\", \"\", \"\", \"0.10000000000000001\", \"\", \"True\"]"};
    ft__inputs_read(&text, &in);
    assert_int_equal(in.count, 6);
    assert_true(in.at[0].numel == 8 * 1024 * 768 && in.at[0].contiguous && in.at[0].dense);
    assert_true(in.at[0].dtype == FT_BF16 && in.at[0].element_bytes == 2 && in.at[0].floating);
    assert_true(!in.at[1].contiguous && in.at[1].dense); /* a transposed matrix is one run of memory */
    assert_true(in.at[2].list && in.at[2].tensors == 2 && in.at[2].numel == 11);
    assert_true(in.at[3].rank == 0 && in.at[3].numel == 0);
    assert_true(!in.at[4].contiguous && in.at[4].dense && in.at[4].dtype == FT_FP16);
    assert_true(in.at[5].numel == 25 && in.at[5].stored == 5 && !in.at[5].floating); /* expanded: five in memory */
    double p = 0;
    assert_true(ft__input_number(&in, 3, &p) && fabs(p - 0.1) < 1e-12);
    assert_true(ft__input_true(&in, 5) && !ft__input_true(&in, 3) && !ft__input_true(&in, 99));
}

static void test_odd_inputs(void **state)
{
    (void)state;
    static const char *const texts[] = {"",
                                        "[",
                                        "[[",
                                        "[[[[[[",
                                        "]",
                                        "[[1, 2",
                                        "[[-5, 99999999999999999999999]]",
                                        "x",
                                        "[1, 2]",
                                        "[[1,2,3,4,5,6,7,8,9,10,11,12]]",
                                        "[\"\\\\",
                                        "[[], [[], []], [0]]"};
    ft_inputs in;
    for (size_t a = 0; a < sizeof texts / sizeof *texts; a++)
        for (size_t b = 0; b < sizeof texts / sizeof *texts; b++) {
            ft_signature_text text = {texts[a], texts[b], texts[b], texts[a]};
            ft__inputs_read(&text, &in);
            for (int i = 0; i < in.count; i++) {
                assert_true(in.at[i].numel >= 0 && in.at[i].numel <= 1e15);
                assert_true(in.at[i].rank >= 0 && in.at[i].rank <= FT_INPUT_RANK);
            }
        }
}

/* -- memory ------------------------------------------------------------------------------------ */

static const char tiny[] =
    "{\"deviceProperties\":[{\"id\":0,\"name\":\"NVIDIA "
    "H200\",\"totalGlobalMem\":150109880320,\"numSms\":132}],\"traceEvents\":["
    "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#1\",\"pid\":1,\"tid\":1,\"ts\":0,\"dur\":900},"
    "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::mm\",\"pid\":1,\"tid\":1,\"ts\":10,\"dur\":50,\"args\":{"
    "\"External id\":5,"
    "\"Input Dims\":[[512,512],[512,512]],\"Input type\":[\"float\",\"float\"]}},"
    "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":1,\"tid\":1,\"ts\":20,\"dur\":5,"
    "\"args\":{"
    "\"correlation\":3}},"
    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"gemm\",\"pid\":0,\"tid\":7,\"ts\":40,\"dur\":100,\"args\":{\"stream\":"
    "7,"
    "\"correlation\":3,\"External id\":5}}]}";

static ft_status read_tiny(void *context)
{
    (void)context;
    ft_slices *s;
    ft_record r;
    ft_status status = ft__slices_of(tiny, strlen(tiny), &s, NULL);
    if (status != FT_OK) return status;
    status = ft__record_read(s, 1 << 20, &r, NULL);
    ft__record_free(&r);
    ft__slices_close(s);
    return status;
}

static void test_out_of_memory(void **state)
{
    (void)state;
    assert_true(failing_alloc_sweep(read_tiny, NULL) > 5);
}

/* What does not fit the memory allowed is left out and counted, never a failure. */
static void test_memory_limit(void **state)
{
    (void)state;
    for (size_t most = 0; most < 200000; most = most * 2 + 1000) {
        ft_slices *s;
        ft_record r;
        ft_error err = {0};
        assert_int_equal(ft__slices_of(tiny, strlen(tiny), &s, &err), FT_OK);
        assert_int_equal(ft__record_read(s, most, &r, &err), FT_OK);
        assert_int_equal(r.op_count + r.call_count + r.work_count + r.capped, 4);
        ft__record_free(&r);
        ft__slices_close(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),          cmocka_unit_test(test_no_trace),
        cmocka_unit_test(test_cut_off),        cmocka_unit_test(test_damaged_gzip),
        cmocka_unit_test(test_wrong_checksum), cmocka_unit_test(test_huge_and_deep),
        cmocka_unit_test(test_event),          cmocka_unit_test(test_odd_events),
        cmocka_unit_test(test_inputs),         cmocka_unit_test(test_odd_inputs),
        cmocka_unit_test(test_out_of_memory),  cmocka_unit_test(test_memory_limit),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}

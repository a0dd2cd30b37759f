/* Logs of requests: every layout that is read, every line that is refused with its number, and a million requests that
 * take no more memory than a thousand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "failing_alloc.h"
#include "scratch.h"
#include "serving/simulate.h"

static void reads_file(const char *path, const char *text, int lines, const double *sent, const int *prompts,
                       const int *answers)
{
    ft_log *log;
    ft_error err = {0};
    if (ft__log_open(path, &log, &err) != FT_OK) fail_msg("%s: %s", text, err.message);
    ft_call c;
    bool more;
    for (int i = 0; i < lines; i++) {
        if (ft__log_next(log, &more, &c, &err) != FT_OK) fail_msg("%s: %s", text, err.message);
        assert_true(more);
        assert_true(c.sent_ms - sent[i] < 1e-3 && sent[i] - c.sent_ms < 1e-3);
        assert_int_equal(c.prompt, prompts[i]);
        assert_int_equal(c.answer, answers[i]);
    }
    assert_int_equal(ft__log_next(log, &more, &c, &err), FT_OK);
    assert_false(more);
    ft__log_close(log);
}

static void reads(const char *text, int lines, const double *sent, const int *prompts, const int *answers)
{
    reads_file(scratch_text("log", text), text, lines, sent, prompts, answers);
}

static void every_layout_is_read(void **state)
{
    (void)state;
    static const double sent[] = {0, 40.5};
    static const int prompts[] = {374, 396}, answers[] = {44, 109};
    reads("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,374,44\n"
          "2023-11-16 18:17:04.0204600,396,109\n",
          2, sent, prompts, answers);
    reads("arrival_s,input,output\n5,374,44\n5.0405,396,109\n\n", 2, sent, prompts, answers);
    reads("output,client,arrival_ms,input\r\n44,1,5,374\r\n109,2,45.5,396\r\n", 2, sent, prompts, answers);
    reads("{\"timestamp\": 1000, \"input_length\": 374, \"output_length\": 44, \"hash_ids\": [1, 2]}\n"
          "{\"timestamp\": 1040.5, \"input_length\": 396, \"output_length\": 109, \"hash_ids\": [1, 3]}\n",
          2, sent, prompts, answers);
    reads("{\"arrival_s\": 1, \"input\": 374, \"output\": 44}\n{\"arrival_s\":1.0405,\"input\":396,\"output\":109}", 2,
          sent, prompts, answers);
}

/* As spreadsheets write it. */
static void a_byte_order_mark_is_skipped(void **state)
{
    (void)state;
    static const double sent[] = {0};
    static const int prompts[] = {374}, answers[] = {44};
    reads("\xEF\xBB\xBF"
          "arrival_s,input,output\n5,374,44\n",
          1, sent, prompts, answers);
    reads("\xEF\xBB\xBF{\"arrival_s\": 1, \"input\": 374, \"output\": 44}\n", 1, sent, prompts, answers);
}

/* What cannot be read twice: /dev/stdin, the shell's <(...). */
static void a_pipe_loses_no_request(void **state)
{
    (void)state;
    static const double sent[] = {0, 40.5};
    static const int prompts[] = {374, 396}, answers[] = {44, 109};
    static const char *const texts[] = {
        "arrival_s,input,output\n5,374,44\n5.0405,396,109\n",
        "{\"arrival_s\":1,\"input\":374,\"output\":44}\n{\"arrival_s\":1.0405,\"input\":396,\"output\":109}\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        int ends[2];
        char path[32];
        assert_int_equal(pipe(ends), 0);
        assert_int_equal(write(ends[1], texts[i], strlen(texts[i])), strlen(texts[i]));
        close(ends[1]);
        snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
        reads_file(path, texts[i], 2, sent, prompts, answers);
        close(ends[0]);
    }
}

static void broken_lines_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int line;
        const char *says;
    } cases[] = {
        {"", 1, "the log has no line"},
        {"arrival_s,input\n1,2\n", 1, "a header with arrival_s"},
        {"arrival_s,input,output\n", 1, "no requests"},
        {"arrival_s,input,output\n1,10,5\n0.5,10,5\n", 3, "500 ms before the one above"},
        {"arrival_s,input,output\n1,ten,5\n", 2, "a number was expected, not \"ten\""},
        {"arrival_s,input,output\n1,10\n", 2, "fewer cells"},
        {"arrival_s,input,output\n1,10,5,7\n", 2, "more cells"},
        {"arrival_s,input,output\n1,0,5\n", 2, "from 1 to 1e9, got 0"},
        {"arrival_s,input,output\n1,1.5,5\n", 2, "a whole number of tokens"},
        {"arrival_s,input,output\n1,10,5\n1e306,10,5\n", 3, "a time of less than 1e30 milliseconds"},
        {"TIMESTAMP,ContextTokens,GeneratedTokens\nyesterday,1,1\n", 2, "a time was expected, not \"yesterday\""},
        {"{\"timestamp\": 1, \"input_length\": 3}\n", 1, "input and output were expected"},
        {"{\"timestamp\": 1, \"input_length\": 3, \"output_length\": 4}\n{oops\n", 2, "a JSON object was expected"},
        {"{\"timestamp\": 1, \"input_length\": 3, \"output_length\": 4, \"hash_ids\": [\"a\"]}\n", 1,
         "hashes must be whole numbers"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ft_log *log = NULL;
        ft_error err = {0};
        ft_call c;
        bool more = true;
        ft_status status = ft__log_open(scratch_text("log", cases[i].text), &log, &err);
        while (status == FT_OK && more) status = ft__log_next(log, &more, &c, &err);
        ft__log_close(log);
        assert_int_equal(status, FT_E_FORMAT);
        assert_int_equal(err.line, cases[i].line);
        if (!strstr(err.message, cases[i].says)) fail_msg("%s: %s", cases[i].text, err.message);
    }
    ft_log *log;
    assert_int_equal(ft__log_open("/nowhere/at/all.csv", &log, NULL), FT_E_FILE);
}

/* An iteration of a millisecond. */
static ft_serving_engine engine = {.step_ms = 1, .step_scale = 1, .prefill_scale = 1};
static ft_costs costs = {.dp = 1, .pp = 1, .engine = &engine};
static ft_policy policy = {.budget = 8192, .max_sequences = 256, .capacity = 1e6, .block = 16, .accepted = 1};

static double seen_progress;
static void on_progress(void *watcher, double share)
{
    (void)watcher;
    seen_progress = share;
}

static long allocations_of(const char *path, int64_t *requests)
{
    ft_load l = {.requests = INT64_MAX, .turns = 1};
    ft_outcome *o = malloc(sizeof *o);
    ft_serving_sink sink = {.progress = on_progress};
    ft_scene s = {.costs = &costs, .policy = &policy, .replicas = 1, .sink = &sink};
    assert_int_equal(ft__log_open(path, &l.log, NULL), FT_OK);
    failing_alloc_at(0, false);
    assert_int_equal(ft__simulate(&s, &l, o, NULL), FT_OK);
    long count = failing_alloc_count();
    ft__log_close(l.log);
    *requests = (int64_t)o->requests;
    free(o);
    return count;
}

static void a_million_requests_in_constant_memory(void **state)
{
    (void)state;
    int64_t few, many;
    for (int turn = 0; turn < 2; turn++) {
        FILE *f = fopen(scratch_path(turn ? "many.csv" : "few.csv"), "w");
        fprintf(f, "arrival_ms,input,output\n");
        for (int i = 0; i < (turn ? 1000000 : 10000); i++) fprintf(f, "%d,%d,%d\n", i / 2, 8 + i % 5, 1 + i % 7);
        fclose(f);
    }
    long first = allocations_of(scratch_path("few.csv"), &few),
         second = allocations_of(scratch_path("many.csv"), &many);
    assert_int_equal(few, 10000);
    assert_int_equal(many, 1000000);
    assert_true(second <= first + 4);
    assert_true(seen_progress > 0.99 && seen_progress <= 1);
}

/* Half of every prompt is known from the one before: its tokens are not computed again. */
static void known_prefixes_are_not_computed_again(void **state)
{
    (void)state;
    double tokens[2];
    for (int cached = 0; cached < 2; cached++) {
        ft_load l = {.requests = INT64_MAX, .turns = 1};
        FILE *f = fopen(scratch_path("prefix.jsonl"), "w");
        for (int i = 0; i < 100; i++)
            fprintf(f,
                    "{\"timestamp\": %d, \"input_length\": 2048, \"output_length\": 2, \"hash_ids\": [1, 2, %d, %d]}\n",
                    100 * i, 10 + 2 * i, 11 + 2 * i);
        fclose(f);
        ft_outcome *o = malloc(sizeof *o);
        ft_policy p = policy;
        p.budget = 512;
        p.chunked = true;
        ft_scene s = {.costs = &costs, .policy = &p, .replicas = 1, .hash_tokens = cached ? 512 : 0};
        assert_int_equal(ft__log_open(scratch_path("prefix.jsonl"), &l.log, NULL), FT_OK);
        assert_true(ft__log_block_tokens(l.log) == 512);
        assert_int_equal(ft__simulate(&s, &l, o, NULL), FT_OK);
        ft__log_close(l.log);
        tokens[cached] = o->steps_mixed;
        free(o);
    }
    assert_true(tokens[0] == 400);     /* four pieces each */
    assert_true(tokens[1] == 4 + 198); /* the first one, then two each */
}

/* Pairs of a file, without times or with times in any order; drawn, they keep together. */
static void lengths_come_from_a_file(void **state)
{
    (void)state;
    ft_length_pair *pairs = NULL;
    size_t count = 0;
    ft_error err = {0};
    FILE *f = fopen(scratch_path("lengths.csv"), "w");
    fprintf(f, "arrival_s,input,output\n9,100,1\n3,200,2\n5,300,3\n");
    fclose(f);
    assert_int_equal(ft__log_lengths(scratch_path("lengths.csv"), &pairs, &count, &err), FT_OK);
    assert_int_equal(count, 3);
    ft_load l = {.pairs = pairs, .pair_count = count, .requests = 300, .turns = 1};
    int seen[4] = {0};
    ft__load_seed(&l, 1);
    for (int i = 0; i < 300; i++) {
        ft_call call;
        ft__load_call(&l, 0, 0, &call);
        assert_int_equal(call.prompt, 100 * call.answer);
        seen[call.answer]++;
    }
    assert_true(seen[1] > 70 && seen[2] > 70 && seen[3] > 70);
    free(pairs);
    f = fopen(scratch_path("lengths.jsonl"), "w");
    fprintf(f, "{\"input\": 7, \"output\": 5}\n{\"input\": 7}\n");
    fclose(f);
    assert_int_equal(ft__log_lengths(scratch_path("lengths.jsonl"), &pairs, &count, &err), FT_E_FORMAT);
    assert_int_equal(err.line, 2);
    assert_non_null(strstr(err.message, "input and output were expected"));
    free(pairs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_layout_is_read),
        cmocka_unit_test(a_byte_order_mark_is_skipped),
        cmocka_unit_test(a_pipe_loses_no_request),
        cmocka_unit_test(broken_lines_are_named),
        cmocka_unit_test(a_million_requests_in_constant_memory),
        cmocka_unit_test(lengths_come_from_a_file),
        cmocka_unit_test(known_prefixes_are_not_computed_again),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}

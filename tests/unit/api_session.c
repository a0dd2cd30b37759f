/* Sessions: equal requests get equal answers from every session, an old one is only faster; eight threads with a
 * session each share one context; a program whose locale has decimal commas is answered like any other. */
#define _GNU_SOURCE /* mkdtemp, setenv */
#include <locale.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bare_context.h"
#include "base/error.h"
#include "failing_alloc.h"
#include "kernel/embedded_predictor.h"

static const char *const requests[] = {
    "{\"task\":\"kernel\",\"op\":\"gemm\",\"m\":4096,\"n\":4096,\"k\":4096,\"gpu\":\"h100_sxm\"}",
    "{\"task\":\"train\",\"model\":\"gpt2\",\"batch\":4,\"seq\":512,\"gpu\":\"a100_sxm_80gb\",\"advice\":true}",
    "{\"task\":\"decode\",\"model\":\"llama-3-8b\",\"batch\":4,\"seq\":512,\"gpu\":\"l40s\"}",
    "{\"task\":\"train\",\"model\":\"mixtral-8x7b\",\"batch\":1,\"seq\":512,\"gpu\":{\"base\":\"h100_sxm\",\"name\":"
    "\"mine\","
    "\"memory_gib\":200},\"parallel\":{\"tp\":2,\"dp\":4}}",
    "{\"task\":\"collective\",\"op\":\"all_reduce\",\"bytes\":1e8,\"ranks\":8,\"gpu\":\"h100_sxm\"}",
    "{\"task\":\"train\",\"model\":\"no such model\",\"gpu\":\"h100_sxm\"}",
    "{\"task\":",
    "",
};
enum { REQUESTS = sizeof requests / sizeof *requests, THREADS = 8, ROUNDS = 3 };

static void an_old_session_answers_as_a_new_one(void **state)
{
    (void)state;
    ft_session *old = NULL;
    assert_int_equal(FT_OK, ft_session_open(&old, ft, NULL));
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < REQUESTS; i++) {
            size_t length = 0;
            char *alone = ft_answer(ft, requests[i]);
            const char *kept = ft_session_answer(old, requests[i], strlen(requests[i]), &length);
            assert_string_equal(alone, kept);
            assert_int_equal(strlen(kept), length);
            free(alone);
        }
    ft_session_close(old);
    ft_session_close(NULL);
}

static void a_request_ends_where_its_length_says(void **state)
{
    (void)state;
    ft_session *s = NULL;
    assert_int_equal(FT_OK, ft_session_open(&s, ft, NULL));
    char text[256];
    size_t length = strlen(requests[0]);
    memcpy(text, requests[0], length);
    strcpy(text + length, "} and more");
    assert_non_null(strstr(ft_session_answer(s, text, length, NULL), "\"ok\":true"));
    assert_non_null(strstr(ft_session_answer(s, text, length + 4, NULL), "\"ok\":false"));
    assert_non_null(strstr(ft_session_answer(s, NULL, 17, NULL), "\"ok\":false"));
    ft_session_close(s);
}

/* A program that carries the predictor's file in its own memory, as a page does. */
static void a_predictor_may_be_bytes(void **state)
{
    (void)state;
    size_t length = (size_t)(ft__default_predictor_end - ft__default_predictor);
    unsigned char *bytes = malloc(length + 8);
    ft_context *own = NULL;
    ft_options options;
    ft_error err;
    ft_options_init(&options);
    memcpy(bytes, ft__default_predictor, length);
    options.predictor_data = bytes;
    options.predictor_length = length;
    assert_int_equal(FT_OK, ft_open(&own, &options, &err));
    for (int i = 0; i < REQUESTS; i++) {
        char *a = ft_answer(ft, requests[i]), *b = ft_answer(own, requests[i]);
        assert_string_equal(a, b);
        free(a);
        free(b);
    }
    ft_close(own);

    options.predictor = "roofline"; /* a baseline stands on the bytes too */
    assert_int_equal(FT_OK, ft_open(&own, &options, &err));
    ft_close(own);
    options.predictor = "mine.ftp";
    assert_int_equal(FT_E_USAGE, ft_open(&own, &options, &err));
    assert_non_null(strstr(err.message, "mine.ftp"));
    options.predictor = NULL;
    options.predictor_length = length - 1;
    assert_int_equal(FT_E_FORMAT, ft_open(&own, &options, &err));
    options.predictor_length = length;
    bytes[length / 2] ^= 1; /* unlike the one compiled in, bytes are checked */
    assert_int_equal(FT_E_FORMAT, ft_open(&own, &options, &err));
    options.predictor_data = bytes + 1;
    assert_int_equal(FT_E_USAGE, ft_open(&own, &options, &err));
    /* A program of before knows nothing of bytes. */
    options.predictor_data = (const void *)1;
    assert_int_equal(FT_OK, ft_open_sized(&own, &options, offsetof(ft_options, predictor_data), &err));
    ft_close(own);
    free(bytes);
}

static void wrong_calls_are_refused(void **state)
{
    (void)state;
    ft_session *s = NULL;
    ft_error err = {0};
    assert_int_equal(FT_E_USAGE, ft_session_open(&s, NULL, &err));
    assert_null(s);
    assert_int_equal(FT_E_USAGE, ft_session_open(NULL, ft, NULL));
    assert_string_equal(FT_VERSION, ft_version());
    assert_int_equal(FT_VERSION_NUMBER, ft_version_number());
}

/* A locale with decimal commas, made where the machine has none; false where it cannot be made. */
static bool set_commas(void)
{
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "pt_BR.UTF-8"};
    char folder[] = "/tmp/foretell_locale_XXXXXX", command[128];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (setlocale(LC_ALL, names[i])) return true;
    if (!mkdtemp(folder)) return false;
    snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 2>&1 >/dev/null", folder);
    int ignored = system(command);
    setenv("LOCPATH", folder, 1);
    bool set = setlocale(LC_ALL, names[0]) != NULL;
    unsetenv("LOCPATH"); /* glibc's newlocale, which the library calls, never frees the path it makes of it */
    snprintf(command, sizeof command, "rm -r %s", folder);
    ignored = system(command);
    (void)ignored;
    return set;
}

/* By a name of its own: clang takes joined strings inside a list for a forgotten comma. */
static const char plan_of_a_server[] =
    "{\"task\":\"plan\",\"model\":\"gpt2\",\"gpu\":\"l4\",\"gpus\":1,\"rate\":0.5,\"isl\":64,\"osl\":16,"
    "\"engine\":\"vllm\",\"gpu_memory_utilization\":0.87,\"slo\":{\"ttft_ms\":5000},\"emit\":[\"vllm\"],\"top\":1}";

static void decimal_commas_of_the_asker_change_no_answer(void **state)
{
    (void)state;
    static const char *const asked[] = {
        "{\"task\":\"train\",\"model\":\"gpt2\",\"gpu\":\"l4\",\"batch\":2,\"lengths\":\"64=0.7,256=0.3\"}",
        "{\"task\":\"train\",\"model\":\"gpt2\",\"gpu\":\"l4\",\"packing\":\"64.5,90\"}",
        plan_of_a_server,
    };
    enum { ASKED = sizeof asked / sizeof *asked };
    char *before[ASKED];
    for (size_t i = 0; i < ASKED; i++) before[i] = ft_answer(ft, asked[i]);
    assert_non_null(strstr(before[2], "--gpu-memory-utilization 0.87"));
    const bool commas = set_commas();
    for (size_t i = 0; i < ASKED; i++) {
        char *after = ft_answer(ft, asked[i]), *took = strstr(after, "\"search_ms\""),
             *then = strstr(before[i], "\"search_ms\"");
        if (took && then) { /* the clock's */
            assert_memory_equal(before[i], after, (size_t)(then - before[i]));
            took = strchr(took, ',');
            then = strchr(then, ',');
        }
        assert_string_equal(then ? then : before[i], took ? took : after);
        free(after);
        free(before[i]);
    }
    if (commas) assert_string_equal(localeconv()->decimal_point, ","); /* and it is the asker's again */
    setlocale(LC_ALL, "C");
}

static char *copy_of(const char *text)
{
    char *copy = malloc(strlen(text) + 1);
    return copy ? strcpy(copy, text) : NULL;
}

typedef struct asker {
    pthread_t thread;
    char *answers[REQUESTS];
} asker;

static void *ask_all(void *context)
{
    asker *a = context;
    ft_session *s = NULL;
    if (ft_session_open(&s, ft, NULL) != FT_OK) return NULL;
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < REQUESTS; i++) {
            const char *answer = ft_session_answer(s, requests[i], strlen(requests[i]), NULL);
            free(a->answers[i]);
            a->answers[i] = answer ? copy_of(answer) : NULL;
        }
    ft_session_close(s);
    return NULL;
}

static void eight_threads_share_a_context(void **state)
{
    (void)state;
    asker askers[THREADS] = {0};
    for (int t = 0; t < THREADS; t++) assert_int_equal(0, pthread_create(&askers[t].thread, NULL, ask_all, &askers[t]));
    for (int t = 0; t < THREADS; t++) pthread_join(askers[t].thread, NULL);
    for (int i = 0; i < REQUESTS; i++) {
        char *alone = ft_answer(ft, requests[i]);
        for (int t = 0; t < THREADS; t++) {
            assert_string_equal(alone, askers[t].answers[i]);
            free(askers[t].answers[i]);
        }
        free(alone);
    }
}

/* Wherever memory ends, the session says so and goes on. */
static ft_status ask_twice(void *context)
{
    ft_session *s = NULL;
    const char *request = context;
    FT_TRY(ft_session_open(&s, ft, NULL));
    const char *answer = ft_session_answer(s, request, strlen(request), NULL);
    ft_status status = !answer || strstr(answer, "out_of_memory") ? FT_E_MEMORY : FT_OK;
    if (status == FT_OK && !strstr(answer, "\"ok\":true")) fail_msg("%s", answer);
    failing_alloc_at(0, false);
    answer = ft_session_answer(s, request, strlen(request), NULL);
    if (!answer || !strstr(answer, "\"ok\":true")) fail_msg("after memory ran out: %s", answer ? answer : "nothing");
    ft_session_close(s);
    return status;
}

static void a_session_outlives_exhausted_memory(void **state)
{
    (void)state;
    char whole[] = "{\"task\":\"forward\",\"model\":\"gpt2\",\"batch\":1,\"seq\":64,\"gpu\":\"l4\"}";
    for (long n = 1; n < 200; n++)
        for (int for_good = 0; for_good < 2; for_good++) {
            failing_alloc_at(n, for_good);
            ft_status status = ask_twice(whole);
            failing_alloc_at(0, false);
            assert_true(status == FT_OK || status == FT_E_MEMORY);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_old_session_answers_as_a_new_one),
        cmocka_unit_test(a_request_ends_where_its_length_says),
        cmocka_unit_test(a_predictor_may_be_bytes),
        cmocka_unit_test(wrong_calls_are_refused),
        cmocka_unit_test(decimal_commas_of_the_asker_change_no_answer),
        cmocka_unit_test(eight_threads_share_a_context),
        cmocka_unit_test(a_session_outlives_exhausted_memory),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}

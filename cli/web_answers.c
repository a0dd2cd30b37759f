/* web_answers.c: from the text of a request to the text of its answer.
 *
 * A session (an ft_scratch) belongs to whoever answers at the moment; threads come and go with connections, so sessions
 * wait in a list between requests. There are two per core: more answers at once would only wait for each other, and
 * every session keeps up to some thirty megabytes, the room of the largest step it has seen; who comes then waits for
 * one. A request that reads files gets a session that is thrown away: sessions keep what a path held when it was read,
 * and a user who saves a config again wants the new one. */
#define _POSIX_C_SOURCE 200809L /* PATH_MAX */
#include "web_answers.h"

#include <stdlib.h>
#include <string.h>

#include "api/answer.h"
#include "base/parallel.h"
#include "report/json/answer.h"

enum { LINES_AT_ONCE = 64, RUNS = 8 }; /* a run is what one thread answers; few lines are as many runs */

void web_answers_open(web_answers *a, const ft_context *ft, const web_folder *folder, int threads)
{
    *a = (web_answers){.ft = ft, .folder = folder, .threads = threads, .places = 2 * threads};
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->given_back, NULL);
}

static void discard(web_session *s)
{
    ft__scratch_free(&s->scratch);
    free(s);
}

void web_answers_close(web_answers *a)
{
    for (web_session *s = a->idle, *next; s; s = next) {
        next = s->next;
        discard(s);
    }
    pthread_cond_destroy(&a->given_back);
    pthread_mutex_destroy(&a->lock);
}

/* Waits for a place, then takes a session that is at rest, or a new one: `fresh`, or where none is. NULL: no memory. */
static web_session *take(web_answers *a, bool fresh)
{
    pthread_mutex_lock(&a->lock);
    while (a->at_work == a->places) pthread_cond_wait(&a->given_back, &a->lock);
    web_session *s = fresh ? NULL : a->idle;
    if (s) a->idle = s->next;
    a->at_work++;
    pthread_mutex_unlock(&a->lock);
    return s ? s : calloc(1, sizeof *s);
}

static void give_back(web_answers *a, web_session *s, bool fresh)
{
    if (s && fresh)
        discard(s);
    else if (s)
        ft__scratch_rest(&s->scratch);
    pthread_mutex_lock(&a->lock);
    a->at_work--;
    if (s && !fresh) {
        s->next = a->idle;
        a->idle = s;
    }
    pthread_cond_signal(&a->given_back);
    pthread_mutex_unlock(&a->lock);
}

/* Whether it names files, and none it may not have. A text that is no JSON is the library's to complain about. */
static ft_status check_files(const web_answers *a, const char *request, size_t length, bool *used, ft_error *err)
{
    json_t *document = NULL;
    ft_error ignored;
    if (!web_folder_concerns(a->folder, request, length)) return FT_OK;
    if (ft__json_parse(request, length, "", &document, &ignored) != FT_OK) return FT_OK;
    ft_status s = web_folder_check(a->folder, document, used, err);
    json_decref(document);
    return s;
}

void web_answer(web_answers *a, const char *request, size_t length, int64_t line, ft_text *out, bool *outside)
{
    bool files = false;
    ft_error err = {0};
    if (check_files(a, request, length, &files, &err) != FT_OK) {
        if (outside) *outside = true;
        ft__answer_error(out, NULL, &err, line);
        return;
    }
    web_session *s = take(a, files);
    if (s)
        ft__answer(a->ft, &s->scratch, request, length, line, out);
    else
        out->failed = true;
    give_back(a, s, files);
}

/* -- streams ----------------------------------------------------------------------------------- */

struct web_batch {
    web_answers *answers;
    char *body;
    size_t length, at; /* of the body: what is not answered yet */
    int64_t number;    /* of the last line begun */
    struct {
        const char *at;
        size_t length;
        int64_t number;
    } line[LINES_AT_ONCE];
    size_t line_count;
    ft_text run[RUNS];
    size_t run_lines, run_count, reading, read; /* which run is handed out, and how much of it was */
};

web_batch *web_batch_open(web_answers *a, char *body, size_t length)
{
    web_batch *b = calloc(1, sizeof *b);
    if (!b) return NULL;
    b->answers = a;
    b->body = body;
    b->length = length;
    return b;
}

void web_batch_close(web_batch *b)
{
    for (size_t i = 0; i < sizeof b->run / sizeof *b->run; i++) ft__text_free(&b->run[i]);
    free(b->body);
    free(b);
}

static void next_lines(web_batch *b)
{
    b->line_count = 0;
    while (b->at < b->length && b->line_count < LINES_AT_ONCE) {
        const char *from = b->body + b->at;
        const char *end = memchr(from, '\n', b->length - b->at);
        size_t length = end ? (size_t)(end - from) : b->length - b->at;
        b->at += length + (end != NULL);
        b->number++;
        if (ft__text_blank(from, length)) continue;
        b->line[b->line_count].at = from;
        b->line[b->line_count].length = length;
        b->line[b->line_count++].number = b->number;
    }
}

static void answer_run(void *context, size_t index)
{
    web_batch *b = context;
    ft_text *out = &b->run[index];
    ft__text_clear(out);
    size_t first = index * b->run_lines, end = first + b->run_lines;
    for (size_t i = first; i < end && i < b->line_count && !out->failed; i++) {
        web_answer(b->answers, b->line[i].at, b->line[i].length, b->line[i].number, out, NULL);
        ft__text_add_n(out, "\n", 1);
    }
}

long web_batch_read(web_batch *b, char *out, size_t room)
{
    while (b->reading == b->run_count) {
        next_lines(b);
        if (!b->line_count) return 0;
        b->run_lines = (b->line_count + RUNS - 1) / RUNS;
        b->run_count = (b->line_count + b->run_lines - 1) / b->run_lines;
        b->reading = b->read = 0;
        ft__parallel(b->answers->threads, b->run_count, answer_run, b);
    }
    const ft_text *from = &b->run[b->reading];
    if (from->failed) return -1;
    size_t left = from->length - b->read, size = left < room ? left : room;
    memcpy(out, from->at + b->read, size);
    b->read += size;
    if (b->read == from->length) {
        b->reading++;
        b->read = 0;
    }
    return (long)size;
}

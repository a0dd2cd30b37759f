/* Requests that came over HTTP, answered: sessions that threads take and give back, one answer, or a stream of them. */
#ifndef CLI_WEB_ANSWERS_H
#define CLI_WEB_ANSWERS_H
#include <pthread.h>

#include "base/text.h"
#include "study/context.h"
#include "web_paths.h"

typedef struct web_session {
    ft_scratch scratch;
    struct web_session *next;
} web_session;

typedef struct web_answers {
    const ft_context *ft;
    const web_folder *folder;
    int threads; /* of one batch */
    pthread_mutex_t lock;
    pthread_cond_t given_back;
    int places, at_work; /* answers that are made at once: at most, and now */
    web_session *idle;
} web_answers;

void web_answers_open(web_answers *a, const ft_context *ft, const web_folder *folder, int threads);
void web_answers_close(web_answers *a);
/* One request, one answer: text of JSON, appended. What is wrong with it is an answer, too, a path outside the folder
 * among others (*outside). `line` numbers it in a stream, 0 for a single one. */
void web_answer(web_answers *a, const char *request, size_t length, int64_t line, ft_text *out, bool *outside);

/* A body of JSON Lines, answered some lines at a time on several threads as the reader takes them. */
typedef struct web_batch web_batch;
web_batch *web_batch_open(web_answers *a, char *body, size_t length); /* owns the body from now on; NULL: no memory */
/* Up to `room` bytes of the answers; 0 at their end, -1 where memory ran out. */
long web_batch_read(web_batch *b, char *out, size_t room);
void web_batch_close(web_batch *b);
#endif

/* Answering a line of a stream without copying. */
#ifndef FT_API_ANSWER_H
#define FT_API_ANSWER_H
#include "search/first.h"
#include "study/context.h"
#include "study/step_view.h"

/* Appends one answer without a line break: never nothing, unless memory ran out (out->failed). `line` numbers the
 * request in a stream, 0 for a single one. */
void ft__answer(const ft_context *ft, ft_scratch *scratch, const char *request, size_t length, int64_t line,
                ft_text *out);

/* Appends the answer to a request that was parsed. What was appended before an error is the caller's to take back. */
ft_status ft__answer_document(const ft_context *ft, ft_scratch *scratch, const json_t *document, ft_text *out,
                              ft_error *err);

/* Requests inside a request: `user` is an ft_asking. An answer may be an error; FT_OK says that there is one. */
typedef struct ft_asking {
    const ft_context *ft;
    ft_scratch *scratch;
} ft_asking;
ft_status ft__answer_asking(void *user, const json_t *request, json_t **out, ft_error *err);

/* A request of a step as what is drawn of it and reported. `planned` is to be freed whatever came of it. */
ft_status ft__view_document(const ft_context *ft, ft_scratch *scratch, const json_t *document, ft_planned *planned,
                            ft_step_view *out, ft_error *err);
/* Its answer. */
void ft__answer_view(ft_text *out, const json_t *id, const ft_step_view *view, const ft_planned *planned);
/* Pictures (draw.c). */
ft_status ft__answer_draw(const ft_context *ft, ft_scratch *scratch, const json_t *document, const json_t *id,
                          ft_text *out, ft_error *err);

/* The tasks of study/ that ask several times, from FT_ASK_MODELS on (study.c). */
ft_status ft__answer_study(const ft_context *ft, ft_scratch *scratch, ft_ask ask, const json_t *document,
                           const json_t *id, ft_text *out, ft_error *err);
#endif

/* session.c: the memory of one thread behind the JSON door. */
#include <stdlib.h>
#include <string.h>

#include "api/answer.h"

struct ft_session {
    const ft_context *ft;
    ft_scratch scratch;
    ft_text answer; /* the last one */
};

ft_status ft_session_open(ft_session **out, const ft_context *ft, ft_error *err)
{
    if (!out || !ft) return ft__fail(err, FT_E_USAGE, "a session needs a context and a place to go");
    *out = calloc(1, sizeof **out);
    if (!*out) return ft__no_memory(err);
    (*out)->ft = ft;
    return FT_OK;
}

void ft_session_close(ft_session *session)
{
    if (!session) return;
    ft__scratch_free(&session->scratch);
    ft__text_free(&session->answer);
    free(session);
}

const char *ft_session_answer(ft_session *session, const char *request, size_t length, size_t *answer_length)
{
    ft_text *out = &session->answer;
    ft__text_clear(out);
    ft__answer(session->ft, &session->scratch, request ? request : "", request ? length : 0, 0, out);
    if (answer_length) *answer_length = out->failed ? 0 : out->length;
    return out->failed ? NULL : out->at;
}

char *ft_answer(const ft_context *ft, const char *request)
{
    ft_text out = {0};
    ft_scratch scratch = {0};
    ft__answer(ft, &scratch, request ? request : "", request ? strlen(request) : 0, 0, &out);
    ft__scratch_free(&scratch);
    if (out.failed) {
        ft__text_free(&out);
        return NULL;
    }
    return out.at;
}

/* answer_lines.c: a line in, an answer out, through ft_session_answer as a page asks it: no numbers of lines in errors,
 * as `foretell batch` adds them. */
#define _GNU_SOURCE /* getline */
#include <stdio.h>
#include <stdlib.h>

#include "foretell.h"

int main(void)
{
    ft_context *ft;
    ft_session *session;
    ft_error err;
    if (ft_open(&ft, NULL, &err) != FT_OK || ft_session_open(&session, ft, &err) != FT_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    char *line = NULL;
    size_t room = 0;
    for (ssize_t length; (length = getline(&line, &room, stdin)) > 0;)
        if (puts(ft_session_answer(session, line, (size_t)length - (line[length - 1] == '\n'), NULL)) < 0) return 1;
    free(line);
    ft_session_close(session);
    ft_close(ft);
    return 0;
}

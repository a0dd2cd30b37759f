/* ask.c: how long a training step of a model takes on each GPU named: ask MODEL GPU... */
#include <foretell.h>
#include <stdio.h>
#include <string.h>

int main(int count, char **words)
{
    ft_context *ft = NULL;
    ft_session *session = NULL;
    ft_error err;
    char request[512];
    if (count < 3) {
        fprintf(stderr, "usage: ask MODEL GPU...\n");
        return 2;
    }
    if (ft_open(&ft, NULL, &err) != FT_OK || ft_session_open(&session, ft, &err) != FT_OK) {
        fprintf(stderr, "ask: %s\n", err.message);
        return ft_status_exit(err.code);
    }
    for (int i = 2; i < count; i++) {
        size_t length;
        snprintf(request, sizeof request, "{\"task\":\"train\",\"model\":\"%s\",\"gpu\":\"%s\"}", words[1], words[i]);
        const char *answer = ft_session_answer(session, request, strlen(request), &length);
        const char *step = strstr(answer, "\"step_ms\":");
        double ms;
        if (step && sscanf(step, "\"step_ms\":%lf", &ms) == 1)
            printf("%-16s %8.1f ms\n", words[i], ms);
        else
            printf("%-16s %s\n", words[i], answer); /* the error, with its code and its place */
    }
    ft_session_close(session);
    ft_close(ft);
    return 0;
}

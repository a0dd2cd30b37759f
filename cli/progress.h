/* A progress bar on stderr: redrawn on a terminal, a plain line per stage elsewhere. */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H
#include <pthread.h>
#include <stdbool.h>

typedef struct cli_progress {
    pthread_mutex_t lock; /* stages are reported from working threads */
    const char *title;
    bool terminal, unicode, drawn;
    double started_s, drawn_s, drawn_share;
    char stage[64];
} cli_progress;

double cli_now_s(void); /* since some moment: for differences */
void cli_progress_begin(cli_progress *p, const char *title);
void cli_progress_report(void *progress, const char *stage, double done); /* an ft_progress */
double cli_progress_seconds(const cli_progress *p);                       /* since it began */
void cli_progress_end(cli_progress *p);
#endif

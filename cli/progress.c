/* progress.c: how far a long command is. */
#define _POSIX_C_SOURCE 200809L
#include "progress.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "terminal.h"

enum { BAR = 28, LEAST_BAR = 6 };

double cli_now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void cli_progress_begin(cli_progress *p, const char *title)
{
    memset(p, 0, sizeof *p);
    pthread_mutex_init(&p->lock, NULL);
    p->title = title;
    p->terminal = cli_stderr_is_terminal();
    p->unicode = cli_style(NULL).unicode;
    p->started_s = cli_now_s();
    p->drawn_share = -1;
}

/* Time left is what the share done took, scaled; not said before there is something to go by. A line that is wider than
 * the terminal goes on in the next one, and stays there when it is drawn again: the bar gets shorter, then the stage
 * goes, then the time. */
static void draw(cli_progress *p, double done, double now)
{
    ft_text line = {0};
    ft_style style = {.unicode = p->unicode, .width = 80};
    char share[16], time[32] = "";
    double spent = now - p->started_s;
    const int room = cli_stderr_width() - 1 - (int)strlen(p->title) - 1;
    snprintf(share, sizeof share, " %3.0f %%", 100 * done);
    if (done > 0.02 && spent > 2) {
        int left = (int)(spent * (1 - done) / done + 0.5);
        snprintf(time, sizeof time, "  %d:%02d left", left / 60, left % 60);
    }
    int bar = room - (int)strlen(share) - (int)strlen(time) - 2 - (int)strlen(p->stage);
    const bool staged = bar >= LEAST_BAR;
    if (!staged) bar += 2 + (int)strlen(p->stage);
    const bool timed = bar >= LEAST_BAR;
    if (!timed) bar += (int)strlen(time);
    ft__text_addf(&line, "\r%s ", p->title);
    if (bar >= LEAST_BAR) ft__add_bar(&line, &style, done, bar < BAR ? bar : BAR);
    ft__text_add(&line, share);
    if (timed) ft__text_add(&line, time);
    if (staged) ft__text_add(&line, "  ");
    if (staged) ft__text_add_plain(&line, p->stage);
    ft__text_add(&line, "\x1b[K"); /* clears the rest of the line */
    if (!line.failed) fputs(line.at, stderr);
    fflush(stderr);
    ft__text_free(&line);
    p->drawn = true;
    p->drawn_s = now;
}

void cli_progress_report(void *progress, const char *stage, double done)
{
    cli_progress *p = progress;
    double now = cli_now_s();
    if (!(done >= 0)) done = 0;
    if (done > 1) done = 1;
    pthread_mutex_lock(&p->lock);
    bool new_stage = strncmp(p->stage, stage, sizeof p->stage - 1) != 0;
    if (new_stage) snprintf(p->stage, sizeof p->stage, "%s", stage);
    if (p->terminal) {
        if (new_stage || now - p->drawn_s > 0.1) draw(p, done, now);
    } else if (done >= p->drawn_share + 0.1 || p->drawn_share < 0) { /* logs: every tenth is enough */
        fprintf(stderr, "%s: %.0f %%, %s\n", p->title, 100 * done, p->stage);
        p->drawn_share = done;
    }
    pthread_mutex_unlock(&p->lock);
}

double cli_progress_seconds(const cli_progress *p) { return cli_now_s() - p->started_s; }

void cli_progress_end(cli_progress *p)
{
    if (p->drawn) fputs("\r\x1b[K", stderr);
    pthread_mutex_destroy(&p->lock);
}

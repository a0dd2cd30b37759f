/* simulator.c: starting foretell-simgrid, feeding it a scenario, reading its times.
 *
 * The scenario goes in through a pipe while nothing is read back: the child writes its few lines only after it has read
 * an exchange, and a pipe holds thousands of them. A child that dies takes nothing with it but this answer. */
#define _GNU_SOURCE /* pipe2: no other child that a thread starts meanwhile may hold our ends open */
#include "simulator.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef FORETELL_LIBEXEC
#define FORETELL_LIBEXEC ""
#endif

extern char **environ;

static const char name[] = "foretell-simgrid";

/* Beside the running program first, so that a build tree uses its own. */
static bool find_program(char path[4096])
{
    ssize_t n = readlink("/proc/self/exe", path, 4000);
    if (n > 0) {
        path[n] = 0;
        char *slash = strrchr(path, '/');
        if (slash) {
            strcpy(slash + 1, name);
            if (!access(path, X_OK)) return true;
        }
    }
    snprintf(path, 4096, "%s/%s", FORETELL_LIBEXEC, name);
    return FORETELL_LIBEXEC[0] && !access(path, X_OK);
}

static bool write_all(int to, const char *at, size_t left)
{
    while (left > 0) {
        ssize_t n = write(to, at, left);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        at += n;
        left -= (size_t)n;
    }
    return true;
}

static ft_status converse(const char *path, const char *scenario, size_t length, double *seconds, size_t count,
                          ft_error *err)
{
    int in[2], out[2];
    if (pipe2(in, O_CLOEXEC)) return ft__fail(err, FT_E_FILE, "cannot open a pipe: %s", strerror(errno));
    if (pipe2(out, O_CLOEXEC)) {
        close(in[0]);
        close(in[1]);
        return ft__fail(err, FT_E_FILE, "cannot open a pipe: %s", strerror(errno));
    }
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, in[0], 0);
    posix_spawn_file_actions_adddup2(&files, out[1], 1);
    char *arguments[] = {(char *)(uintptr_t)name, NULL};
    pid_t child;
    int failed = posix_spawn(&child, path, &files, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&files);
    close(in[0]);
    close(out[1]);
    FILE *answers = failed ? NULL : fdopen(out[0], "r");
    bool fine = answers && write_all(in[1], scenario, length);
    close(in[1]);
    for (size_t i = 0; fine && i < count; i++) fine = fscanf(answers, "%lf", &seconds[i]) == 1;
    if (answers)
        fclose(answers);
    else
        close(out[0]);
    int status = 0;
    while (!failed && waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    if (failed) return ft__fail_at(err, FT_E_FILE, path, 0, 0, "cannot start it: %s", strerror(failed));
    if (fine && WIFEXITED(status) && WEXITSTATUS(status) == 0) return FT_OK;
    return ft__fail(err, FT_E_FILE, "the network simulator stopped (%s %d); leave \"network\" out for the closed forms",
                    WIFSIGNALED(status) ? "signal" : "status",
                    WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

static ft_status run(void *user, const char *scenario, size_t length, double *seconds, size_t count, ft_error *err)
{
    (void)user;
    char path[4096];
    if (!find_program(path))
        return ft__fail_at(err, FT_E_UNSUPPORTED, "cluster.network", 0, 0,
                           "this build has no network simulator: it needs SimGrid (Debian: libsimgrid-dev) when it is "
                           "compiled; leave \"network\" out for the closed forms");
    return converse(path, scenario, length, seconds, count, err);
}

const ft_simulator cli_simulator = {.run = run};

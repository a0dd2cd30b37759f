/* web.c: `foretell web`: the page in a browser, answered by this machine. */
#define _POSIX_C_SOURCE 200809L
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/parallel.h"
#include "commands.h"
#include "paths.h"
#include "terminal.h"
#include "web_server.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

extern char **environ;

enum { LEAST_TOKEN = 16, LONGEST_TOKEN = 128, LARGE_PIECE = 1 << 20 };

/* Letters that need no quoting in a URL or a cookie. */
static int check_token(const char *token, const char *listen)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
    if (!token && !web_is_loopback(listen))
        return cli_complain(FT_E_USAGE,
                            "--listen %s lets other machines ask: give --token, a secret of %d letters at least",
                            listen, LEAST_TOKEN);
    if (token && (strlen(token) < LEAST_TOKEN || strlen(token) > LONGEST_TOKEN || token[strspn(token, letters)]))
        return cli_complain(FT_E_USAGE, "--token takes %d to %d letters, digits and - . _ ~", LEAST_TOKEN,
                            LONGEST_TOKEN);
    return 0;
}

static void show_browser(const char *url)
{
    static const char *const openers[] = {"xdg-open", "open"};
    for (size_t i = 0; i < sizeof openers / sizeof *openers; i++) {
        pid_t child;
        char *arguments[] = {(char *)(uintptr_t)openers[i], (char *)(uintptr_t)url, NULL};
        if (posix_spawnp(&child, openers[i], NULL, NULL, arguments, environ) == 0) return;
    }
    fprintf(stderr, "foretell: no xdg-open here; open %s yourself\n", url);
}

/* Waits for Ctrl-C. The signals were blocked before any thread was there, so that they come here. */
static void wait_for(const sigset_t *signals)
{
    int which;
    while (sigwait(signals, &which) != 0) continue;
}

static int serve(const cli_args *args, const ft_context *ft, const web_settings *settings)
{
    web_server *server = NULL;
    ft_error err = {0};
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    if (web_server_start(&server, ft, settings, &err) != FT_OK) return cli_fail(&err);
    char url[512];
    bool six = strchr(settings->listen, ':') != NULL;
    snprintf(url, sizeof url, "http://%s%s%s:%d/%s%s", six ? "[" : "", settings->listen, six ? "]" : "",
             web_server_port(server), settings->token ? "?token=" : "", settings->token ? settings->token : "");
    printf("%s\n", url);
    fflush(stdout);
    fputs("foretell: Ctrl-C ends it\n", stderr);
    if (!settings->page->count)
        fputs("foretell: the page was not built (make web); /api/answer and /api/batch answer all the same\n", stderr);
    if (cli_has(args, OPT_OPEN)) show_browser(url);
    wait_for(&signals);
    web_server_stop(server);
    return 0;
}

int cli_web(const cli_args *args)
{
    const char *listen = cli_value(args, OPT_LISTEN);
    ft_options options = {.predictor = cli_value(args, OPT_PREDICTOR), .calibration = cli_value(args, OPT_CALIBRATION)};
    web_settings set = {.listen = listen && strcmp(listen, "localhost") != 0 ? listen : "127.0.0.1",
                        .token = cli_value(args, OPT_TOKEN),
                        .shipped = !options.predictor && !options.calibration};
    int64_t port = 8080, threads = 0;
    char page_folder[4096];
    web_files page = {0};
    web_folder folder = {0};
    ft_context *ft = NULL;
    ft_error err = {0};
    set.patience_s = 10;
    int status = cli_whole(args, OPT_PORT, 0, 65535, &port);
    if (!status) status = cli_whole(args, OPT_THREADS, 0, 256, &threads);
    if (!status) status = cli_real(args, OPT_TIMEOUT, 0.2, 3600, &set.patience_s);
    if (!status) status = check_token(set.token, set.listen);
    if (!status) status = cli_page_folder(args, page_folder, sizeof page_folder);
    if (status) return status;
    set.port = (int)port;
    set.threads = threads ? (int)threads : ft__core_count();
    set.page = &page;
    set.folder = &folder;
#ifdef __GLIBC__
    mallopt(M_ARENA_MAX, 2); /* threads come and go with connections; heaps of their own would keep what they freed */
    mallopt(M_MMAP_THRESHOLD, LARGE_PIECE); /* and what one large model took goes back to the system */
#endif
    /* All files of ours are read before the process moves to where requests may read. */
    bool fine = (!*page_folder || web_files_read(&page, page_folder, &err) == FT_OK) &&
                ft_open(&ft, &options, &err) == FT_OK &&
                web_folder_enter(&folder, cli_value(args, OPT_WEB_FILES), &err) == FT_OK;
    status = fine ? serve(args, ft, &set) : cli_fail(&err);
    web_files_free(&page);
    ft_close(ft);
    return status;
}

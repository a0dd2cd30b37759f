/* terminal.c: what the terminal can show, printing to it, and complaining. */
#define _DEFAULT_SOURCE /* winsize */
#include "terminal.h"

#include <errno.h>
#include <langinfo.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "report/json/answer.h"
#include "report/text/fold.h"

static bool wants_colour(const cli_args *args)
{
    const char *when = args ? cli_value(args, OPT_COLOR) : NULL;
    if (when && !strcmp(when, "always")) return true;
    if (when && !strcmp(when, "never")) return false;
    const char *no_colour = getenv("NO_COLOR"), *terminal = getenv("TERM"); /* no-color.org: set and not empty */
    return isatty(STDOUT_FILENO) && !(no_colour && *no_colour) && terminal && strcmp(terminal, "dumb") != 0;
}

ft_style cli_style(const cli_args *args)
{
    ft_style style = {.width = 110};            /* files and pipes are read by something wide */
    const char *codeset = nl_langinfo(CODESET); /* of LC_CTYPE, which main() took from the environment */
    style.unicode = !strcmp(codeset, "UTF-8") || !strcmp(codeset, "utf8");
    style.colour = wants_colour(args);
    struct winsize size;
    if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
        style.width = size.ws_col;
        style.terminal = true;
    }
    return style;
}

bool cli_stderr_is_terminal(void)
{
    const char *terminal = getenv("TERM");
    return isatty(STDERR_FILENO) && terminal && strcmp(terminal, "dumb") != 0;
}

int cli_stderr_width(void)
{
    struct winsize size;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

static ft_text *captured;
static bool expects_json; /* --json, and nothing was written yet */

void cli_capture(ft_text *into) { captured = into; }
void cli_expect_json(bool expected) { expects_json = expected; }

int cli_write(const char *text, size_t length)
{
    if (captured) {
        ft__text_add_n(captured, text, length);
        return captured->failed ? cli_complain(FT_E_MEMORY, "out of memory") : 0;
    }
    expects_json = false;
    while (length > 0) {
        ssize_t written = write(STDOUT_FILENO, text, length);
        if (written < 0) {
            if (errno == EINTR) continue;
            if (errno == EPIPE) return CLI_READER_LEFT;
            return cli_complain(FT_E_FILE, "cannot write to stdout: %s", strerror(errno));
        }
        text += written;
        length -= (size_t)written;
    }
    return 0;
}

int cli_print(ft_text *text)
{
    int status = text->failed ? cli_complain(FT_E_MEMORY, "out of memory")
                 : text->at   ? cli_write(text->at, text->length)
                              : 0;
    ft__text_free(text);
    return status;
}

int cli_show(ft_text *text, const ft_style *style)
{
    ft__fold(text, style);
    return cli_print(text);
}

/* -- complaints -------------------------------------------------------------------------------- */

/* One write, so that lines of several processes do not mix; control characters of hostile names are made harmless. */
void cli_say(const char *place, const char *message)
{
    ft_text line = {.cap = 4096};
    ft__text_add(&line, "foretell: ");
    if (place && *place) {
        ft__text_add_plain(&line, place);
        ft__text_add(&line, ": ");
    }
    ft__text_add_plain(&line, message);
    ft__text_add(&line, "\n");
    if (!line.failed) fputs(line.at, stderr);
    ft__text_free(&line);
}

void cli_answer_error(const ft_error *err)
{
    ft_text out = {0};
    ft__answer_error(&out, NULL, err, 0);
    ft__text_add(&out, "\n");
    if (!out.failed) cli_write(out.at, out.length);
    ft__text_free(&out);
}

/* Whoever asked for JSON reads stdout: an error is an answer too. Wrong usage and memory that ran out are not. */
static void answer_in_json(const ft_error *err)
{
    if (!expects_json || captured || err->code == FT_E_USAGE || err->code == FT_E_MEMORY) return;
    cli_answer_error(err);
}

int cli_complain(ft_status code, const char *format, ...)
{
    ft_error err = {.code = code};
    va_list args;
    va_start(args, format);
    vsnprintf(err.message, sizeof err.message, format, args);
    va_end(args);
    answer_in_json(&err);
    cli_say(NULL, err.message);
    return ft_status_exit(code);
}

int cli_fail(const ft_error *err)
{
    answer_in_json(err);
    char place[320];
    if (err->line > 0 && err->column > 0)
        snprintf(place, sizeof place, "%s%s%d:%d", err->where, err->where[0] ? ":" : "", err->line, err->column);
    else if (err->line > 0)
        snprintf(place, sizeof place, "%s%s%d", err->where, err->where[0] ? ":" : "", err->line);
    else
        snprintf(place, sizeof place, "%s", err->where);
    cli_say(place, err->message);
    return ft_status_exit(err->code);
}

int cli_usage(const cli_command *command, const char *format, ...)
{
    char message[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    cli_say(NULL, message);
    if (command && strcmp(command->name, "help") != 0)
        fprintf(stderr, "Try: foretell help %s\n", command->name);
    else
        fputs("Try: foretell help\n", stderr);
    return ft_status_exit(FT_E_USAGE);
}

/* What the terminal can show, printing to it, and complaining. */
#ifndef CLI_TERMINAL_H
#define CLI_TERMINAL_H
#include "base/text.h"
#include "foretell.h"
#include "options.h"
#include "report/text/style.h"

/* Of stdout, or of stderr for progress. */
ft_style cli_style(const cli_args *args);
bool cli_stderr_is_terminal(void);
int cli_stderr_width(void); /* in columns; 80 where it does not say */

/* Whole or not at all: 0, CLI_READER_LEFT when nobody reads any more (| head), or the exit status after complaining. */
enum { CLI_READER_LEFT = -1 };
int cli_write(const char *text, size_t length);
/* From now on what would be written is added to `into`; NULL: written again. */
void cli_capture(ft_text *into);
int cli_show(ft_text *text, const ft_style *style); /* a screen: folded where the terminal is narrow, then as below */
int cli_print(ft_text *text);                       /* also complains when the text ran out of memory; frees it */

/* From now on a complaint is an object on stdout too, where it comes before all else that is written there. */
void cli_expect_json(bool expected);
void cli_answer_error(const ft_error *err); /* that object, in any case */

/* "foretell: place: message" on stderr, a place NULL or "" left out; control characters are made harmless. */
void cli_say(const char *place, const char *message);

/* Each says so and returns the exit status to end with. */
int cli_complain(ft_status code, const char *format, ...) __attribute__((format(printf, 2, 3)));
int cli_fail(const ft_error *err);
int cli_usage(const cli_command *command, const char *format, ...) __attribute__((format(printf, 2, 3)));
#endif

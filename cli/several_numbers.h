/* Several numbers where an option takes one. */
#ifndef CLI_SEVERAL_NUMBERS_H
#define CLI_SEVERAL_NUMBERS_H
#include "options.h"

/* Answers "1:8", "1-8" or "1,2,4" with what forecasts over them: --sweep, or the command that asks for a range there;
 * `flag` is how the option was called. 0: `value` is none of these. */
int cli_several_numbers(const cli_command *command, cli_option_id option, const char *flag, const char *value);
#endif

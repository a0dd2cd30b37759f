/* What is said of an option that nobody here knows. */
#ifndef CLI_UNKNOWN_OPTION_H
#define CLI_UNKNOWN_OPTION_H
#include "options.h"

/* `typed` without its hyphens; `value`: what stands behind it, NULL for nothing. Complains; the exit status. */
int cli_unknown_option(const cli_command *command, const char *typed, const char *value);
/* "-tp 8" of another program's; 0: none of those. */
int cli_foreign_letters(const cli_command *command, const char *typed, const char *value);
#endif

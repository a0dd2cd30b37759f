/* One function per command; each returns the exit status. */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H
#include "options.h"

int cli_train(const cli_args *args);
int cli_infer(const cli_args *args);
int cli_serve(const cli_args *args);
int cli_largest(const cli_args *args);
int cli_plan(const cli_args *args);
int cli_choose(const cli_args *args);
int cli_scale(const cli_args *args);
int cli_models(const cli_args *args);
int cli_schema(const cli_args *args);
int cli_kernel(const cli_args *args);
int cli_compare(const cli_args *args);
int cli_gpus(const cli_args *args);
int cli_fit(const cli_args *args);
int cli_fit_calibrate(const cli_args *args, int threads); /* fit --calibrate */
int cli_calibrate(const cli_args *args);
int cli_validate(const cli_args *args);
int cli_batch(const cli_args *args);
int cli_collective(const cli_args *args);
int cli_web(const cli_args *args);
int cli_trace(const cli_args *args);
int cli_doctor(const cli_args *args);
int cli_help(const cli_args *args);

/* help.c: `command` NULL for the program's own help. */
int cli_print_help(const cli_command *command, bool to_stderr);
/* Hidden: "man", "bash", "zsh" or "fish", made from the option table. */
int cli_generate(const char *what);
#endif

/* A range of one size: n=128:8192:128. */
#ifndef CLI_SWEEP_H
#define CLI_SWEEP_H
#include "options.h"

typedef struct cli_sweep {
    char key[32];
    int64_t *x;
    size_t count;
} cli_sweep;

int cli_sweep_parse(const cli_command *command, const char *text, cli_sweep *out);
void cli_sweep_free(cli_sweep *sweep);
#endif

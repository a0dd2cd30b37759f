/* A range of one number: n=128:8192:128, skew=0:2:0.25; and commands asked over it. */
#ifndef CLI_SWEEP_H
#define CLI_SWEEP_H
#include "base/text.h"
#include "options.h"

typedef struct cli_sweep {
    char key[32]; /* as typed, with underscores */
    cli_option_id option;
    double *x;
    size_t count;
    bool whole; /* every point is a whole number */
} cli_sweep;

/* What --sweep says: one number of the command, at most `most` points. 0, or the exit status after complaining; free it
 * either way. */
int cli_sweep_parse(const cli_args *args, size_t most, cli_sweep *out);
void cli_sweep_free(cli_sweep *sweep);
/* The key that the number has in a request; FT_KEY_COUNT: none. */
ft_key_id cli_sweep_key(const cli_sweep *sweep);

/* Any command that answers in JSON, over the range that --sweep gives one of its numbers. */
int cli_sweep_command(const cli_args *args);

/* The batch that a model's file fixes, or takes where none is asked for; 0: the command's own default. */
int64_t cli_sweep_own_batch(const cli_args *args, bool *fixed);
/* What stays as it is: "m 4096, k 4096, dtype bf16". Flags as given, and defaults that decide a forecast. */
void cli_sweep_fixed(ft_text *out, const cli_args *args, cli_option_id swept);
#endif

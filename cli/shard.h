/* Which part of a file of lines one of several processes takes: `foretell batch --shard 2/8`. */
#ifndef FORETELL_CLI_SHARD_H
#define FORETELL_CLI_SHARD_H

#include <stdint.h>
#include <sys/types.h>

#include "options.h"

typedef struct cli_shard {
    int64_t index, count; /* the first is 1; count 0: everything */
} cli_shard;

/* What --shard says, whichever of the two it is; {0, 0} where it is not given. */
int cli_shard_read(const cli_args *args, cli_option_id option, cli_shard *shard);

/* Moves stdin to the shard's first line. `bytes` is how much of it is the shard's, `lines` how many lines stand before,
 * so that messages number lines as a whole run does. */
int cli_shard_seek(cli_shard shard, off_t *bytes, int64_t *lines);

#endif

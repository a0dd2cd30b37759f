/* The same load on several GPUs or engines. */
#ifndef CLI_SERVE_SIDE_H
#define CLI_SERVE_SIDE_H
#include "ask.h"

/* A row, or a line of JSON, for every GPU with every engine; no engine: the usual one. Returns the exit status. */
int cli_serve_side(cli_asker *ask, const char **engines, size_t engine_count);
#endif

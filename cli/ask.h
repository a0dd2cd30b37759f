/* Flags become a request, the same object that a line of `batch` holds, so that there is one reader with one set of
 * errors. */
#ifndef CLI_ASK_H
#define CLI_ASK_H
#include "options.h"
#include "study/context.h"

/* The key that an option stands for: "kv_heads"; "batch" for --micro-batch-size. */
void cli_ask_key(cli_option_id option, char key[48]);
/* Adds every flag that is a key of the request, but for --gpu. False: out of memory, or text that is not UTF-8. */
bool cli_ask_flags(const cli_args *args, json_t *object);
/* Operands under a key: the first, or all in a list. False as above. */
bool cli_ask_operand(const cli_args *args, ft_key_id key, json_t *object);
bool cli_ask_operands(const cli_args *args, ft_key_id key, json_t *object);
/* An answer that is kept says what it answers, so that `compare` can tell what differs: before its closing brace, the
 * program's version and the request. */
/* NULL of the request: out of memory, which the text then says. */
void cli_ask_answered(ft_text *out, const json_t *request);
/* All of it, or NULL. */
json_t *cli_ask_copy(const json_t *object);
/* What tells answers of several GPUs apart; without memory for it the text has failed. */
json_t *cli_ask_id(ft_text *out, const char *name);
bool cli_is_utf8(const char *text);
/* Says why arguments did not become a request: one of them is not UTF-8, or memory ran out. Returns the status. */
int cli_ask_unread(const cli_args *args);
/* On the command line a key is a flag: `err->where` "batch" becomes "--micro-batch-size", as do keys in the message;
 * `operand_key` the operand. */
void cli_ask_name_flag(const cli_args *args, const char *operand_key, ft_error *err);
/* Complains about a request; where the message says it all (an unknown name), the place is left out. Returns the exit
 * status. */
int cli_ask_fail(const cli_args *args, const char *operand_key, ft_error *err);

/* One request that is asked again with other figures, or of other GPUs. */
typedef struct cli_asker {
    const cli_args *args;
    const char *operand; /* the key that the operand stands for: "model"; "op" where there is none */
    ft_context *ft;
    json_t *object;
    ft_scratch scratch;
    const char **gpus;
    size_t gpu_count;
    bool json;
} cli_asker;

/* Opens the context, makes the request. 0, or the exit status after complaining; close it either way. */
int cli_asker_open(cli_asker *a, const cli_args *args, const char *task);
void cli_asker_close(cli_asker *a);
/* False: out of memory, or a name that is not UTF-8. */
bool cli_asker_set(cli_asker *a, ft_key_id key, json_t *value);
/* Complains; with --json the error is also the answer. Returns the exit status. */
int cli_asker_fail(const cli_asker *a, ft_error *err);
/* What the checks of a spec file or of the request found, on stderr, keys as flags; in JSON the answer carries it.
 * `about` may be NULL; `args` too, of warnings about requests that this command did not ask. */
void cli_say_warnings(const cli_args *args, const char *about, const char *lines);
void cli_say_left_out(const char *name, const ft_error *err); /* of several that were asked for */
/* Of several GPUs one has not the number format: it is left out of the table, and why is said; with `json` in an answer
 * of its own. False: another error, or the only GPU. */
bool cli_leave_out(const ft_error *err, size_t gpus, const char *gpu, bool json, ft_text *out);
/* Lines that speak of keys, in this command's flags. */
void cli_ask_in_flags(const cli_args *args, const char *lines, ft_text *out);
#endif

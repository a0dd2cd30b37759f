/* Every key of a request, once. The reader, the messages, the program's flags with their help, man page and
 * completions, the tables of docs/interface.md and Python's keywords are made from these rows: a new key is one row,
 * and the line that says what it does.
 *
 *   FLAG(id, key, type, low, high, words, default, flag, letter, argument, commands, help, docs)   also a flag
 *   PLAIN(id, key, type, low, high, words, default, docs)                                          no flag of its own
 *
 * `type` is one of ft_key_type's. `low` and `high` bound WHOLE and REAL. `words` is WORDS(list of words.h), in the
 * order of the enum that they stand for, or NO_WORDS. `default` is a number, the place of a word, 0 or 1 of a switch;
 * DEPENDS where the rest of the request decides. `argument` is what help shows behind the flag; NULL: the words.
 * `commands` are the commands of the program that have the flag; `help` is its text there, the default added. `docs` is
 * the cell of docs/interface.md, default first; NULL: that page has it in another table. */
#ifndef FT_REQUEST_KEYS_LIST_H
#define FT_REQUEST_KEYS_LIST_H
#include "request/keys_kernel.h"
#include "request/keys_lora.h"
#include "request/keys_model.h"
#include "request/keys_parallel.h"
#include "request/keys_serve.h"

/* SECTION(name of the section, its list) in order. */
#define FT_SECTION_LIST(SECTION)           \
    SECTION(COMMON, FT_COMMON_KEYS)        \
    SECTION(OPERATOR, FT_OPERATOR_KEYS)    \
    SECTION(MODEL, FT_MODEL_KEYS)          \
    SECTION(PARALLEL, FT_PARALLEL_KEYS)    \
    SECTION(CLUSTER, FT_CLUSTER_KEYS)      \
    SECTION(LOADER, FT_LOADER_KEYS)        \
    SECTION(LORA, FT_LORA_KEYS)            \
    SECTION(KERNEL, FT_KERNEL_KEYS)        \
    SECTION(COLLECTIVE, FT_COLLECTIVE_KEYS)\
    SECTION(TRACE, FT_TRACE_KEYS)          \
    SECTION(SERVE, FT_SERVE_KEYS)
#endif

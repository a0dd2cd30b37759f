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
 * the cell of docs/interface.md, default first; NULL: that page has it in another table.
 *
 * From the same rows come the JSON Schema of requests (report/json/schema.c) and what writes one: the command line's
 * flags and the patches of advice (key_write.c). */
#ifndef FT_REQUEST_KEYS_LIST_H
#define FT_REQUEST_KEYS_LIST_H
#include "request/keys_choose.h"
#include "request/keys_draw.h"
#include "request/keys_kernel.h"
#include "request/keys_lengths.h"
#include "request/keys_lora.h"
#include "request/keys_model.h"
#include "request/keys_parallel.h"
#include "request/keys_serve.h"
#include "request/keys_serve_parts.h"
#include "request/keys_study.h"

/* SECTION(name of the section, its list, the same name in tables, the object it stands in: "" for the request itself)
 * in order. Which of them a task has is said in tasks.c. */
#define FT_SECTION_LIST(SECTION)                                                    \
    SECTION(COMMON, FT_COMMON_KEYS, "common", "")                                   \
    SECTION(OPERATOR, FT_OPERATOR_KEYS, "operator", "")                             \
    SECTION(MODEL, FT_MODEL_KEYS, "model", "")                                      \
    SECTION(PARALLEL, FT_PARALLEL_KEYS, "parallel", "parallel")                     \
    SECTION(CLUSTER, FT_CLUSTER_KEYS, "cluster", "cluster")                         \
    SECTION(LOADER, FT_LOADER_KEYS, "loader", "loader")                             \
    SECTION(LORA, FT_LORA_KEYS, "lora", "lora")                                     \
    SECTION(LENGTHS, FT_LENGTHS_KEYS, "lengths", "lengths")                         \
    SECTION(KERNEL, FT_KERNEL_KEYS, "kernel", "")                                   \
    SECTION(COLLECTIVE, FT_COLLECTIVE_KEYS, "collective", "")                       \
    SECTION(TRACE, FT_TRACE_KEYS, "trace", "")                                      \
    SECTION(SERVE, FT_SERVE_KEYS, "serve", "")                                      \
    SECTION(SLO, FT_SLO_KEYS, "slo", "slo")                                         \
    SECTION(SPECULATIVE, FT_SPECULATIVE_KEYS, "speculative", "speculative")         \
    SECTION(DISAGGREGATED, FT_DISAGGREGATED_KEYS, "disaggregated", "disaggregated") \
    SECTION(SIDE, FT_SIDE_KEYS, "side", "disaggregated.prefill")                    \
    SECTION(INFER, FT_INFER_KEYS, "infer", "")                                      \
    SECTION(LARGEST, FT_LARGEST_KEYS, "largest", "")                                \
    SECTION(SCALE, FT_SCALE_KEYS, "scale", "")                                      \
    SECTION(SWEEP, FT_SWEEP_KEYS, "sweep", "")                                      \
    SECTION(COMPARE, FT_COMPARE_KEYS, "compare", "")                                \
    SECTION(MODELS, FT_MODELS_KEYS, "models", "")                                   \
    SECTION(GPUS, FT_GPUS_KEYS, "gpus", "")                                         \
    SECTION(PLAN, FT_PLAN_KEYS, "plan", "")                                         \
    SECTION(SEARCH, FT_SEARCH_KEYS, "search", "search")                             \
    SECTION(CONSTRAINTS, FT_CONSTRAINTS_KEYS, "constraints", "constraints")         \
    SECTION(CHOOSE, FT_CHOOSE_KEYS, "choose", "")                                   \
    SECTION(FAILURES, FT_FAILURES_KEYS, "failures", "failures")                     \
    SECTION(DRAW, FT_DRAW_KEYS, "draw", "")                                         \
    SECTION(PICTURE, FT_PICTURE_KEYS, "picture", "pictures")
#endif

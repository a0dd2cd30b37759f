/* options.c: the table of options, and what help says of one.
 *
 * Keys of requests that are flags come from the key table, so that the command line cannot say other than a request;
 * the rest are listed in option_list.h. Commands have a table of their own (commands.c). */
#include "options.h"

#include <stdio.h>
#include <string.h>

enum {
    TRAIN = CLI_TRAIN,
    SCALE = CLI_SCALE,
    PLANS = CLI_PLANS,
    CHOOSE = CLI_CHOOSE,
    STEPS = CLI_TRAIN | CLI_SCALE | CLI_PLANS | CLI_CHOOSE, /* commands that forecast training steps */
    INFER = CLI_INFER,
    LARGEST = CLI_LARGEST,
    KERNEL = CLI_KERNEL,
    COMPARE = CLI_COMPARE,
    MODELS = CLI_MODELS,
    GPUS = CLI_GPUS,
    FIT = CLI_FIT,
    CALIBRATE = CLI_CALIBRATE,
    VALIDATE = CLI_VALIDATE,
    BATCH = CLI_BATCH,
    WEB = CLI_WEB,
    TRACE = CLI_TRACE,
    SERVE = CLI_SERVE,
    EXCHANGE = CLI_EXCHANGE,
    DOCTOR = CLI_DOCTOR,
    EVERY = CLI_EVERY
};

/* How a key's value is typed. */
enum {
    TYPED_WHOLE = CLI_WHOLE,
    TYPED_REAL = CLI_REAL,
    TYPED_SWITCH = CLI_SWITCH,
    TYPED_WORD = CLI_CHOICE,
    TYPED_NAMES = CLI_WORD,
    TYPED_DTYPE = CLI_DTYPE,
    TYPED_TEXT = CLI_WORD,
    TYPED_SHARE = CLI_SHARE,
    TYPED_WHOLES = CLI_WHOLE,
    TYPED_TRIED_WORDS = CLI_WORD,
    TYPED_PAIR = CLI_WORD,
    TYPED_EXTENT = CLI_WORD,
    TYPED_TEXTS = CLI_WORD,
    TYPED_GPU = CLI_GPU,
    TYPED_NAMED = CLI_WORD,
    TYPED_SECTION = CLI_WORD,
    TYPED_ANY = CLI_WORD
};

/* clang-format off */
const cli_option cli_options[OPT_COUNT] = {
#define PLAIN(...)
#define FLAG(id, name, type, low, high, words, standard, flag, letter, argument, commands, help, docs) \
    [OPT_##id] = {flag, letter, (cli_kind)TYPED_##type, argument, NULL, commands, GROUP, help,         \
                  &ft__keys[FT_KEY_ID_##id]},
#define GROUP CLI_REQUEST
    FT_COMMON_KEYS(FLAG, PLAIN)
    FT_KERNEL_KEYS(FLAG, PLAIN)
    FT_COLLECTIVE_KEYS(FLAG, PLAIN)
    FT_TRACE_KEYS(FLAG, PLAIN)
#undef GROUP
#define GROUP CLI_LOAD
    FT_SERVE_KEYS(FLAG, PLAIN)
#undef GROUP
#define GROUP CLI_OPERATOR
    FT_OPERATOR_KEYS(FLAG, PLAIN)
#undef GROUP
#define GROUP CLI_WORKLOAD
    FT_MODEL_KEYS(FLAG, PLAIN)
#undef GROUP
#define GROUP CLI_PARALLEL
    FT_PARALLEL_KEYS(FLAG, PLAIN)
#undef GROUP
#define GROUP CLI_CLUSTER
    FT_CLUSTER_KEYS(FLAG, PLAIN)
#undef GROUP
#define GROUP CLI_LOADER
    FT_LOADER_KEYS(FLAG, PLAIN)
#undef GROUP
#define GROUP CLI_LORA
    FT_LORA_KEYS(FLAG, PLAIN)
#undef GROUP
#define GROUP CLI_WORKLOAD
    FT_LENGTHS_KEYS(FLAG, PLAIN)
#undef GROUP
#define GROUP CLI_GRID
    FT_INFER_KEYS(FLAG, PLAIN)
#undef GROUP
#define GROUP CLI_PLAN
    FT_LARGEST_KEYS(FLAG, PLAIN)
    FT_SCALE_KEYS(FLAG, PLAIN)
    FT_PLAN_KEYS(FLAG, PLAIN)
    FT_CONSTRAINTS_KEYS(FLAG, PLAIN)
    FT_CHOOSE_KEYS(FLAG, PLAIN)
#undef GROUP
#define GROUP CLI_FILTER
    FT_GPUS_KEYS(FLAG, PLAIN)
#undef GROUP
#define GROUP CLI_OUTPUT
    FT_MODELS_KEYS(FLAG, PLAIN)
#undef GROUP
#define V(id, of, name, letter, kind, standard, commands, group, help) \
    [OPT_##id] = {name,     letter,       CLI_##kind, CLI_##kind == CLI_GPU ? "GPU" : NULL, standard,             \
                  commands, CLI_##group, help,        &ft__keys[FT_KEY_ID_##of]},
    CLI_VARIANT_LIST(V)
#undef V
#define X(id, name, letter, kind, argument, standard, commands, group, help) \
    [OPT_##id] = {name, letter, CLI_##kind, argument, standard, commands, CLI_##group, help, NULL},
    CLI_OPTION_LIST(X)
#undef X
#undef FLAG
#undef PLAIN
};
/* clang-format on */

const char *const cli_group_names[CLI_GROUP_COUNT] = {
    [CLI_OPERATOR] = "Sizes of the operator",
    [CLI_WORKLOAD] = "What is done with the model",
    [CLI_REQUEST] = "Request",
    [CLI_GRID] = "Batches and lengths",
    [CLI_LOAD] = "The engine and its load",
    [CLI_PARALLEL] = "How the model is laid out over GPUs",
    [CLI_CLUSTER] = "What joins the GPUs",
    [CLI_LOADER] = "How samples reach the GPU",
    [CLI_LORA] = "Adapters",
    [CLI_PLAN] = "Many GPUs",
    [CLI_FILTER] = "Which GPUs",
    [CLI_DATA] = "Predictors and measurements",
    [CLI_SERVER] = "The server",
    [CLI_OUTPUT] = "Output",
    [CLI_HIDDEN] = "",
    [CLI_ALIAS] = "",
};

bool cli_option_asks(const cli_option *o) { return o->key != NULL; }

const char *cli_argument(const cli_option *o, char room[CLI_ARGUMENT_ROOM])
{
    if (o->argument || o->kind == CLI_SWITCH) return o->argument;
    if (!o->key || !o->key->word_count) return o->kind == CLI_REAL ? "X" : "N";
    size_t at = 0;
    room[0] = '\0';
    for (size_t i = 0; i < o->key->word_count && at < CLI_ARGUMENT_ROOM; i++)
        at += (size_t)snprintf(room + at, CLI_ARGUMENT_ROOM - at, "%s%s", i ? "|" : "", o->key->words[i]);
    return room;
}

/* Where the default depends, the help text says on what, in brackets of its own. */
const char *cli_standard(const cli_option *o, char room[32])
{
    if (o->standard) return o->standard;
    if (!o->key || o->kind == CLI_SWITCH || o->group == CLI_ALIAS || strchr(o->help, '[')) return NULL;
    const char *standard = ft__key_standard(o->key, room);
    return *standard ? standard : NULL;
}

bool cli_option_shown(const cli_option *o) { return o->group != CLI_HIDDEN && o->group != CLI_ALIAS; }

const char *cli_flag(cli_option_id option, char room[48])
{
    const cli_option *o = &cli_options[option];
    if (strlen(o->name) == 1 && o->letter && o->letter != 'h')
        snprintf(room, 48, "-%c", o->letter);
    else
        snprintf(room, 48, "--%s", o->name);
    return room;
}

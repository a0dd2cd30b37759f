/* The program's commands and options as data, and the parser that reads a command line by them. */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "option_list.h"
#include "request/keys.h"

/* Commands, in the order of --help. Bits, because an option belongs to several. */
enum {
    CLI_TRAIN = FT_BY_TRAIN,
    CLI_INFER = FT_BY_INFER,
    CLI_LARGEST = FT_BY_LARGEST,
    CLI_KERNEL = FT_BY_KERNEL,
    CLI_MODELS = FT_BY_MODELS,
    CLI_GPUS = FT_BY_GPUS,
    CLI_FIT = FT_BY_FIT,
    CLI_VALIDATE = FT_BY_VALIDATE,
    CLI_BATCH = FT_BY_BATCH,
    CLI_HELP = FT_BY_HELP,
    CLI_SCALE = FT_BY_SCALE,
    CLI_COMPARE = FT_BY_COMPARE,
    CLI_CALIBRATE = FT_BY_CALIBRATE,
    CLI_TRACE = FT_BY_TRACE,
    CLI_SERVE = FT_BY_SERVE,
    CLI_PLANS = FT_BY_PLAN,
    CLI_SCHEMA = FT_BY_SCHEMA,
    CLI_CHOOSE = FT_BY_CHOOSE,
    CLI_EXCHANGE = FT_BY_COLLECTIVE,
    CLI_WEB = FT_BY_WEB,
    CLI_DOCTOR = FT_BY_EVERY + 1, /* no key of a request is its own */
    CLI_EVERY = FT_BY_EVERY | CLI_DOCTOR
};

typedef enum cli_kind {
    CLI_SWITCH,
    CLI_WHOLE,
    CLI_REAL,
    CLI_WORD,
    CLI_CHOICE,
    CLI_FILE,
    CLI_FOLDER,
    CLI_GPU,
    CLI_DTYPE,
    CLI_SHARE
} cli_kind;

typedef enum cli_group {
    CLI_OPERATOR,
    CLI_WORKLOAD,
    CLI_REQUEST,
    CLI_GRID,
    CLI_LOAD,     /* an engine and the requests that it gets */
    CLI_PARALLEL, /* keys of the request's "parallel" */
    CLI_CLUSTER,  /* keys of its "cluster" */
    CLI_LOADER,   /* keys of its "loader" */
    CLI_LORA,     /* keys of its "lora" */
    CLI_PLAN,
    CLI_FILTER,
    CLI_DATA,
    CLI_SERVER,
    CLI_OUTPUT,
    CLI_HIDDEN, /* works, is shown nowhere */
    CLI_ALIAS,  /* of an option that is shown; a key of the request */
    CLI_GROUP_COUNT
} cli_group;

/* Keys of requests that are flags come first, in the order of their table. */
typedef enum cli_option_id {
#define X(id, ...) OPT_##id,
#define PLAIN(...)
#define SECTION(name, list, title, inside) list(X, PLAIN)
    FT_SECTION_LIST(SECTION) CLI_VARIANT_LIST(X) CLI_OPTION_LIST(X)
#undef SECTION
#undef PLAIN
#undef X
        OPT_COUNT
} cli_option_id;

typedef struct cli_option {
    const char *name;
    char letter; /* -m; 0 for none */
    cli_kind kind;
    const char *argument; /* NULL for a switch, and where it is the words of the key */
    const char *standard; /* the default as text; NULL: the key's, or there is none or it depends */
    unsigned commands;
    cli_group group;
    const char *help;
    const ft_key_row *key; /* what it says of a request; NULL: nothing */
} cli_option;

extern const cli_option cli_options[OPT_COUNT];
enum { CLI_ARGUMENT_ROOM = 160 };
/* What stands behind it in help: "N", "fwd|bwd|fwd_bwd"; NULL for a switch. Its default there; NULL: none is shown. */
const char *cli_argument(const cli_option *o, char room[CLI_ARGUMENT_ROOM]);
const char *cli_standard(const cli_option *o, char room[32]);
/* Is it a key of the request, or of "parallel" or "cluster" in it; is it shown to people? */
bool cli_option_asks(const cli_option *o);
bool cli_option_shown(const cli_option *o);
extern const char *const cli_group_names[CLI_GROUP_COUNT];

typedef struct cli_args cli_args;

typedef struct cli_command {
    unsigned bit;
    const char *name;
    const char *operands;        /* "OP", "[NAME ...]" */
    int least, most;             /* operands it takes; most -1: any number */
    const char *summary;         /* one line */
    const char *description;     /* paragraphs, for help and the man page */
    const char *const *examples; /* command, what it shows, ..., NULL */
    int (*run)(const cli_args *args);
} cli_command;

extern const cli_command cli_commands[];
extern const int cli_command_count;

/* What was typed, in order. Values point into argv. */
struct cli_args {
    const cli_command *command;
    struct cli_given {
        cli_option_id option;
        const char *value; /* NULL: a switch; "false" for --no-NAME */
        const char *from;  /* NULL: typed; otherwise the variable or the settings file that has it */
    } * given;
    int given_count;
    const char **operands;
    int operand_count;
};

const cli_command *cli_command_find(const char *name);
/* 0, or the exit status after complaining. --help and --version are given options like any other. */
int cli_parse(const cli_command *command, int argc, char **argv, cli_args *out);
void cli_args_free(cli_args *args);

bool cli_has(const cli_args *args, cli_option_id option);
const char *cli_value(const cli_args *args, cli_option_id option); /* the last one given, or NULL */
/* Every value of an option that may be repeated; the array is allocated, its strings are not. False: out of memory. */
bool cli_values(const cli_args *args, cli_option_id option, const char ***out, size_t *count);
/* Numbers within limits: 0, or the exit status after complaining. Not given: *out is left alone. */
int cli_whole(const cli_args *args, cli_option_id option, int64_t low, int64_t high, int64_t *out);
int cli_real(const cli_args *args, cli_option_id option, double low, double high, double *out);
/* "-m" or "--kv-heads": how an option is called in messages. The text is static per call site: `room` holds it. */
const char *cli_flag(cli_option_id option, char room[48]);
#endif

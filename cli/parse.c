/* parse.c: a command line read by the option table.
 *
 * As GNU programs do it: --name value, --name=value, -m value, -m4096; operands anywhere; `--` ends the options. Names
 * are not abbreviated, because tomorrow's option would change what today's script means; underscores may stand for
 * hyphens, because the same keys are written so in JSON. A value that begins with two hyphens is taken as the next
 * option, so that a forgotten value is noticed; --name=--value says it anyway.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "config.h"
#include "meant_number.h"
#include "options.h"
#include "several_numbers.h"
#include "terminal.h"
#include "unknown_option.h"

void cli_args_free(cli_args *args)
{
    free(args->given);
    free(args->operands);
    memset(args, 0, sizeof *args);
}

bool cli_has(const cli_args *args, cli_option_id option)
{
    for (int i = 0; i < args->given_count; i++)
        if (args->given[i].option == option) return true;
    return false;
}

const char *cli_value(const cli_args *args, cli_option_id option)
{
    for (int i = args->given_count - 1; i >= 0; i--)
        if (args->given[i].option == option) return args->given[i].value;
    return NULL;
}

bool cli_values(const cli_args *args, cli_option_id option, const char ***out, size_t *count)
{
    *count = 0;
    *out = calloc((size_t)args->given_count + 1, sizeof **out);
    if (!*out) return false;
    for (int i = 0; i < args->given_count; i++)
        if (args->given[i].option == option) (*out)[(*count)++] = args->given[i].value;
    return true;
}

int cli_whole(const cli_args *args, cli_option_id option, int64_t low, int64_t high, int64_t *out)
{
    char flag[48];
    int64_t value;
    const char *text = cli_value(args, option);
    if (!text) return 0;
    if (!ft__whole_parse(text, &value) || value < low || value > high) /* a number, and none that can be: bad input */
        return cli_complain(FT_E_RANGE, "%s takes a whole number from %lld to %lld, not \"%s\"", cli_flag(option, flag),
                            (long long)low, (long long)high, text);
    *out = value;
    return 0;
}

int cli_real(const cli_args *args, cli_option_id option, double low, double high, double *out)
{
    char flag[48];
    double value;
    const char *text = cli_value(args, option);
    if (!text) return 0;
    if (!ft__number_parse(text, &value) || value < low || value > high)
        return cli_complain(FT_E_RANGE, "%s takes a number from %g to %g, not \"%s\"", cli_flag(option, flag), low,
                            high, text);
    *out = value;
    return 0;
}

/* -- finding the option ------------------------------------------------------------------------ */

static int find_long(const cli_command *command, const char *name, bool *off)
{
    *off = false;
    for (int i = 0; i < OPT_COUNT; i++)
        if (cli_options[i].commands & command->bit && !strcmp(cli_options[i].name, name)) return i;
    if (strncmp(name, "no-", 3) != 0) return -1;
    for (int i = 0; i < OPT_COUNT; i++) {
        const cli_option *o = &cli_options[i];
        if (o->commands & command->bit && o->kind == CLI_SWITCH && cli_option_asks(o) && !strcmp(o->name, name + 3)) {
            *off = true;
            return i;
        }
    }
    return -1;
}

/* -h is help, except where a number follows and the command has a height (kernel conv2d -h 56). */
static int find_letter(const cli_command *command, char letter, const char *rest, const char *next)
{
    const char *value = *rest ? rest : next;
    bool number = value && *value >= '0' && *value <= '9';
    int help = -1;
    for (int i = 0; i < OPT_COUNT; i++) {
        if (!(cli_options[i].commands & command->bit) || cli_options[i].letter != letter) continue;
        if (letter == 'h' && cli_options[i].kind != CLI_SWITCH && !number) continue;
        if (cli_options[i].kind == CLI_SWITCH && letter == 'h')
            help = i;
        else
            return i;
    }
    return help;
}

/* -- values ------------------------------------------------------------------------------------ */

/* Words of "fwd|bwd|fwd_bwd". The request checks its own, with exit status 3; here stand the program's. */
static int check_choice(const cli_command *command, const cli_option *o, const char *value)
{
    char list[96];
    const char *words[16];
    size_t count = 0, length = strlen(o->argument);
    if (length >= sizeof list) length = sizeof list - 1;
    memcpy(list, o->argument, length);
    list[length] = '\0';
    for (char *at = list; at && count < 16;) {
        words[count++] = at;
        at = strchr(at, '|');
        if (at) *at++ = '\0';
    }
    for (size_t i = 0; i < count; i++)
        if (!strcmp(words[i], value)) return 0;
    const char *nearest = ft__nearest(value, words, count);
    if (nearest) return cli_usage(command, "--%s cannot be \"%s\"; did you mean \"%s\"?", o->name, value, nearest);
    return cli_usage(command, "--%s cannot be \"%s\"; it is one of %s", o->name, value, o->argument);
}

/* "1,8" of an option that is given again for each: said so, the numbers one by one. */
static bool lists(const cli_option *o, const char *flag, const char *value, char out[160])
{
    char part[24];
    double number;
    size_t used = 0, length;
    if (!o->key || o->key->type != FT_KEY_WHOLES || !strchr(value, ',')) return false;
    for (const char *at = value; *at; at += length + (at[length] == ',')) {
        length = strcspn(at, ",");
        if (length >= sizeof part) return false;
        snprintf(part, sizeof part, "%.*s", (int)length, at);
        if (!ft__number_parse(part, &number)) return false;
        used += (size_t)snprintf(out + used, 160 - used, "%s%s %s", used ? " " : "", flag, part);
        if (used >= 160) return false;
    }
    return true;
}

static int not_a_number(const cli_command *command, cli_option_id id, const char *value)
{
    char flag[48];
    const cli_option *o = &cli_options[id];
    const cli_meant meant = cli_meant_number(value);
    const bool money = o->argument && !strcmp(o->argument, "USD");
    const char *takes = money ? "dollars as a plain number" : "a number";
    cli_flag(id, flag);
    if (money && meant.foreign)
        return cli_usage(command, "%s takes %s, not \"%s\"; prices here are in US dollars: say it in those", flag,
                         takes, value);
    char listed[160];
    if (!*meant.number && lists(o, flag, value, listed))
        return cli_usage(command, "%s takes one number, and may be given again: %s", flag, listed);
    if (*meant.binary && o->kind == CLI_WHOLE)
        return cli_usage(command, "%s takes %s, not \"%s\"; did you mean %s, or %s?", flag, takes, value, meant.binary,
                         meant.number);
    if (*meant.number && !meant.foreign)
        return cli_usage(command, "%s takes %s, not \"%s\"; did you mean %s?", flag, takes, value, meant.number);
    const int several = cli_several_numbers(command, id, flag, value);
    return several ? several : cli_usage(command, "%s takes %s, not \"%s\"", flag, takes, value);
}

static int check_value(const cli_command *command, cli_option_id id, const char *value)
{
    const cli_option *o = &cli_options[id];
    char flag[48];
    double number;
    if ((o->kind == CLI_WHOLE || o->kind == CLI_REAL) && !ft__number_parse(value, &number))
        return not_a_number(command, id, value);
    if ((o->kind == CLI_FILE || o->kind == CLI_FOLDER) && !*value)
        return cli_usage(command, "%s needs the name of a %s", cli_flag(id, flag),
                         o->kind == CLI_FILE ? "file" : "folder");
    if ((o->kind == CLI_FILE || o->kind == CLI_FOLDER) && o->group == CLI_OUTPUT && !strcmp(value, "-"))
        return cli_usage(command, "%s - would write a file of that name: use /dev/stdout to print, ./- for the file",
                         cli_flag(id, flag));
    if (o->kind == CLI_CHOICE && !cli_option_asks(o)) return check_choice(command, o, value);
    if (o->kind == CLI_SHARE) {
        size_t length = strlen(value), percent = length && value[length - 1] == '%';
        char share[32] = "";
        if (length - percent < sizeof share) memcpy(share, value, length - percent);
        if (!ft__number_parse(share, &number))
            return cli_usage(command, "%s takes a share, as 4%% or 0.04; got \"%.30s\"", cli_flag(id, flag), value);
    }
    return 0;
}

static int missing_value(const cli_command *command, cli_option_id id)
{
    char flag[48], room[CLI_ARGUMENT_ROOM];
    return cli_usage(command, "%s needs a value: %s", cli_flag(id, flag), cli_argument(&cli_options[id], room));
}

/* `value` NULL: take the next argument. Moves *at past what it used. */
static int take(cli_args *args, int id, bool off, const char *value, int argc, char **argv, int *at)
{
    if (id == OPT_ONE_GPU || id == OPT_SEVERAL_GPUS) id = OPT_GPU; /* the same with another word of help */
    const cli_option *o = &cli_options[id];
    struct cli_given *given = &args->given[args->given_count];
    if (o->kind == CLI_SWITCH) {
        if (value) return cli_usage(args->command, "--%s takes no value", o->name);
        value = off ? "false" : NULL;
    } else {
        if (!value) {
            if (*at + 1 >= argc || !strncmp(argv[*at + 1], "--", 2))
                return missing_value(args->command, (cli_option_id)id);
            value = argv[++*at];
        }
        int status = check_value(args->command, (cli_option_id)id, value);
        if (status) return status;
    }
    given->option = (cli_option_id)id;
    given->value = value;
    args->given_count++;
    return 0;
}

static int take_long(cli_args *args, int argc, char **argv, int *at)
{
    char name[64];
    const char *typed = argv[*at] + 2, *equals = strchr(typed, '=');
    size_t length = equals ? (size_t)(equals - typed) : strlen(typed);
    if (length >= sizeof name) length = sizeof name - 1;
    for (size_t i = 0; i < length; i++) name[i] = typed[i] == '_' ? '-' : typed[i];
    name[length] = '\0';
    bool off;
    int id = find_long(args->command, name, &off);
    const char *next = *at + 1 < argc && argv[*at + 1][0] != '-' ? argv[*at + 1] : NULL;
    if (id < 0) return cli_unknown_option(args->command, name, equals ? equals + 1 : next);
    return take(args, id, off, equals ? equals + 1 : NULL, argc, argv, at);
}

/* "-tp 8" as vLLM has it, "-ngl 40": long names behind one dash. 0: none of them. */
static int one_dash(const cli_command *command, const char *typed, const char *value)
{
    char name[64];
    bool off;
    size_t length = strlen(typed);
    if (length < 2 || length >= sizeof name) return 0;
    for (size_t i = 0; i <= length; i++) name[i] = typed[i] == '_' ? '-' : typed[i];
    if (find_long(command, name, &off) >= 0)
        return cli_usage(command, "unknown option -%s; did you mean --%s?", typed, name);
    return cli_foreign_letters(command, typed, value);
}

static int take_letters(cli_args *args, int argc, char **argv, int *at)
{
    const char *next = *at + 1 < argc && argv[*at + 1][0] != '-' ? argv[*at + 1] : NULL;
    int long_one = one_dash(args->command, argv[*at] + 1, next);
    if (long_one) return long_one;
    for (const char *letter = argv[*at] + 1; *letter; letter++) {
        int id = find_letter(args->command, *letter, letter + 1, *at + 1 < argc ? argv[*at + 1] : NULL);
        if (id < 0) return cli_usage(args->command, "unknown option -%c", *letter);
        bool is_switch = cli_options[id].kind == CLI_SWITCH;
        int status = take(args, id, false, !is_switch && letter[1] ? letter + 1 : NULL, argc, argv, at);
        if (status || !is_switch) return status;
    }
    return 0;
}

/* "-" in place of a file is standard input, as elsewhere; `batch` reads it itself. */
static const char *operand_of(const cli_command *command, const char *argument)
{
    static const unsigned of_files = CLI_TRAIN | CLI_INFER | CLI_SERVE | CLI_SCALE | CLI_PLANS | CLI_CHOOSE |
                                     CLI_COMPARE | CLI_TRACE | CLI_GPUS;
    return command->bit & of_files && !strcmp(argument, "-") ? "/dev/stdin" : argument;
}

int cli_parse(const cli_command *command, int argc, char **argv, cli_args *out)
{
    memset(out, 0, sizeof *out);
    out->command = command;
    /* -abc is three options in one argument, so arguments do not bound them; characters do. */
    size_t most = 1 + CLI_CONFIG_MOST; /* and what the user's settings add */
    for (int i = 0; i < argc; i++) most += strlen(argv[i]) + 1;
    out->given = calloc(most, sizeof *out->given);
    out->operands = calloc((size_t)argc + 1, sizeof *out->operands);
    if (!out->given || !out->operands) return cli_complain(FT_E_MEMORY, "out of memory");
    bool options = true;
    int status = 0;
    for (int at = 0; at < argc && !status; at++) {
        const char *argument = argv[at];
        if (options && !strcmp(argument, "--"))
            options = false;
        else if (options && !strncmp(argument, "--", 2))
            status = take_long(out, argc, argv, &at);
        else if (options && argument[0] == '-' && argument[1])
            status = take_letters(out, argc, argv, &at);
        else
            out->operands[out->operand_count++] = operand_of(command, argument);
    }
    if (status || cli_has(out, OPT_HELP) || cli_has(out, OPT_VERSION)) return status;
    if (out->operand_count < command->least)
        return cli_usage(command, "\"%s\" needs %s", command->name, command->operands);
    if (command->most >= 0 && out->operand_count > command->most)
        return cli_usage(command, "\"%s\" has no use for \"%s\"", command->name, out->operands[command->most]);
    return 0;
}

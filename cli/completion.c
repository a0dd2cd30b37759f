/* completion.c: completion for bash, zsh and fish, from the option table.
 *
 * What can stand behind an option follows from its kind: a GPU is one of the catalogue or a file, a choice its words,
 * a number nothing the shell could guess. Names are written into the scripts when they are made, so that completing
 * starts no program.
 */
#include <string.h>

#include "commands.h"
#include "generate.h"
#include "report/json/schema.h"
#include "report/text/models_screen.h"
#include "request/keys.h"
#include "request/request.h"
#include "study/catalogue.h"
#include "terminal.h"

static void add_gpus(ft_text *out, const char *between)
{
    for (size_t i = 0; ft__gpu_name(i); i++) ft__text_addf(out, "%s%s", i ? between : "", ft__gpu_name(i));
}

static void add_models(ft_text *out, const char *between)
{
    for (size_t i = 0; i < ft__model_count(); i++) ft__text_addf(out, "%s%s", i ? between : "", ft__model_at(i)->name);
}

static void add_list(ft_text *out, const char *const *words, size_t count, const char *between)
{
    for (size_t i = 0; i < count; i++) ft__text_addf(out, "%s%s", i ? between : "", words[i]);
}

/* The words that complete a command's operand, by what help calls it; a model or a GPU may also be a file. */
static void add_operands(ft_text *out, const cli_command *c, const char *between)
{
    if (strstr(c->operands, "MODEL") || c->bit == CLI_MODELS) add_models(out, between);
    size_t count = 0;
    const char *const *names = c->bit == CLI_KERNEL ? ft__request_op_names(&count) : ft__request_exchange_names(&count);
    if (c->bit & (CLI_KERNEL | CLI_EXCHANGE)) add_list(out, names, count, between);
    if (c->bit == CLI_GPUS) add_gpus(out, between);
    const ft_key_row *task = &ft__keys[FT_KEY_ID_TASK];
    if (c->bit == CLI_SCHEMA) add_list(out, task->words, task->word_count, between);
    for (int i = 0; c->bit == CLI_HELP && i < cli_command_count; i++)
        ft__text_addf(out, "%s%s", i ? between : "", cli_commands[i].name);
}

static bool operand_may_be_file(const cli_command *c)
{
    return strstr(c->operands, "FILE") || strstr(c->operands, "MODEL") || c->bit == CLI_MODELS || c->bit == CLI_GPUS;
}

static void add_dtypes(ft_text *out, const char *between)
{
    for (int d = 0; d < FT_DTYPE_COUNT; d++) ft__text_addf(out, "%s%s", d ? between : "", ft_dtype_name((ft_dtype)d));
}

static void add_choices(ft_text *out, const cli_option *o, const char *between)
{
    char room[CLI_ARGUMENT_ROOM];
    for (const char *at = cli_argument(o, room); *at; at++) {
        if (*at == '|')
            ft__text_add(out, between);
        else
            ft__text_add_n(out, at, 1);
    }
}

/* The words that complete an option's value; nothing for numbers and free text. */
static void add_values(ft_text *out, const cli_option *o, const char *between)
{
    if (o->kind == CLI_GPU) add_gpus(out, between);
    if (o->kind == CLI_DTYPE) add_dtypes(out, between);
    if (o->kind == CLI_CHOICE) add_choices(out, o, between);
    if (o->kind == CLI_FILE && strstr(o->argument, "roofline")) ft__text_addf(out, "roofline%slinear", between);
}

static bool takes_files(const cli_option *o)
{
    return o->kind == CLI_FILE || o->kind == CLI_FOLDER || o->kind == CLI_GPU;
}

static bool shown(const cli_option *o, unsigned command) { return cli_option_shown(o) && o->commands & command; }

static bool same_spelling_before(int option)
{
    for (int i = 0; i < option; i++)
        if (!strcmp(cli_options[i].name, cli_options[option].name) && cli_options[i].kind == cli_options[option].kind)
            return true;
    return false;
}

/* -- bash -------------------------------------------------------------------------------------- */

static void add_bash_flags(ft_text *out, const cli_option *o)
{
    if (o->letter && o->letter != 'h') ft__text_addf(out, "-%c|", o->letter);
    ft__text_addf(out, "--%s", o->name);
}

void cli_add_bash(ft_text *out)
{
    ft__text_add(
        out, "# bash completion for foretell; made by foretell --generate bash\n"
             "_foretell()\n{\n"
             "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]}\n"
             "    COMPREPLY=()\n"
             "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n        COMPREPLY=($(compgen -W \"");
    for (int i = 0; i < cli_command_count; i++) ft__text_addf(out, "%s ", cli_commands[i].name);
    ft__text_add(out, "--help --version\" -- \"$word\"))\n        return\n    fi\n    case $before in\n");
    for (int i = 0; i < OPT_COUNT; i++) {
        const cli_option *o = &cli_options[i];
        if (o->kind == CLI_SWITCH || !cli_option_shown(o) || same_spelling_before(i)) continue;
        ft__text_add(out, "        ");
        add_bash_flags(out, o);
        ft__text_add(out, ")");
        ft_text words = {0};
        add_values(&words, o, " ");
        if (words.length) ft__text_addf(out, " COMPREPLY=($(compgen -W \"%s\" -- \"$word\"));", words.at);
        if (o->kind == CLI_FOLDER)
            ft__text_add(out, " COMPREPLY+=($(compgen -d -- \"$word\"));");
        else if (takes_files(o))
            ft__text_add(out, " COMPREPLY+=($(compgen -f -- \"$word\"));");
        ft__text_add(out, " return ;;\n");
        ft__text_free(&words);
    }
    ft__text_add(out, "    esac\n    case $command in\n");
    for (int c = 0; c < cli_command_count; c++) {
        ft__text_addf(out, "        %s) COMPREPLY=($(compgen -W \"", cli_commands[c].name);
        add_operands(out, &cli_commands[c], " ");
        for (int i = 0; i < OPT_COUNT; i++)
            if (shown(&cli_options[i], cli_commands[c].bit))
                ft__text_addf(out, " -%s%s", strlen(cli_options[i].name) > 1 ? "-" : "", cli_options[i].name);
        ft__text_add(out, "\" -- \"$word\"))");
        if (operand_may_be_file(&cli_commands[c])) ft__text_add(out, "; COMPREPLY+=($(compgen -f -- \"$word\"))");
        ft__text_add(out, " ;;\n");
    }
    ft__text_add(out, "    esac\n}\ncomplete -F _foretell foretell\n");
}

/* -- zsh --------------------------------------------------------------------------------------- */

/* Inside '...[help]': brackets, quotes and colons have a meaning there. */
static void add_zsh_text(ft_text *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '\'')
            ft__text_add(out, "'\\''");
        else if (strchr("[]:\\", *text))
            ft__text_addf(out, "\\%c", *text);
        else
            ft__text_add_n(out, text, 1);
    }
}

static void add_zsh_spec(ft_text *out, const cli_option *o, const char *flag)
{
    ft__text_addf(out, " \\\n            '*%s[", flag);
    add_zsh_text(out, o->help);
    ft__text_add(out, "]");
    if (o->kind != CLI_SWITCH) {
        ft__text_addf(out, ":%s:", o->name);
        ft_text words = {0};
        add_values(&words, o, " ");
        if (o->kind == CLI_FOLDER)
            ft__text_add(out, "_files -/");
        else if (words.length && !takes_files(o))
            ft__text_addf(out, "(%s)", words.at);
        else if (words.length)
            ft__text_addf(out, "{compadd %s; _files}", words.at);
        else if (takes_files(o))
            ft__text_add(out, "_files");
        ft__text_free(&words);
    }
    ft__text_add(out, "'");
}

static void add_zsh_operand(ft_text *out, const cli_command *c)
{
    bool file = operand_may_be_file(c);
    ft_text words = {0};
    if (!c->operands[0]) return;
    ft__text_addf(out, " \\\n            '%s:", c->most == 1 ? "1" : "*");
    for (const char *at = c->operands; *at; at++)
        if (*at >= 'A' && *at <= 'Z') ft__text_addf(out, "%c", *at - 'A' + 'a');
    add_operands(&words, c, " ");
    if (c->bit == CLI_HELP)
        ft__text_add(out, ":{_describe command commands}'");
    else if (words.length)
        ft__text_addf(out, file ? ":{compadd %s; _files}'" : ":(%s)'", words.at);
    else
        ft__text_add(out, ":_files'");
    ft__text_free(&words);
}

void cli_add_zsh(ft_text *out)
{
    ft__text_add(out, "#compdef foretell\n# made by foretell --generate zsh\n_foretell()\n{\n    local -a commands\n   "
                      " commands=(\n");
    for (int i = 0; i < cli_command_count; i++) {
        ft__text_addf(out, "        '%s:", cli_commands[i].name);
        add_zsh_text(out, cli_commands[i].summary);
        ft__text_add(out, "'\n");
    }
    ft__text_add(out,
                 "    )\n    if (( CURRENT == 2 )); then\n        _describe command commands\n        return\n    fi\n"
                 "    local command=$words[2]\n    shift words\n    (( CURRENT-- ))\n    case $command in\n");
    for (int c = 0; c < cli_command_count; c++) {
        ft__text_addf(out, "        %s) _arguments -s", cli_commands[c].name);
        for (int i = 0; i < OPT_COUNT; i++) {
            const cli_option *o = &cli_options[i];
            if (!shown(o, cli_commands[c].bit)) continue;
            char flag[64] = {'-', o->letter, '\0'};
            if (o->letter && o->letter != 'h') add_zsh_spec(out, o, flag);
            if (strlen(o->name) == 1 && o->letter != 'h') continue;
            size_t length = strlen(o->name);
            memcpy(flag, "--", 2);
            memcpy(flag + 2, o->name, length + 1);
            add_zsh_spec(out, o, flag);
        }
        add_zsh_operand(out, &cli_commands[c]);
        ft__text_add(out, " ;;\n");
    }
    ft__text_add(out, "    esac\n}\n_foretell \"$@\"\n");
}

/* -- fish -------------------------------------------------------------------------------------- */

static void add_fish_text(ft_text *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '\'' || *text == '\\') ft__text_add(out, "\\");
        ft__text_add_n(out, text, 1);
    }
}

void cli_add_fish(ft_text *out)
{
    ft__text_add(out, "# fish completion for foretell; made by foretell --generate fish\ncomplete -c foretell -f\n");
    for (int c = 0; c < cli_command_count; c++) {
        const cli_command *command = &cli_commands[c];
        ft__text_addf(out, "complete -c foretell -n __fish_use_subcommand -a %s -d '", command->name);
        add_fish_text(out, command->summary);
        ft__text_add(out, "'\n");
        ft_text words = {0};
        add_operands(&words, command, " ");
        if (words.length || operand_may_be_file(command)) {
            ft__text_addf(out, "complete -c foretell -n '__fish_seen_subcommand_from %s'%s", command->name,
                          operand_may_be_file(command) ? " -F" : "");
            if (words.length) ft__text_addf(out, " -a '%s'", words.at);
            ft__text_add(out, "\n");
        }
        ft__text_free(&words);
        for (int i = 0; i < OPT_COUNT; i++) {
            const cli_option *o = &cli_options[i];
            if (!shown(o, command->bit)) continue;
            ft__text_addf(out, "complete -c foretell -n '__fish_seen_subcommand_from %s'", command->name);
            if (o->letter && o->letter != 'h') ft__text_addf(out, " -s %c", o->letter);
            if (strlen(o->name) > 1)
                ft__text_addf(out, " -l %s", o->name);
            else if (o->letter == 'h')
                ft__text_addf(out, " -l %s", o->name);
            if (o->kind != CLI_SWITCH) ft__text_add(out, takes_files(o) ? " -r -F" : " -x");
            add_values(&words, o, " ");
            if (words.length) ft__text_addf(out, " -a '%s'", words.at);
            ft__text_free(&words);
            ft__text_add(out, " -d '");
            add_fish_text(out, o->help);
            ft__text_add(out, "'\n");
        }
    }
}

static void add_schema(ft_text *out)
{
    ft_error err;
    ft__schema(out, NULL, &err);
}

int cli_generate(const char *what)
{
    static const struct {
        const char *name;
        void (*add)(ft_text *out);
    } texts[] = {{"man", cli_add_manual}, {"bash", cli_add_bash}, {"zsh", cli_add_zsh},
                 {"fish", cli_add_fish},  {"keys", cli_add_keys}, {"schema", add_schema}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (!strcmp(texts[i].name, what)) {
            ft_text out = {0};
            texts[i].add(&out);
            return cli_print(&out);
        }
    return cli_usage(NULL, "--generate makes man, bash, zsh, fish or keys, not \"%s\"", what);
}

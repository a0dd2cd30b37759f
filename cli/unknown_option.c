/* unknown_option.c: an option that the command does not have, met with ours where it is another program's, where
 * another command has it, or where it is nearly one of ours. */
#include "unknown_option.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "request/foreign.h"
#include "terminal.h"

/* A flag of another program's: "zero-stage" is --zero, "fsdp" --zero 3. Keys of requests are the library's to know. */
static const ft_foreign *flag_of(const char *theirs)
{
    for (size_t i = 0; i < ft__foreign_count; i++)
        if (!strcmp(theirs, ft__foreign[i].theirs) && ft__keys[ft__foreign[i].key].flag) return &ft__foreign[i];
    return NULL;
}

/* What other software calls it; with `slips`, what is nearly that. */
static const ft_foreign *elsewhere(const char *typed, bool slips)
{
    const char *theirs[256];
    char said[64];
    size_t count = 0;
    snprintf(said, sizeof said, "%s", typed);
    for (char *at = said; *at; at++)
        if (*at == '-') *at = '_';
    if (slips && !strncmp(said, "no_", 3)) return NULL; /* nearly the opposite */
    for (size_t i = 0; i < ft__foreign_count && count < sizeof theirs / sizeof *theirs; i++)
        theirs[count++] = ft__foreign[i].theirs;
    const char *meant = slips ? ft__nearest(said, theirs, count) : said;
    return meant ? flag_of(meant) : NULL;
}

/* Ours, where this command has it. */
static const cli_option *option_of(const cli_command *command, const ft_foreign *f)
{
    for (int i = 0; f && i < OPT_COUNT; i++)
        if (cli_options[i].commands & command->bit && cli_options[i].key && cli_options[i].group != CLI_ALIAS &&
            !strcmp(cli_options[i].name, ft__keys[f->key].flag))
            return &cli_options[i];
    return NULL;
}

/* The value that was typed as ours takes it; NULL: it does not, or means something else there. */
static const char *as_ours(const cli_option *o, const ft_foreign *f, const char *value, char room[32])
{
    double number;
    const char *beside = "";
    if (f->value || !value || o->kind == CLI_SWITCH || strlen(value) > 20) return f->value;
    if (o->kind == CLI_WHOLE || o->kind == CLI_REAL) return ft__number_parse(value, &number) ? value : NULL;
    if (o->key->type != FT_KEY_WORD) return NULL;
    if (!strcmp(f->theirs, "mixed_precision")) { /* of accelerate: autocast over fp32 weights */
        snprintf(room, 32, "amp_%.20s", value);
        value = room;
    }
    for (size_t i = 0; i < o->key->word_count; i++)
        if (!strcmp(o->key->words[i], value)) return value;
    value = ft__foreign_word(o->key->key, value, o->key->words, o->key->word_count, &beside);
    return *beside ? NULL : value;
}

static int say_ours(const cli_command *command, const char *dashes, const char *typed, const cli_option *o,
                    const ft_foreign *f, const char *value)
{
    char room[32];
    const char *meaning = ft__foreign_meaning(f), *ours = meaning ? NULL : as_ours(o, f, value, room);
    return cli_usage(command, "unknown option %s%s; here it is --%s%s%s%s%s", dashes, typed, o->name, ours ? " " : "",
                     ours ? ours : "", meaning ? ": " : "", meaning ? meaning : "");
}

/* People may be told of it: it is shown, or the other name of one that is. */
static bool may_be_named(const cli_option *o) { return o->group == CLI_ALIAS || cli_option_shown(o); }

/* Where a key of a request is said to a command that reads requests from files. */
static const char *instead(const cli_command *command, const char *name)
{
    if (!strcmp(name, "gpus") && command->bit & (CLI_SERVE | CLI_INFER))
        return command->bit == CLI_SERVE ? "; here ranks and engines say how many: --tp, --pp, --dp, --replicas"
                                         : "; here ranks say how many: --tp, --ep, --dp";
    if (!strcmp(name, "gpus") && command->bit == CLI_EXCHANGE) return "; here it is --ranks";
    return command->bit == CLI_COMPARE
               ? "; each of its files says its own, as foretell train ... --json > FILE writes them"
           : command->bit == CLI_BATCH ? "; each of its requests says its own"
                                       : "";
}

/* "--model gpt2", as most programs have it. */
static bool is_operand(const cli_command *command, const char *typed)
{
    char said[64];
    snprintf(said, sizeof said, "%s", typed);
    for (char *at = said; *at; at++)
        if (*at == '-') *at = '_';
    const bool model = !strcmp(said, "model") || ft__foreign_key(said) == FT_KEY_ID_MODEL;
    return model && command->operands && !strcmp(command->operands, "MODEL");
}

int cli_unknown_option(const cli_command *command, const char *typed, const char *value)
{
    if (is_operand(command, typed))
        return cli_usage(command, "unknown option --%s; the model stands by itself: foretell %s MODEL", typed,
                         command->name);
    const char *names[OPT_COUNT], *why = ft__foreign_unasked(typed);
    size_t count = 0;
    for (int i = 0; i < OPT_COUNT; i++)
        if (cli_options[i].commands & command->bit && may_be_named(&cli_options[i]) && strlen(cli_options[i].name) > 1)
            names[count++] = cli_options[i].name;
    for (int i = 0; i < OPT_COUNT && !why; i++) {
        if (strcmp(cli_options[i].name, typed) != 0 || !may_be_named(&cli_options[i])) continue;
        for (int c = 0; c < cli_command_count; c++)
            if (cli_options[i].commands & cli_commands[c].bit)
                return cli_usage(command, "--%s is an option of \"%s\", not of \"%s\"%s", typed, cli_commands[c].name,
                                 command->name,
                                 cli_option_asks(&cli_options[i]) ? instead(command, cli_options[i].name) : "");
    }
    const char *nearest = ft__nearest(typed, names, count);
    const ft_foreign *theirs = elsewhere(typed, false);
    const cli_option *ours = option_of(command, theirs);
    if (ours) return say_ours(command, "--", typed, ours, theirs, value);
    if (why) return cli_usage(command, "unknown option --%s; %s", typed, why);
    if (theirs && *instead(command, ft__keys[theirs->key].flag))
        return cli_usage(command, "unknown option --%s%s", typed, instead(command, ft__keys[theirs->key].flag));
    if (!theirs && !nearest) ours = option_of(command, theirs = elsewhere(typed, true));
    if (ours) return say_ours(command, "--", typed, ours, theirs, value);
    if (nearest) return cli_usage(command, "unknown option --%s; did you mean --%s?", typed, nearest);
    return cli_usage(command, "unknown option --%s", typed);
}

int cli_foreign_letters(const cli_command *command, const char *typed, const char *value)
{
    const ft_foreign *theirs = elsewhere(typed, false);
    const cli_option *ours = option_of(command, theirs);
    return ours ? say_ours(command, "-", typed, ours, theirs, value) : 0;
}

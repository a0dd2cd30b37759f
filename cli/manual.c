/* manual.c: the man page, from the option table. foretell --generate man | man -l - */
#include <string.h>

#include "commands.h"
#include "generate.h"
#include "terminal.h"

/*
 * roff reads a leading dot or quote as a request, a backslash as an escape and a hyphen as a dash. It breaks no word,
 * and a list of formats is a word longer than the page is wide: a line may end behind each of its choices.
 */
static void add_roff(ft_text *out, const char *text)
{
    bool line_start = true;
    for (; *text; text++) {
        if (line_start && (*text == '.' || *text == '\'')) ft__text_add(out, "\\&");
        line_start = *text == '\n';
        if (*text == '\\')
            ft__text_add(out, "\\e");
        else if (*text == '-')
            ft__text_add(out, "\\-");
        else
            ft__text_add_n(out, text, 1);
        if (*text == '|') ft__text_add(out, "\\:");
    }
}

static void add_option(ft_text *out, const cli_option *o)
{
    bool single = strlen(o->name) == 1, negatable = o->kind == CLI_SWITCH && cli_option_asks(o);
    ft__text_add(out, ".TP\n");
    if (o->letter) ft__text_addf(out, "\\fB\\-%c\\fR", o->letter);
    if (!single) {
        ft__text_add(out, o->letter ? ", \\fB\\-\\-" : "\\fB\\-\\-");
        add_roff(out, negatable ? "[no-]" : "");
        add_roff(out, o->name);
        ft__text_add(out, "\\fR");
    }
    char room[CLI_ARGUMENT_ROOM], usual[32];
    const char *argument = cli_argument(o, room), *standard = cli_standard(o, usual);
    if (argument) {
        ft__text_add(out, " \\fI");
        add_roff(out, argument);
        ft__text_add(out, "\\fR");
    }
    ft__text_add(out, "\n");
    add_roff(out, o->help);
    if (standard) {
        ft__text_add(out, " [");
        add_roff(out, standard);
        ft__text_add(out, "]");
    }
    ft__text_add(out, "\n");
}

static void add_command(ft_text *out, const cli_command *c)
{
    ft__text_addf(out, ".SS foretell %s ", c->name);
    add_roff(out, c->operands);
    ft__text_add(out, "\n");
    add_roff(out, c->description);
    ft__text_add(out, "\n");
    for (int group = 0; group < CLI_GROUP_COUNT; group++)
        for (int i = 0; i < OPT_COUNT; i++) {
            const cli_option *o = &cli_options[i];
            bool common = o->commands == CLI_EVERY;
            if ((int)o->group == group && cli_option_shown(o) && o->commands & c->bit && !common) add_option(out, o);
        }
}

void cli_add_manual(ft_text *out)
{
    ft__text_add(out, ".\\\" Made by foretell --generate man from the option table.\n");
    ft__text_add(
        out,
        ".TH FORETELL 1 \"\" \"foretell " FT_VERSION "\" \"User Commands\"\n"
        ".ad l\n" /* a line of choices has no space that could grow */
        ".SH NAME\nforetell \\- forecasts how fast deep\\-learning models and kernels run on GPUs\n"
        ".SH SYNOPSIS\n.B foretell\n\\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n"
        ".SH DESCRIPTION\n"
        "Foretell forecasts the time and the memory of a deep\\-learning model, or of one operator, on a GPU that you\n"
        "may not own: a value, an interval that should hold the truth nine times in ten, and what made it. It\n"
        "needs no GPU.\n"
        ".SH COMMANDS\n");
    for (int i = 0; i < cli_command_count; i++) add_command(out, &cli_commands[i]);
    ft__text_add(out, ".SH COMMON OPTIONS\n");
    for (int i = 0; i < OPT_COUNT; i++)
        if (cli_options[i].commands == CLI_EVERY) add_option(out, &cli_options[i]);
    ft__text_add(out, ".SH EXIT STATUS\n"
                      ".TP\n.B 0\nAnswered.\n"
                      ".TP\n.B 1\nAnswered, and the answer is no: it does not fit, an error exceeds its budget.\n"
                      ".TP\n.B 2\nWrong usage.\n"
                      ".TP\n.B 3\nBad input; the message says which file, line and column, and what was expected.\n"
                      ".TP\n.B 4\nA bug in Foretell, or out of memory.\n"
                      ".SH ENVIRONMENT\n"
                      ".TP\n.B FORETELL_DATA\nThe folder of measurements for \\fBfit\\fR and \\fBvalidate\\fR, where "
                      "\\fB\\-\\-data\\fR is not given.\n"
                      ".TP\n.B NO_COLOR\nNo colour, when set and not empty.\n"
                      ".SH EXAMPLES\n");
    for (int i = 0; i < cli_command_count; i++)
        for (const char *const *at = cli_commands[i].examples; at && at[0]; at += 2) {
            ft__text_add(out, ".TP\n.B ");
            add_roff(out, at[0]);
            ft__text_add(out, "\n");
            add_roff(out, at[1]);
            ft__text_add(out, "\n");
        }
}

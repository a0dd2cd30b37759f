/* help.c: --help, from the option table. */
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "report/text/lines.h"
#include "terminal.h"

enum { INDENT = 2, HELP_COLUMN = 30, MOST_WIDTH = 110 };

/* Words of `text` between `column` and `width`; the first line begins where the cursor, `at`, stands. */
static void add_wrapped(ft_text *out, const char *text, int at, int column, int width)
{
    if (at >= column && at > 0) {
        ft__text_add(out, "\n");
        at = 0;
    }
    ft__text_pad(out, column - at);
    at = column;
    bool first = true;
    while (*text) {
        size_t length = strcspn(text, " ");
        if (!first && at + 1 + (int)length > width) {
            ft__text_add(out, "\n");
            ft__text_pad(out, column);
            at = column;
            first = true;
        }
        if (!first) {
            ft__text_add(out, " ");
            at++;
        }
        ft__text_add_n(out, text, length);
        at += (int)length;
        first = false;
        text += length;
        while (*text == ' ') text++;
    }
    ft__text_add(out, "\n");
}

/* "-m N", "--[no-]causal", "-g, --gpu GPU" */
static void add_flag(ft_text *out, const cli_option *o)
{
    bool single = strlen(o->name) == 1, negatable = o->kind == CLI_SWITCH && cli_option_asks(o);
    if (o->letter) ft__text_addf(out, "-%c", o->letter);
    if (!single) ft__text_addf(out, "%s--%s%s", o->letter ? ", " : "    ", negatable ? "[no-]" : "", o->name);
    char room[CLI_ARGUMENT_ROOM];
    const char *argument = cli_argument(o, room);
    if (argument) ft__text_addf(out, " %s", argument);
}

static void add_option(ft_text *out, const cli_option *o, int width)
{
    ft_text flag = {0}, help = {0};
    add_flag(&flag, o);
    ft__text_add(&help, o->help);
    char room[32];
    const char *standard = cli_standard(o, room);
    if (standard) ft__text_addf(&help, " [%s]", standard);
    ft__text_pad(out, INDENT);
    if (flag.at) ft__text_add(out, flag.at);
    add_wrapped(out, help.at ? help.at : "", INDENT + ft__text_width(flag.at ? flag.at : ""), HELP_COLUMN, width);
    ft__text_drop(&flag, out);
    ft__text_drop(&help, out);
}

static void add_options(ft_text *out, const ft_style *style, unsigned command, int width)
{
    for (int group = 0; group < CLI_GROUP_COUNT; group++) {
        bool any = false;
        for (int i = 0; i < OPT_COUNT; i++) {
            const cli_option *o = &cli_options[i];
            if (!(o->commands & command) || (int)o->group != group || !cli_option_shown(o)) continue;
            if (!any) ft__heading(out, style, cli_group_names[group]);
            any = true;
            add_option(out, o, width);
        }
    }
}

static void add_command_help(ft_text *out, const ft_style *style, const cli_command *command, int width)
{
    ft__ink(out, style, FT_INK_BOLD);
    ft__text_addf(out, "foretell %s", command->name);
    ft__ink_end(out, style);
    ft__text_addf(out, "%s%s [options]\n\n", command->operands[0] ? " " : "", command->operands);
    add_wrapped(out, command->description, 0, 0, width);
    add_options(out, style, command->bit, width);
    if (!command->examples) return;
    ft__heading(out, style, "Examples");
    for (const char *const *at = command->examples; at[0]; at += 2)
        ft__text_addf(out, "  %s\n      %s\n", at[0], at[1]);
}

static void add_program_help(ft_text *out, const ft_style *style, int width)
{
    ft__ink(out, style, FT_INK_BOLD);
    ft__text_add(out, "foretell");
    ft__ink_end(out, style);
    ft__text_add(
        out,
        " COMMAND [options]\n\nForecasts how fast deep-learning models and kernels run on GPUs, with an error bar.\n");
    ft__heading(out, style, "Commands");
    for (int i = 0; i < cli_command_count; i++) {
        const cli_command *c = &cli_commands[i];
        ft_text name = {0};
        ft__text_addf(&name, "%s %s", c->name, c->operands);
        ft__text_pad(out, INDENT);
        if (name.at) ft__text_add(out, name.at);
        add_wrapped(out, c->summary, INDENT + ft__text_width(name.at ? name.at : ""), 22, width);
        ft__text_drop(&name, out);
    }
    ft__heading(out, style, "Exit status");
    ft__text_add(out,
                 "  0 answered   1 answered, and the answer is no   2 wrong usage   3 bad input   4 a bug of ours\n");
    ft__heading(out, style, "Try");
    ft__text_addf(out, "  %s\n", cli_commands[0].examples[0]);
    ft__text_add(out, "  foretell help kernel\n");
}

int cli_print_help(const cli_command *command, bool to_stderr)
{
    ft_text out = {0};
    ft_style style = cli_style(NULL);
    int width = style.width < MOST_WIDTH ? style.width : MOST_WIDTH;
    if (width < 60) width = 60; /* narrower ones are folded */
    if (command)
        add_command_help(&out, &style, command, width);
    else
        add_program_help(&out, &style, width);
    if (!to_stderr) return cli_show(&out, &style);
    if (out.at) fputs(out.at, stderr);
    ft__text_free(&out);
    return 0;
}

/* help.c: --help, from the option table. */
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "report/text/lines.h"
#include "terminal.h"

enum { INDENT = 2, HELP_COLUMN = 30, EXAMPLE_COLUMN = 6, MOST_WIDTH = 100 };

/* Bytes of the word at `text` that go on a line with `left` columns: all of it, unless it is a list of choices longer
 * than `longest`, a line of its own; of such a list as many choices as fit, at least one. */
static size_t word_part(const char *text, int left, int longest)
{
    size_t length = strcspn(text, " ");
    if ((int)length <= longest) return length;
    size_t part = strcspn(text, " |");
    while (part < length) {
        size_t next = part + 1 + strcspn(text + part + 1, " |"), end = next + (text[next] == '|');
        if ((int)end > left) return part + 1;
        part = next;
    }
    return length;
}

/* Words of `text` between `column` and `width`; the first line begins where the cursor, `at`, stands. A list of choices
 * that is longer than a line is broken behind its bars. */
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
        size_t length = word_part(text, width - at - !first, width - column);
        if (!first && at + 1 + (int)length > width) {
            ft__text_add(out, "\n");
            ft__text_pad(out, column);
            at = column;
            first = true;
            continue;
        }
        if (!first) {
            ft__text_add(out, " ");
            at++;
        }
        ft__text_add_n(out, text, length);
        at += (int)length;
        first = false;
        text += length;
        if (*text && *text != ' ') { /* behind a bar */
            ft__text_add(out, "\n");
            ft__text_pad(out, column);
            at = column;
            first = true;
        }
        while (*text == ' ') text++;
    }
    ft__text_add(out, "\n");
}

/* "-m N", "--[no-]causal", "-g, --gpu GPU"; one whose choices do not fit goes on in the lines below its first choice,
 * and ends its line. */
static void add_flag(ft_text *out, const cli_option *o, int width)
{
    bool single = strlen(o->name) == 1, negatable = o->kind == CLI_SWITCH && cli_option_asks(o);
    if (o->letter) ft__text_addf(out, "-%c", o->letter);
    if (!single) ft__text_addf(out, "%s--%s%s", o->letter ? ", " : "    ", negatable ? "[no-]" : "", o->name);
    char room[CLI_ARGUMENT_ROOM];
    const char *argument = cli_argument(o, room);
    if (!argument) return;
    int at = INDENT + ft__text_width(out->at ? out->at : "");
    if (at + 1 + ft__text_width(argument) > width)
        add_wrapped(out, argument, at, at + 1, width);
    else
        ft__text_addf(out, " %s", argument);
}

static void add_option(ft_text *out, const cli_option *o, int width)
{
    ft_text flag = {0}, help = {0};
    add_flag(&flag, o, width);
    ft__text_add(&help, o->help);
    char room[32];
    const char *standard = cli_standard(o, room);
    if (standard) ft__text_addf(&help, " [%s]", standard);
    ft__text_pad(out, INDENT);
    if (flag.at) ft__text_add(out, flag.at);
    bool ended = flag.at && strchr(flag.at, '\n');
    int at = ended ? 0 : INDENT + ft__text_width(flag.at ? flag.at : "");
    add_wrapped(out, help.at ? help.at : "", at, HELP_COLUMN, width);
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

/* A command as it is typed: a long one goes on behind a backslash, with an option that stays beside its value. */
static void add_example(ft_text *out, const char *command, int width)
{
    ft__text_pad(out, INDENT);
    int at = INDENT;
    while (*command) {
        const char *next = strstr(command + 1, " -");
        size_t length = next ? (size_t)(next - command) : strlen(command);
        if (at + (int)length + (next ? 2 : 0) > width && *command == ' ') {
            ft__text_add(out, " \\\n");
            ft__text_pad(out, EXAMPLE_COLUMN);
            at = EXAMPLE_COLUMN;
            command++;
            length--;
        }
        ft__text_add_n(out, command, length);
        at += (int)length;
        command += length;
    }
    ft__text_add(out, "\n");
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
    for (const char *const *at = command->examples; at[0]; at += 2) {
        add_example(out, at[0], width);
        add_wrapped(out, at[1], 0, EXAMPLE_COLUMN, width);
    }
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
    ft__text_add(out, "  0 answered   1 answered, and the answer is no   2 wrong usage   3 bad input   4 a bug in "
                      "Foretell\n");
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

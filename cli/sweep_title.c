/* sweep_title.c: what a sweep holds still, in words.
 *
 * Flags as given, and those defaults that decide a forecast; a curve without them cannot be read a week later.
 */
#include <string.h>

#include "ask.h"
#include "sweep.h"

/* Defaults worth a word. Others (recompute none, no window) are what one expects. */
static bool tells(const cli_option *o)
{
    static const char *const names[] = {"micro-batch-size", "dtype", "attention", "execution", "optimizer", "cache"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(o->name, names[i])) return o->standard != NULL;
    return false;
}

static void add(ft_text *out, const char *name, const char *value)
{
    ft__text_addf(out, "%s%s", out->length ? ", " : "", name);
    if (!value) return;
    ft__text_add(out, " ");
    ft__text_add_plain(out, value);
}

/* Is it given, under any of its names (-b, --batch)? */
static bool given_as(const cli_args *args, const char *key)
{
    for (int i = 0; i < args->given_count; i++) {
        char other[48];
        cli_ask_key(args->given[i].option, other);
        if (cli_option_asks(&cli_options[args->given[i].option]) && !strcmp(other, key)) return true;
    }
    return false;
}

void cli_sweep_fixed(ft_text *out, const cli_args *args, cli_option_id swept)
{
    char moving[48], key[48];
    cli_ask_key(swept, moving);
    bool batches = args->command->bit == CLI_INFER && swept != OPT_INFER_BATCHES;
    if (batches && !cli_has(args, OPT_INFER_BATCHES)) add(out, "batch", "1"); /* one cell, not the usual grid */
    for (int i = 0; i < OPT_COUNT; i++) {
        const cli_option *o = &cli_options[i];
        cli_option_id id = (cli_option_id)i;
        if (!(o->commands & args->command->bit) || o->group == CLI_OUTPUT || o->group == CLI_HIDDEN) continue;
        cli_ask_key(id, key);
        if (id == OPT_GPU || id == swept || !strcmp(key, moving)) continue;
        const char *value = cli_value(args, id);
        if (!cli_has(args, id)) {
            if (tells(o) && !given_as(args, key)) add(out, o->name, o->standard);
        } else if (o->kind == CLI_SWITCH) {
            ft__text_addf(out, "%s%s%s", out->length ? ", " : "", value ? "no " : "", o->name);
        } else {
            add(out, o->name, value);
        }
    }
}

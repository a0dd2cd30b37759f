/* sweep.c: which number of a command --sweep names, and the points that it takes. */
#include "sweep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ask.h"
#include "study/sweep.h"
#include "terminal.h"

static bool is_number(const cli_option *o) { return o->kind == CLI_WHOLE || o->kind == CLI_REAL; }

/* By its letter, as the flag is called, or as the key is in a request ("global_batch"). */
static bool named(cli_option_id id, const char *key)
{
    const cli_option *o = &cli_options[id];
    char asked[48];
    if (strlen(key) == 1 && o->letter == key[0]) return true;
    cli_ask_key(id, asked);
    if (!strcmp(key, asked)) return true;
    if (strlen(key) != strlen(o->name)) return false;
    for (size_t i = 0; key[i]; i++)
        if (key[i] != o->name[i] && !(key[i] == '_' && o->name[i] == '-')) return false;
    return true;
}

/* Numbers alone can be swept. */
static int find_option(const cli_command *command, const char *text, cli_sweep *s)
{
    const char *names[OPT_COUNT];
    char typed[sizeof s->key];
    size_t count = 0;
    for (int i = 0; i < OPT_COUNT; i++) {
        const cli_option *o = &cli_options[i];
        if (!(o->commands & command->bit) || !is_number(o)) continue;
        if (cli_option_shown(o) || o->group == CLI_ALIAS) names[count++] = o->name;
        if (!named((cli_option_id)i, s->key)) continue;
        s->option = (cli_option_id)i;
        if (o->kind == CLI_WHOLE && !s->whole)
            return cli_usage(command, "--%s takes whole numbers; --sweep %.100s has others", o->name, text);
        return 0;
    }
    snprintf(typed, sizeof typed, "%s", s->key);
    for (char *at = typed; *at; at++)
        if (*at == '_') *at = '-';
    const char *nearest = ft__nearest(typed, names, count);
    if (nearest)
        return cli_usage(command, "--sweep: \"%s\" has no number called %s; did you mean %s?", command->name, typed,
                         nearest);
    return cli_usage(command, "--sweep: \"%s\" has no number called %s, as %s are", command->name, typed,
                     command->bit == CLI_KERNEL ? "n or rows" : "seq or batch");
}

int cli_sweep_parse(const cli_args *args, size_t most, cli_sweep *out)
{
    const char *text = cli_value(args, OPT_SWEEP);
    ft_error err = {0};
    ft_range range;
    int given = 0;
    memset(out, 0, sizeof *out);
    for (int i = 0; i < args->given_count; i++) given += args->given[i].option == OPT_SWEEP;
    if (given > 1) return cli_usage(args->command, "--sweep was given %d times; it goes over one number", given);
    ft_status status = ft__range_read(text, most, &range, &err);
    strcpy(out->key, range.key);
    out->x = range.x;
    out->count = range.count;
    out->whole = range.whole;
    if (status == FT_E_MEMORY) return cli_fail(&err);
    if (status != FT_OK) return cli_usage(args->command, "--sweep %s", err.message);
    return find_option(args->command, text, out);
}

ft_key_id cli_sweep_key(const cli_sweep *sweep)
{
    const ft_key_row *key = cli_options[sweep->option].key;
    return key ? (ft_key_id)(key - ft__keys) : FT_KEY_COUNT;
}

void cli_sweep_free(cli_sweep *sweep)
{
    free(sweep->x);
    sweep->x = NULL;
}

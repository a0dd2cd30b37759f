/* sweep_title.c: what a sweep holds still, in words.
 *
 * Flags as given, and those defaults that decide a forecast; a curve without them cannot be read a week later.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ask.h"
#include "report/text/style.h"
#include "study/context.h"
#include "sweep.h"

/* Defaults worth a word. Others (recompute none, no window) are what one expects. */
static bool tells(const cli_option *o)
{
    static const char *const names[] = {"micro-batch-size", "dtype", "attention", "execution", "optimizer", "cache"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(o->name, names[i])) return true;
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

int64_t cli_sweep_own_batch(const cli_args *args, bool *fixed)
{
    ft_model_sheet sheet;
    ft_error err = {0};
    *fixed = false;
    if (!(args->command->bit & (CLI_TRAIN | CLI_INFER)) || !args->operand_count) return 0;
    ft_scratch *scratch = calloc(1, sizeof *scratch);
    if (!scratch) return 0;
    json_t *model = json_string(args->operands[0]);
    ft_status status = !model
                           ? FT_E_MEMORY
                           : ft__model_sheet_of(scratch, model, cli_value(args, OPT_READ_AS), &sheet, NULL, NULL, &err);
    ft__scratch_free(scratch);
    free(scratch);
    json_decref(model);
    if (status != FT_OK) return 0; /* the command itself says why */
    *fixed = sheet.arch.fixed_batch > 0;
    return *fixed ? sheet.arch.fixed_batch : sheet.arch.usual_batch;
}

void cli_sweep_fixed(ft_text *out, const cli_args *args, cli_option_id swept)
{
    char moving[48], key[48], own[32] = "";
    bool fixed;
    int64_t batch = cli_sweep_own_batch(args, &fixed);
    if (batch > 0) snprintf(own, sizeof own, "%lld", (long long)batch);
    cli_ask_key(swept, moving);
    bool batches = args->command->bit == CLI_INFER && swept != OPT_INFER_BATCHES;
    if (batches && !cli_has(args, OPT_INFER_BATCHES))
        add(out, "batch", fixed ? own : "1"); /* one cell, not the usual grid */
    for (int i = 0; i < OPT_COUNT; i++) {
        const cli_option *o = &cli_options[i];
        cli_option_id id = (cli_option_id)i;
        if (!(o->commands & args->command->bit) || o->group == CLI_OUTPUT || o->group == CLI_HIDDEN) continue;
        cli_ask_key(id, key);
        if (id == OPT_GPU || id == swept || !strcmp(key, moving)) continue;
        const char *value = cli_value(args, id);
        if (!cli_has(args, id)) {
            char room[32];
            const char *usual = !strcmp(key, "batch") && *own ? own : cli_standard(o, room);
            if (usual && tells(o) && !given_as(args, key)) add(out, o->name, usual);
        } else if (o->kind == CLI_SWITCH) {
            ft__text_addf(out, "%s%s%s", out->length ? ", " : "", value ? "no " : "", o->name);
        } else {
            add(out, o->name, value);
        }
    }
}

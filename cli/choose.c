/* choose.c: `foretell choose MODEL`: which GPUs a training run should rent, how many, and why not others. */
#include <stdlib.h>
#include <string.h>

#include "ask.h"
#include "commands.h"
#include "progress.h"
#include "report/json/choose_answer.h"
#include "report/json/fleet_answer.h"
#include "report/text/choose_screen.h"
#include "report/text/fleet_screen.h"
#include "terminal.h"

/* Choices of up to two seconds are over before a bar could be read. */
static void tell(void *progress, const char *next, double done)
{
    if (cli_progress_seconds(progress) > 2) cli_progress_report(progress, next, done);
}

static void watch(ft_choose_request *r, cli_progress *progress)
{
    cli_progress_begin(progress, "choosing");
    r->watcher = progress;
    if (cli_stderr_is_terminal()) r->progress = tell; /* nobody reads a bar in a file */
}

static int print(const cli_asker *a, const ft_chosen *c)
{
    ft_text out = {0};
    ft_style style = cli_style(a->args);
    if (a->json) {
        ft__answer_choose(&out, NULL, c);
        ft__text_add(&out, "\n");
    } else {
        if (c->warnings.length) cli_say_warnings(a->args, a->args->operands[0], c->warnings.at);
        if (!ft__screen_choose(&out, &style, a->args->operands[0], c)) out.failed = true;
    }
    int status = a->json ? cli_print(&out) : cli_show(&out, &style);
    return !status && c->best == c->count ? 1 : status;
}

/* Every --gpu, and names between commas in one. */
static int add_gpus(cli_asker *a)
{
    if (a->gpu_count == 0) return 0;
    json_t *list = json_array();
    for (size_t i = 0; list && i < a->gpu_count; i++)
        for (const char *at = a->gpus[i]; *at;) {
            size_t length = strcspn(at, ",");
            if (length && json_array_append_new(list, json_stringn(at, length)) != 0) return cli_ask_unread(a->args);
            at += length + (at[length] == ',');
        }
    return cli_asker_set(a, FT_KEY_ID_GPU, list) ? 0 : cli_complain(FT_E_MEMORY, "out of memory");
}

/* What is given again adds to what was given: --price a=1 --price b=2 is --price a=1,b=2. */
static int add_again(cli_asker *a, cli_option_id option)
{
    const char **values = NULL;
    size_t count = 0;
    ft_text all = {0};
    if (!cli_values(a->args, option, &values, &count)) return cli_complain(FT_E_MEMORY, "out of memory");
    for (size_t i = 0; i < count; i++) ft__text_addf(&all, "%s%s", i ? "," : "", values[i]);
    free(values);
    ft_key_id id = (ft_key_id)(cli_options[option].key - ft__keys);
    bool fine = count < 2 || (!all.failed && ft__key_put(a->object, id, ft__key_typed(id, all.at)));
    ft__text_free(&all);
    return fine ? 0 : cli_ask_unread(a->args);
}

static int print_fleet(const cli_asker *a, const ft_fleet_chosen *c)
{
    ft_text out = {0};
    ft_style style = cli_style(a->args);
    if (a->json) {
        ft__answer_fleet_chosen(&out, NULL, c);
        ft__text_add(&out, "\n");
    } else {
        if (c->warnings.length) cli_say_warnings(a->args, a->args->operands[0], c->warnings.at);
        if (!ft__screen_fleet_chosen(&out, &style, a->args->operands[0], c)) out.failed = true;
    }
    int status = a->json ? cli_print(&out) : cli_show(&out, &style);
    return !status && c->best == c->count ? 1 : status;
}

static int choose_serving(const cli_args *args)
{
    cli_asker a;
    ft_choose_request asked = {0};
    ft_fleet_chosen chosen = {0};
    ft_error err = {0};
    int status = cli_asker_open(&a, args, "choose_serve");
    if (!status) status = add_gpus(&a);
    if (!status) status = add_again(&a, OPT_OWN_PRICE);
    if (!status) status = add_again(&a, OPT_PROVIDER);
    if (!status && ft__choose_serve_request_read(a.object, &asked, &err) != FT_OK) status = cli_asker_fail(&a, &err);
    cli_progress progress;
    watch(&asked, &progress);
    if (!status && ft__fleet_choose(a.ft, &a.scratch, &asked, &chosen, &err) != FT_OK)
        status = cli_asker_fail(&a, &err);
    cli_progress_end(&progress);
    if (!status) status = print_fleet(&a, &chosen);
    ft__fleet_chosen_free(&chosen);
    ft__choose_request_free(&asked);
    cli_asker_close(&a);
    return status;
}

int cli_choose(const cli_args *args)
{
    const char *task = cli_value(args, OPT_JOB);
    if (task ? strcmp(task, "train") != 0 : cli_has(args, OPT_SLO) || cli_has(args, OPT_RATE))
        return choose_serving(args);
    cli_asker a;
    ft_choose_request asked = {0};
    ft_chosen chosen = {0};
    ft_error err = {0};
    int status = cli_asker_open(&a, args, "choose");
    if (!status) status = add_gpus(&a);
    if (!status) status = add_again(&a, OPT_OWN_PRICE);
    if (!status) status = add_again(&a, OPT_PROVIDER);
    if (!status) status = add_again(&a, OPT_FAILURES);
    if (!status && ft__choose_request_read(a.object, &asked, &err) != FT_OK) status = cli_asker_fail(&a, &err);
    cli_progress progress;
    watch(&asked, &progress);
    if (!status && ft__choose_of(a.ft, &a.scratch, &asked, &chosen, &err) != FT_OK) status = cli_asker_fail(&a, &err);
    cli_progress_end(&progress);
    if (!status) status = print(&a, &chosen);
    ft__chosen_free(&chosen);
    ft__choose_request_free(&asked);
    cli_asker_close(&a);
    return status;
}

/* plan.c: `foretell plan MODEL`: the best layout of a training job, and why not others. */
#include <stdlib.h>
#include <string.h>

#include "ask.h"
#include "base/text.h"
#include "commands.h"
#include "report/json/plan_answer.h"
#include "report/launch/launch.h"
#include "report/text/plan_screen.h"
#include "terminal.h"

static int print(const cli_asker *a, const ft_plan *p)
{
    ft_text out = {0};
    ft_style style = cli_style(a->args);
    if (a->json) {
        ft__answer_plan(&out, NULL, p);
        ft__text_add(&out, "\n");
    } else if (!ft__screen_plan(&out, &style, p)) {
        out.failed = true;
    }
    int status = a->json ? cli_print(&out) : cli_show(&out, &style);
    return !status && !p->plan_count ? 1 : status;
}

/* -- flags that are lists ---------------------------------------------------------------------- */

/* One value, or several between bars: numbers where they are, words where not. */
static json_t *values_of(char *text)
{
    json_t *list = json_array();
    for (char *one = strtok(text, "|"); list && one; one = strtok(NULL, "|")) {
        char *end;
        long long number = strtoll(one, &end, 10);
        json_t *value = *end || end == one ? json_string(one) : json_integer(number);
        if (!value || json_array_append_new(list, value) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

/* "tp=4|8,recompute=full" as {"tp": [4, 8], "recompute": ["full"]}. */
static int add_fixed(cli_asker *a)
{
    const char *said = cli_value(a->args, OPT_FIX);
    if (!said) return 0;
    json_t *search = json_object();
    for (const char *at = said; search && *at;) {
        char part[128] = "";
        size_t length = strcspn(at, ",");
        if (length >= sizeof part || !memchr(at, '=', length)) {
            json_decref(search);
            return cli_usage(a->args->command, "--fix takes KEY=VALUE between commas, as tp=4,zero=1; got \"%.60s\"",
                             at);
        }
        memcpy(part, at, length);
        char *value = strchr(part, '=');
        *value++ = '\0';
        json_t *values = values_of(value);
        if (!values || json_object_set_new(search, part, values) != 0)
            return cli_complain(FT_E_MEMORY, "out of memory, or text that is not UTF-8");
        at += length + (at[length] == ',');
    }
    return cli_asker_set(a, "search", search) ? 0 : cli_complain(FT_E_MEMORY, "out of memory");
}

static int add_words(cli_asker *a, cli_option_id option, const char *key)
{
    const char *said = cli_value(a->args, option);
    if (!said) return 0;
    json_t *list = json_array();
    for (const char *at = said; list && *at;) {
        size_t length = strcspn(at, ",");
        if (length && json_array_append_new(list, json_stringn(at, length)) != 0)
            return cli_complain(FT_E_MEMORY, "out of memory, or text that is not UTF-8");
        at += length + (at[length] == ',');
    }
    return cli_asker_set(a, key, list) ? 0 : cli_complain(FT_E_MEMORY, "out of memory");
}

/* "4%" and "0.04" are the same. */
static int add_margin(cli_asker *a)
{
    const char *said = cli_value(a->args, OPT_MEMORY_MARGIN);
    double share = 0;
    char number[32] = "";
    if (!said) return 0;
    size_t length = strlen(said), percent = length && said[length - 1] == '%';
    if (length - percent < sizeof number) memcpy(number, said, length - percent);
    if (!ft__number_parse(number, &share))
        return cli_usage(a->args->command, "--memory-margin takes a share, as 4%% or 0.04; got \"%.30s\"", said);
    if (percent) share /= 100;
    json_t *constraints = json_pack("{s:f}", "memory_margin", share);
    return cli_asker_set(a, "constraints", constraints) ? 0 : cli_complain(FT_E_MEMORY, "out of memory");
}

static int make_request(cli_asker *a)
{
    const char *goal = cli_value(a->args, OPT_OBJECTIVE), *framework = cli_value(a->args, OPT_FRAMEWORK);
    int status = cli_ask_whole(a->args, OPT_PLAN_GPUS, 1, 1 << 20, a->object);
    if (!status) status = cli_ask_whole(a->args, OPT_PLAN_TOP, 1, FT_PLAN_MOST_TOP, a->object);
    if (!status) status = add_fixed(a);
    if (!status) status = add_words(a, OPT_ALLOW, "allow");
    if (!status) status = add_words(a, OPT_EMIT, "emit");
    if (!status) status = add_margin(a);
    if (status) return status;
    bool fine = cli_asker_set(a, "objective", json_string(goal && !strcmp(goal, "memory") ? "memory" : "step_ms")) &&
                (!framework || cli_asker_set(a, "framework", json_string(framework))) &&
                (!cli_has(a->args, OPT_EXHAUSTIVE) || cli_asker_set(a, "exhaustive", json_true()));
    return fine ? 0 : cli_complain(FT_E_MEMORY, "out of memory, or text that is not UTF-8");
}

int cli_plan(const cli_args *args)
{
    cli_asker a;
    ft_plan_request asked = {0};
    ft_error err = {0};
    ft_plan *p = calloc(1, sizeof *p); /* some KiB */
    if (!p) return cli_complain(FT_E_MEMORY, "out of memory");
    int status = cli_asker_open(&a, args, "plan");
    if (!status && a.gpu_count > 1) status = cli_usage(args->command, "\"plan\" looks at one kind of GPU");
    if (!status) status = make_request(&a);
    if (!status && (ft__plan_request_read(a.object, &asked, &err) != FT_OK || ft__launch_check(&asked, &err) != FT_OK ||
                    ft__plan_of(a.ft, &a.scratch, &asked, p, &err) != FT_OK))
        status = cli_asker_fail(&a, &err);
    if (!status) status = print(&a, p);
    ft__plan_free(p);
    free(p);
    ft__plan_request_free(&asked);
    cli_asker_close(&a);
    return status;
}

/* plan.c: `foretell plan MODEL`: the best layout of a training job, or the best way to serve, and why not others. */
#include <stdlib.h>
#include <string.h>

#include "ask.h"
#include "commands.h"
#include "many.h"
#include "progress.h"
#include "report/json/fleet_answer.h"
#include "report/json/plan_answer.h"
#include "report/launch/engines.h"
#include "report/launch/launch.h"
#include "report/launch/unsaid.h"
#include "report/text/fleet_screen.h"
#include "report/text/network_screen.h"
#include "report/text/plan_screen.h"
#include "terminal.h"

/* Keys without effect, and what launch files do not say. */
static void warn(const cli_asker *a, ft_text *lines)
{
    if (lines->length && !a->json) cli_say_warnings(a->args, a->args->operands[0], lines->at);
    ft__text_free(lines);
}

static int print(const cli_asker *a, const ft_plan *p)
{
    ft_text out = {0};
    ft_text lines = {0};
    ft_style style = cli_style(a->args);
    ft__plan_say(p, &lines);
    ft__launch_warnings(&lines, p);
    warn(a, &lines);
    const bool groups = cli_has(a->args, OPT_RANK_GROUPS) && p->plan_count;
    if (a->json) {
        ft__answer_plan(&out, NULL, p);
        if (groups) cli_add_groups(&out, &p->plans[0].layout.parallel);
        ft__text_add(&out, "\n");
    } else {
        out.failed |= !ft__screen_plan(&out, &style, p);
        if (groups) ft__screen_groups(&out, &style, &p->plans[0].layout.parallel);
    }
    int status = a->json ? cli_print(&out) : cli_show(&out, &style);
    return !status && !p->plan_count ? 1 : status;
}

static int print_fleet(const cli_asker *a, const ft_fleet *f)
{
    ft_text out = {0};
    ft_text lines = {0};
    ft_style style = cli_style(a->args);
    ft__fleet_say(f, &lines);
    ft__engine_warnings(&lines, f);
    warn(a, &lines);
    if (a->json) {
        ft__answer_fleet(&out, NULL, f);
        ft__text_add(&out, "\n");
    } else if (!ft__screen_fleet(&out, &style, f)) {
        out.failed = true;
    }
    int status = a->json ? cli_print(&out) : cli_show(&out, &style);
    return !status && !f->plans ? 1 : status;
}

/* On a terminal, what takes more than two seconds says how far it is. */
static void tell(void *progress, const char *what, double done)
{
    if (cli_progress_seconds(progress) > 2) cli_progress_report(progress, what, done);
}

static void watch(ft_plan_request *r, cli_progress *progress)
{
    cli_progress_begin(progress, "planning");
    r->watcher = progress;
    if (cli_stderr_is_terminal()) r->progress = tell;
}

static int plan_serving(const cli_args *args)
{
    cli_asker a;
    ft_plan_request asked = {0};
    ft_fleet fleet = {0};
    ft_error err = {0};
    cli_progress progress;
    if (cli_has(args, OPT_RANK_GROUPS))
        return cli_usage(args->command, "--groups is of a training step's layout; servers are tensor ranks in a row");
    int status = cli_asker_open(&a, args, "plan_serve");
    if (!status && a.gpu_count > 1)
        status = cli_usage(args->command, "\"plan\" looks at one kind of GPU; \"choose\" at several");
    if (!status && (ft__plan_serve_request_read(a.object, &asked, &err) != FT_OK ||
                    ft__engine_launch_check(&asked, &err) != FT_OK))
        status = cli_asker_fail(&a, &err);
    watch(&asked, &progress);
    if (!status && ft__fleet_of(a.ft, &a.scratch, &asked, &fleet, &err) != FT_OK) status = cli_asker_fail(&a, &err);
    cli_progress_end(&progress);
    if (!status) status = print_fleet(&a, &fleet);
    ft__fleet_free(&fleet);
    ft__plan_request_free(&asked);
    cli_asker_close(&a);
    return status;
}

int cli_plan(const cli_args *args)
{
    const char *task = cli_value(args, OPT_JOB);
    if (task ? strcmp(task, "train") != 0 : cli_has(args, OPT_SLO) || cli_has(args, OPT_RATE))
        return plan_serving(args);
    cli_asker a;
    ft_plan_request asked = {0};
    ft_error err = {0};
    ft_plan *p = calloc(1, sizeof *p); /* some KiB */
    if (!p) return cli_complain(FT_E_MEMORY, "out of memory");
    cli_progress progress;
    int status = cli_asker_open(&a, args, "plan");
    if (!status && a.gpu_count > 1)
        status = cli_usage(args->command, "\"plan\" looks at one kind of GPU; \"choose\" at several");
    if (!status && (ft__plan_request_read(a.object, &asked, &err) != FT_OK ||
                    ft__launch_check(a.ft, &a.scratch, &asked, &err) != FT_OK))
        status = cli_asker_fail(&a, &err);
    watch(&asked, &progress);
    if (!status && ft__plan_of(a.ft, &a.scratch, &asked, p, &err) != FT_OK) status = cli_asker_fail(&a, &err);
    cli_progress_end(&progress);
    if (!status) status = print(&a, p);
    ft__plan_free(p);
    free(p);
    ft__plan_request_free(&asked);
    cli_asker_close(&a);
    return status;
}

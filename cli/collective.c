/* collective.c: `foretell collective OP --bytes N --ranks N`: one exchange, on one or more kinds of GPU. */
#include <stdlib.h>

#include "ask.h"
#include "commands.h"
#include "report/json/answer.h"
#include "report/json/answer_collective.h"
#include "report/text/exchange_screen.h"
#include "simulator.h"
#include "terminal.h"

typedef struct job {
    const cli_args *args;
    ft_context *ft;
    json_t *object;
    const char **gpus;
    size_t gpu_count;
    bool json;
} job;

static int fail(const job *j, ft_error *err)
{
    if (j->json) {
        ft_text out = {0};
        ft__answer_error(&out, NULL, err, 0);
        ft__text_add(&out, "\n");
        cli_print(&out);
    }
    return cli_ask_fail(j->args, "op", err);
}

static ft_status ask(const job *j, const char *gpu, ft_scratch *scratch, ft_exchange_case *out, ft_error *err)
{
    if (json_object_set_new(j->object, "gpu", json_string(gpu)) != 0)
        return ft__fail_at(err, FT_E_NAME, "gpu", 0, 0, "the name of the GPU is not UTF-8");
    scratch->simulator = &cli_simulator;
    FT_TRY(ft__collective_request_of(j->ft, scratch, j->object, &out->request, err));
    return ft__exchange_of(j->ft, scratch, &out->request, &out->comm, err);
}

static int run_cases(const job *j, ft_exchange_case *cases, ft_scratch *scratch)
{
    ft_text out = {0};
    ft_error err = {0};
    ft_style style = cli_style(j->args);
    for (size_t i = 0; i < j->gpu_count; i++) {
        if (ask(j, j->gpus[i], &scratch[i], &cases[i], &err) != FT_OK) {
            ft__text_free(&out);
            return fail(j, &err);
        }
        const char *warnings = ft__device_warnings(&scratch[i], cases[i].request.device);
        if (!j->json) {
            cli_say_warnings(j->gpus[i], warnings);
            continue;
        }
        json_t *id = j->gpu_count > 1 ? json_string(j->gpus[i]) : NULL;
        ft__answer_collective(&out, id, &cases[i].request, &cases[i].comm, warnings);
        cli_ask_answered(&out, j->object);
        ft__text_add(&out, "\n");
        json_decref(id);
    }
    if (j->json) return cli_print(&out);
    double quantile = cases[0].request.quantile > 0 ? cases[0].request.quantile : 0.9;
    if (!ft__screen_exchange(&out, &style, cases, j->gpu_count, quantile)) out.failed = true;
    return cli_show(&out, &style);
}

static int run_job(job *j)
{
    ft_error err = {0};
    if (j->gpu_count == 0) return cli_usage(j->args->command, "which GPU? --gpu h100_sxm (foretell gpus lists them)");
    ft_options options = {.predictor = cli_value(j->args, OPT_PREDICTOR),
                          .calibration = cli_value(j->args, OPT_CALIBRATION)};
    if (ft_open(&j->ft, &options, &err) != FT_OK) return cli_fail(&err);
    j->object = json_object();
    if (!j->object || json_object_set_new(j->object, "task", json_string("collective")) != 0 ||
        !cli_ask_operand(j->args, "op", j->object) || !cli_ask_flags(j->args, j->object))
        return cli_complain(FT_E_SYNTAX, "an argument is not UTF-8");
    ft_exchange_case *cases = calloc(j->gpu_count, sizeof *cases);
    ft_scratch *scratch = calloc(j->gpu_count, sizeof *scratch); /* each case keeps its device */
    int status = cases && scratch ? run_cases(j, cases, scratch) : cli_complain(FT_E_MEMORY, "out of memory");
    for (size_t i = 0; scratch && i < j->gpu_count; i++) ft__scratch_free(&scratch[i]);
    free(scratch);
    free(cases);
    return status;
}

int cli_collective(const cli_args *args)
{
    job j = {.args = args, .json = cli_has(args, OPT_JSON)};
    int status = cli_values(args, OPT_GPU, &j.gpus, &j.gpu_count) ? run_job(&j)
                                                                  : cli_complain(FT_E_MEMORY, "out of memory");
    json_decref(j.object);
    ft_close(j.ft);
    free(j.gpus);
    return status;
}

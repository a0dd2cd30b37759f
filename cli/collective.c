/* collective.c: `foretell collective OP --bytes N --ranks N`: one exchange, on one or more kinds of GPU. */
#include <stdlib.h>

#include "ask.h"
#include "commands.h"
#include "report/json/answer_collective.h"
#include "report/text/exchange_screen.h"
#include "simulator.h"
#include "terminal.h"

static ft_status ask(cli_asker *j, const char *gpu, ft_scratch *scratch, ft_exchange_case *out, ft_error *err)
{
    if (!cli_asker_set(j, FT_KEY_ID_GPU, json_string(gpu)))
        return cli_is_utf8(gpu) ? ft__no_memory(err)
                                : ft__fail_at(err, FT_E_NAME, "gpu", 0, 0, "the name of the GPU is not UTF-8");
    scratch->simulator = &cli_simulator;
    FT_TRY(ft__collective_request_of(j->ft, scratch, j->object, &out->request, err));
    return ft__exchange_of(j->ft, scratch, &out->request, &out->comm, err);
}

static int run_cases(cli_asker *j, ft_exchange_case *cases, ft_scratch *scratch)
{
    ft_text out = {0};
    ft_error err = {0};
    ft_style style = cli_style(j->args);
    for (size_t i = 0; i < j->gpu_count; i++) {
        if (ask(j, j->gpus[i], &scratch[i], &cases[i], &err) != FT_OK) {
            ft__text_free(&out);
            return cli_asker_fail(j, &err);
        }
        const char *warnings = cases[i].request.warnings;
        if (!j->json) {
            cli_say_warnings(j->args, j->gpus[i], warnings);
            continue;
        }
        json_t *id = j->gpu_count > 1 ? cli_ask_id(&out, j->gpus[i]) : NULL;
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

int cli_collective(const cli_args *args)
{
    cli_asker j;
    int status = cli_asker_open(&j, args, "collective");
    ft_exchange_case *cases = calloc(j.gpu_count + 1, sizeof *cases);
    ft_scratch *scratch = calloc(j.gpu_count + 1, sizeof *scratch); /* each case keeps its device */
    if (!status) status = cases && scratch ? run_cases(&j, cases, scratch) : cli_complain(FT_E_MEMORY, "out of memory");
    for (size_t i = 0; scratch && i < j.gpu_count; i++) ft__scratch_free(&scratch[i]);
    free(scratch);
    free(cases);
    cli_asker_close(&j);
    return status;
}

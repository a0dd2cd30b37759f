/* train.c: `foretell train MODEL`: one training step on one GPU, or on several side by side. */
#include <stdint.h>
#include <stdlib.h>

#include "ask.h"
#include "commands.h"
#include "report/answer_step.h"
#include "report/step_screen.h"
#include "terminal.h"

typedef struct trainer {
    cli_asker ask;
    double tokens;
    int64_t gpus;
    bool all_fit;
} trainer;

static bool add_screen(ft_text *out, const ft_style *style, const ft_step_view *v)
{
    if (v->detail == FT_SUMMARY) return ft__screen_step(out, style, v);
    ft__screen_step_title(out, style, v);
    ft__text_add(out, "\n");
    bool printed = v->detail == FT_LAYERS ? ft__screen_layers(out, style, v)
                                          : ft__screen_kernels(out, style, v, SIZE_MAX);
    ft__text_add(out, "\n");
    ft__screen_fits(out, style, &v->step->memory);
    return printed;
}

/* The answer's closing brace makes room for the days. */
static void add_answer(trainer *t, ft_text *out, const json_t *id, const ft_step_view *v)
{
    ft__answer_step(out, id, v);
    if (t->tokens > 0 && !out->failed) {
        ft_days days = ft__days_of(v, t->tokens, (double)t->gpus);
        out->length--;
        ft__answer_days(out, &days);
        ft__text_add(out, "}");
    }
    ft__text_add(out, "\n");
}

static int run_gpus(trainer *t)
{
    cli_asker *a = &t->ask;
    ft_style style = cli_style(a->args);
    ft_error err = {0};
    ft_text out = {0};
    int status = 0;
    double quantile = 0.9;
    ft_step_case *cases = calloc(a->gpu_count, sizeof *cases);
    if (!cases) return cli_complain(FT_E_MEMORY, "out of memory");
    for (size_t i = 0; i < a->gpu_count && !status; i++) {
        ft_step_view view;
        if (!cli_asker_set(a, "gpu", json_string(a->gpus[i])))
            status = cli_complain(FT_E_NAME, "the name of the GPU is not UTF-8");
        else if (cli_asker_forecast(a, &view, &err) != FT_OK)
            status = cli_asker_fail(a, &err);
        if (status) break;
        t->all_fit = t->all_fit && view.step->memory.fits;
        quantile = view.quantile;
        cases[i].device = *view.device;
        cases[i].step = *view.step;
        if (a->json) {
            json_t *id = a->gpu_count > 1 ? json_string(a->gpus[i]) : NULL;
            add_answer(t, &out, id, &view);
            json_decref(id);
            continue;
        }
        cli_say_warnings(a->args->operands[0], view.warnings);
        if (a->gpu_count == 1 && !add_screen(&out, &style, &view)) out.failed = true;
        if (a->gpu_count > 1 && i == 0) {
            ft_step_view all = view;
            all.device = NULL;
            ft__screen_step_title(&out, &style, &all);
            ft__text_add(&out, "\n");
        }
        if (a->gpu_count == 1 && t->tokens > 0) {
            ft_days days = ft__days_of(&view, t->tokens, (double)t->gpus);
            ft__screen_days(&out, &style, &days);
        }
    }
    if (!status && !a->json && a->gpu_count > 1 && !ft__screen_steps(&out, &style, cases, a->gpu_count, quantile))
        out.failed = true;
    if (!status)
        status = cli_print(&out);
    else
        ft__text_free(&out);
    free(cases);
    return status;
}

int cli_train(const cli_args *args)
{
    trainer t = {.gpus = 1, .all_fit = true};
    int status = cli_real(args, OPT_TRAIN_TOKENS, 1, 1e18, &t.tokens);
    if (!status) status = cli_whole(args, OPT_GPUS_USED, 1, 1 << 24, &t.gpus);
    if (!status && cli_has(args, OPT_GPUS_USED) && t.tokens <= 0)
        status = cli_usage(args->command, "--gpus says who shares the work of --tokens; there is none");
    if (status) return status;
    const char *detail = cli_value(args, OPT_DETAIL);
    status = cli_asker_open(&t.ask, args, "train");
    if (!status && detail && !cli_asker_set(&t.ask, "detail", json_string(detail)))
        status = cli_complain(FT_E_MEMORY, "out of memory");
    if (!status) status = run_gpus(&t);
    cli_asker_close(&t.ask);
    return !status && !t.all_fit ? 1 : status; /* answered, and the answer is: not like this */
}

/* serve_side.c: the same load on several GPUs, several engines or both: `--gpu a --gpu b --engine x --engine y`. */
#include "serve_side.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/json/answer.h"
#include "report/json/serve_answer.h"
#include "report/text/serve_screen.h"
#include "simulator.h"
#include "terminal.h"

typedef struct sides {
    cli_asker *ask;
    const char **engines;
    size_t engine_count, count; /* count: GPUs times engines */
    ft_serving *found;
    ft_scratch *scratch; /* each case keeps its model and its device */
    size_t failed;
    ft_error last;
} sides;

/* One that cannot be served is left out of the table, and why is said. */
static void leave_out(sides *s, const char *name, ft_error *err, ft_text *out)
{
    s->failed++;
    if (s->ask->json) {
        json_t *id = cli_ask_id(out, name);
        ft__answer_error(out, id, err, 0);
        ft__text_add(out, "\n");
        json_decref(id);
    } else if (s->failed < s->count) {
        cli_say_left_out(name, err);
    }
    s->last = *err;
}

static void serve_one(sides *s, size_t i, ft_text *out)
{
    cli_asker *a = s->ask;
    const char *gpu = a->gpus[i / s->engine_count], *engine = s->engines[i % s->engine_count];
    char name[160];
    ft_error err = {0};
    ft_serve_request asked = {0};
    snprintf(name, sizeof name, "%s%s%s", gpu, engine ? " " : "", engine ? engine : "");
    s->scratch[i].simulator = &cli_simulator;
    bool set = cli_asker_set(a, FT_KEY_ID_GPU, json_string(gpu)) &&
               (!engine || cli_asker_set(a, FT_KEY_ID_SERVING_ENGINE, json_string(engine)));
    /* one load for all of them: what a benchmark of one engine does is not asked here */
    if (set && s->engine_count > 1 && !ft__key_get(a->object, FT_KEY_ID_PROMPTS))
        set = cli_asker_set(a, FT_KEY_ID_PROMPTS, json_integer(0));
    ft_status status = set ? ft__serve_request_read(a->object, &asked, &err)
                           : ft__fail_at(&err, FT_E_SYNTAX, "gpu", 0, 0, "a name is not UTF-8");
    if (status == FT_OK) status = ft__serve_of(a->ft, &s->scratch[i], &asked, NULL, &s->found[i], &err);
    if (status == FT_OK && a->json) {
        json_t *id = cli_ask_id(out, name);
        ft__answer_serve(out, id, &s->found[i], NULL, false);
        cli_ask_answered(out, a->object);
        ft__text_add(out, "\n");
        json_decref(id);
    } else if (status == FT_OK) {
        cli_say_warnings(s->ask->args, name, s->found[i].warnings.at ? s->found[i].warnings.at : "");
    } else {
        ft__serving_free(&s->found[i]);
        leave_out(s, name, &err, out);
    }
    ft__serve_request_free(&asked);
}

static int print(sides *s, ft_text *out)
{
    ft_style style = cli_style(s->ask->args);
    bool no = false;
    const ft_serving *first = NULL;
    for (size_t i = 0; i < s->count; i++) {
        const ft_serving *f = &s->found[i];
        if (!f->out) continue;
        if (!first) first = f;
        no = no || !f->stable || (f->slo_share > 0 && !f->slo_met);
    }
    if (!first) {
        cli_ask_name_flag(s->ask->args, s->ask->operand, &s->last);
        if (s->ask->json) cli_print(out);
        return cli_fail(&s->last);
    }
    if (!s->ask->json) {
        ft__screen_serve_load(out, &style, first);
        if (!ft__screen_serve_side(out, &style, s->found, s->count)) out->failed = true;
    }
    int status = s->ask->json ? cli_print(out) : cli_show(out, &style);
    return !status && no ? 1 : status;
}

int cli_serve_side(cli_asker *ask, const char **engines, size_t engine_count)
{
    static const char *none[] = {NULL};
    sides s = {.ask = ask, .engines = engine_count ? engines : none, .engine_count = engine_count ? engine_count : 1};
    ft_text out = {0};
    s.count = ask->gpu_count * s.engine_count;
    s.found = calloc(s.count, sizeof *s.found);
    s.scratch = calloc(s.count, sizeof *s.scratch);
    int status = 0;
    if (!s.found || !s.scratch) status = cli_complain(FT_E_MEMORY, "out of memory");
    for (size_t i = 0; !status && i < s.count; i++) serve_one(&s, i, &out);
    if (!status)
        status = print(&s, &out);
    else
        ft__text_free(&out);
    for (size_t i = 0; s.found && s.scratch && i < s.count; i++) {
        ft__serving_free(&s.found[i]);
        ft__scratch_free(&s.scratch[i]);
    }
    free(s.found);
    free(s.scratch);
    return status;
}

/* doctor.c: `foretell doctor`: what this program has, what it would answer from, what is here. */
#include <stdlib.h>
#include <string.h>

#include "api/answer.h"
#include "ask.h"
#include "base/json_write.h"
#include "commands.h"
#include "config.h"
#include "gpu_here.h"
#include "report/text/lines.h"
#include "study/basis.h"
#include "terminal.h"

#ifndef FORETELL_HAS
#define FORETELL_HAS 0
#endif

/* Parts that a build has or has not; bits of FORETELL_HAS (meson.build). */
static const struct part {
    const char *key, *words;
} parts[] = {{"onnx", "ONNX files"}, {"chakra", "Chakra traces"}, {"server", "foretell web"}, {"simgrid", "SimGrid"}};
enum { PARTS = sizeof parts / sizeof *parts };

static bool has(int part) { return FORETELL_HAS >> part & 1; }

typedef struct report {
    const cli_args *args;
    cli_config config;
    ft_context *ft;
    ft_scratch *scratch;
    cli_gpu_here here[CLI_GPUS_HERE];
    size_t here_count;
    ft_basis *gpus; /* those named, then what stands here may be */
    size_t gpu_count;
} report;

/* -- screen ------------------------------------------------------------------------------------ */

static void say_gpu(ft_text *out, const ft_style *style, const ft_basis *b)
{
    ft_text figure = {0}, remark = {0};
    ft__text_add(out, "\n");
    ft__ink(out, style, FT_INK_BOLD);
    ft__text_add_plain(out, b->name);
    ft__ink_end(out, style);
    ft__text_add(out, "  where forecasts would come from\n");
    for (int k = 0; k < FT_BASIS_KERNELS; k++) {
        ft__text_clear(&figure);
        ft__text_clear(&remark);
        ft__text_add(&figure, *b->source[k] ? b->source[k] : "not supported");
        if (*b->kin[k]) ft__text_addf(&remark, "from %s; ", b->kin[k]);
        if (b->span[k] > 0) ft__text_addf(&remark, "high is %.2f times low", b->span[k]);
        ft__line(out, style, ft__basis_kernels[k], &figure, remark.at);
    }
    out->failed |= figure.failed || remark.failed;
    ft__text_free(&figure);
    ft__text_free(&remark);
}

static void say_here(ft_text *out, const ft_style *style, const report *r)
{
    ft_text words = {0};
    for (size_t i = 0; i < r->here_count; i++) {
        const cli_gpu_here *g = &r->here[i];
        ft__text_clear(&words);
        ft__text_add_plain(&words, g->title);
        for (size_t k = 0; k < g->alike_count; k++) ft__text_addf(&words, "%s%s", k ? " or " : ": --gpu ", g->alike[k]);
        if (!g->alike_count) ft__text_add(&words, ": not in the catalogue; docs/devices.md says how to describe it");
        ft__line(out, style, i ? "" : "GPU here", &words, "");
    }
    ft__text_clear(&words);
    ft__text_add(&words, "none that NVIDIA's driver shows; forecasts need none");
    if (!r->here_count) ft__line(out, style, "GPU here", &words, "");
    out->failed |= words.failed;
    ft__text_free(&words);
}

static void say(ft_text *out, const ft_style *style, const report *r)
{
    ft_text words = {0};
    ft__ink(out, style, FT_INK_BOLD);
    ft__text_add(out, "foretell " FT_VERSION "\n");
    ft__ink_end(out, style);
    for (int built = 1; built >= 0; built--) {
        ft__text_empty(&words);
        for (int i = 0; i < PARTS; i++)
            if (has(i) == built) ft__text_addf(&words, "%s%s", words.length ? ", " : "", parts[i].words);
        if (words.length) ft__line(out, style, built ? "built in" : "left out", &words, "");
    }
    ft__text_empty(&words);
    const char *predictor = cli_value(r->args, OPT_PREDICTOR);
    ft__text_add_plain(&words, predictor ? predictor : "the one built in");
    ft__line(out, style, "predictor", &words, "");
    ft__text_empty(&words);
    const char *calibration = cli_value(r->args, OPT_CALIBRATION);
    ft__text_add_plain(&words, calibration ? calibration : "none; foretell calibrate makes one on a GPU");
    ft__line(out, style, "calibration", &words, "");
    ft__text_empty(&words);
    ft__text_add_plain(&words, r->config.file ? r->config.file : "no file");
    for (int i = 0; i < r->config.count; i++) {
        const struct cli_default *d = &r->config.defaults[i];
        ft__text_addf(&words, "; %s %s", cli_options[d->option].name, d->value);
        if (d->from != r->config.file) ft__text_addf(&words, " (%s)", d->from);
    }
    ft__line(out, style, "settings", &words, "");
    ft__text_drop(&words, out);
    say_here(out, style, r);
    for (size_t i = 0; i < r->gpu_count; i++) say_gpu(out, style, &r->gpus[i]);
}

/* -- JSON -------------------------------------------------------------------------------------- */

static void answer(ft_text *out, const report *r)
{
    ft__json_open(out);
    ft__json_member_flag(out, "ok", true);
    ft__json_member_text(out, "version", FT_VERSION);
    ft__json_member_open(out, "built_in");
    for (int i = 0; i < PARTS; i++) ft__json_member_flag(out, parts[i].key, has(i));
    ft__json_close(out);
    const char *predictor = cli_value(r->args, OPT_PREDICTOR);
    ft__json_member_text(out, "predictor", predictor ? predictor : "built in");
    const char *calibration = cli_value(r->args, OPT_CALIBRATION);
    if (calibration) ft__json_member_text(out, "calibration", calibration);
    if (r->config.file) ft__json_member_text(out, "settings_file", r->config.file);
    ft__json_member_list(out, "settings");
    for (int i = 0; i < r->config.count; i++) {
        ft__json_open(out);
        ft__json_member_text(out, "flag", cli_options[r->config.defaults[i].option].name);
        ft__json_member_text(out, "value", r->config.defaults[i].value);
        ft__json_member_text(out, "from", r->config.defaults[i].from);
        ft__json_close(out);
    }
    ft__json_close_list(out);
    ft__json_member_list(out, "here");
    for (size_t i = 0; i < r->here_count; i++) {
        ft__json_open(out);
        ft__json_member_text(out, "title", r->here[i].title);
        ft__json_member_list(out, "alike");
        for (size_t k = 0; k < r->here[i].alike_count; k++) ft__json_add_text(out, r->here[i].alike[k]);
        ft__json_close_list(out);
        ft__json_close(out);
    }
    ft__json_close_list(out);
    ft__json_member_list(out, "gpus");
    for (size_t i = 0; i < r->gpu_count; i++) {
        ft__json_open(out);
        ft__json_member_text(out, "gpu", r->gpus[i].name);
        ft__json_member_list(out, "kernels");
        for (int k = 0; k < FT_BASIS_KERNELS; k++) {
            ft__json_open(out);
            ft__json_member_text(out, "op", ft__basis_kernels[k]);
            ft__json_member_text(out, "source", *r->gpus[i].source[k] ? r->gpus[i].source[k] : "none");
            if (*r->gpus[i].kin[k]) ft__json_member_text(out, "kin", r->gpus[i].kin[k]);
            if (r->gpus[i].span[k] > 0) ft__json_member_number(out, "high_over_low", r->gpus[i].span[k], 4);
            ft__json_close(out);
        }
        ft__json_close_list(out);
        ft__json_close(out);
    }
    ft__json_close_list(out);
    ft__json_close(out);
    ft__text_add(out, "\n");
}

/* -- the command ------------------------------------------------------------------------------- */

static int look(report *r, const char *const *named, size_t count)
{
    ft_error err = {0};
    ft_asking asking = {.ft = r->ft, .scratch = r->scratch};
    const char *proc = getenv("FORETELL_PROC"); /* another folder than /proc: a copy of another machine's */
    r->here_count = cli_gpus_here(proc && *proc ? proc : "/proc", r->here);
    r->gpus = calloc(count + r->here_count * CLI_GPU_ALIKE + 1, sizeof *r->gpus);
    if (!r->gpus || !r->scratch) return cli_complain(FT_E_MEMORY, "out of memory");
    for (size_t i = 0; i < count; i++)
        if (!cli_is_utf8(named[i])) return cli_ask_unread(r->args);
    for (size_t i = 0; i < count; i++)
        if (ft__basis_of(ft__answer_asking, &asking, named[i], &r->gpus[r->gpu_count++], &err) != FT_OK)
            return cli_fail(&err);
    for (size_t i = 0; !count && i < r->here_count; i++)
        for (size_t k = 0; k < r->here[i].alike_count; k++)
            if (ft__basis_of(ft__answer_asking, &asking, r->here[i].alike[k], &r->gpus[r->gpu_count++], &err) != FT_OK)
                return cli_fail(&err);
    return 0;
}

int cli_doctor(const cli_args *args)
{
    report r = {.args = args, .scratch = calloc(1, sizeof *r.scratch)};
    ft_error err = {0};
    const char **named = NULL;
    size_t count = 0;
    ft_text out = {0};
    ft_style style = cli_style(args);
    int status = 0;
    ft_options options = {.predictor = cli_value(args, OPT_PREDICTOR), .calibration = cli_value(args, OPT_CALIBRATION)};
    if (!cli_has(args, OPT_NO_CONFIG) && cli_config_read(&r.config, &err) != FT_OK) status = cli_fail(&err);
    if (!status && ft_open(&r.ft, &options, &err) != FT_OK) status = cli_fail(&err);
    if (!status && !cli_values(args, OPT_GPU, &named, &count)) status = cli_complain(FT_E_MEMORY, "out of memory");
    if (!status) status = look(&r, named, count);
    bool json = cli_has(args, OPT_JSON);
    if (!status && json) answer(&out, &r);
    if (!status && !json) say(&out, &style, &r);
    if (!status)
        status = json ? cli_print(&out) : cli_show(&out, &style);
    else
        ft__text_free(&out);
    free(named);
    free(r.gpus);
    if (r.scratch) ft__scratch_free(r.scratch);
    free(r.scratch);
    ft_close(r.ft);
    cli_config_free(&r.config);
    return status;
}

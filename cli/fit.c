/* fit.c: `foretell fit`: measurements in, predictor out, with its errors. */
#define _POSIX_C_SOURCE 200809L
#include "fit/fit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json_write.h"
#include "commands.h"
#include "paths.h"
#include "progress.h"
#include "report/text/accuracy_screen.h"
#include "shard.h"
#include "terminal.h"

/* Fitting takes minutes; that its result cannot be written should be known before. The file is written beside its
 * place and renamed, which would replace a device such as /dev/null. */
static int check_output(const char *path)
{
    struct stat s;
    if (stat(path, &s) == 0 && !S_ISREG(s.st_mode))
        return cli_complain(FT_E_FILE, "%s: exists and is not a regular file", path);
    char folder[4096];
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) : 0;
    if (length >= sizeof folder) return cli_complain(FT_E_FILE, "the path of --output is too long");
    memcpy(folder, path, length);
    strcpy(folder + length, slash ? (length ? "" : "/") : ".");
    if (access(folder, W_OK) != 0) return cli_complain(FT_E_FILE, "%s: cannot write there: %s", path, strerror(errno));
    return 0;
}

static int print_accuracy(const cli_args *args, const ft_accuracy_table *accuracy)
{
    ft_text out = {0};
    ft_style style = cli_style(args);
    if (cli_has(args, OPT_JSON)) {
        ft__json_open(&out);
        ft__json_member_flag(&out, "ok", true);
        ft__json_key(&out, "accuracy");
        ft__answer_accuracy(&out, accuracy);
        ft__json_close(&out);
        ft__text_add(&out, "\n");
    } else if (!ft__screen_accuracy(&out, &style, accuracy, NULL, 0)) {
        out.failed = true;
    }
    return cli_has(args, OPT_JSON) ? cli_print(&out) : cli_show(&out, &style);
}

static int fit(const cli_args *args, ft_fit_options *options)
{
    const char *output = cli_value(args, OPT_OUTPUT);
    char folder[4096];
    int64_t threads = 0;
    int status = cli_whole(args, OPT_THREADS, 0, 256, &threads);
    if (!status && cli_has(args, OPT_CALIBRATE_FROM)) {
        status = output ? check_output(output) : 0;
        return status ? status : cli_fit_calibrate(args, (int)threads);
    }
    if (!status && cli_has(args, OPT_PREDICTOR))
        status = cli_usage(args->command, "--predictor is what --calibrate adapts; a whole fit starts from nothing");
    if (!status && cli_has(args, OPT_FIT_MINUTES)) status = cli_usage(args->command, "--minutes goes with --calibrate");
    cli_shard shard = {0, 0};
    if (!status) status = cli_shard_read(args, OPT_FIT_SHARD, &shard);
    if (!status && shard.count && (!cli_has(args, OPT_CROSS_VALIDATE) || output))
        status = cli_usage(args->command, "--shard goes with --cross-validate, and without --output: a part of the "
                                          "kinds of kernels is not a predictor");
    if (!status) status = cli_check_families(options->families, options->family_count);
    if (!status) status = cli_data_folder(args, folder, sizeof folder);
    if (!status && output) status = check_output(output);
    if (status) return status;

    cli_progress progress;
    ft_accuracy_table accuracy = {0};
    ft_error err = {0};
    void *file = NULL;
    size_t length = 0;
    const char *shipped = folder;
    if (!options->data_count) options->data = &shipped, options->data_count = 1;
    options->threads = (int)threads;
    options->cross_validate = cli_has(args, OPT_CROSS_VALIDATE);
    options->shard = shard.index;
    options->shards = shard.count;
    options->progress = cli_progress_report;
    options->progress_context = &progress;
    if (!output && !shard.count) /* before the minutes that it takes */
        fputs("foretell: nothing will be written; -o FILE keeps the predictor\n", stderr);
    cli_progress_begin(&progress, "fitting");
    ft_status fitted = ft__fit(options, &file, &length, &accuracy, &err);
    cli_progress_end(&progress);
    if (fitted == FT_OK && output) fitted = ft__file_write(output, file, length, &err);
    if (fitted != FT_OK)
        status = cli_fail(&err);
    else
        status = print_accuracy(args, &accuracy);
    if (!status && output) fprintf(stderr, "foretell: wrote %s, %zu bytes\n", output, length);
    free(file);
    ft__accuracy_free(&accuracy);
    return status;
}

int cli_fit(const cli_args *args)
{
    ft_fit_options options = {0};
    const char **excluded = NULL, **families = NULL, **folders = NULL;
    int status = 0;
    if (!cli_values(args, OPT_EXCLUDE_GPU, &excluded, &options.exclude_count) ||
        !cli_values(args, OPT_FAMILY, &families, &options.family_count) ||
        !cli_values(args, OPT_DATA, &folders, &options.data_count))
        status = cli_complain(FT_E_MEMORY, "out of memory");
    options.exclude_gpus = excluded;
    options.families = families;
    options.data = folders;
    if (!status) status = cli_check_gpus(excluded, options.exclude_count);
    if (!status) status = fit(args, &options);
    free(excluded);
    free(families);
    free(folders);
    return status;
}

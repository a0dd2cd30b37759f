/* many.c: files and tables of a step, on many GPUs or on one. */
#define _POSIX_C_SOURCE 200809L
#include "many.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "report/text/network_screen.h"
#include "report/trace/chakra.h"
#include "report/trace/perfetto.h"
#include "terminal.h"

/* Whole, or not at all. */
static int write_file(const char *path, const char *at, size_t length)
{
    ft_error err = {0};
    return ft__file_write(path, at, length, &err) == FT_OK ? 0 : cli_fail(&err);
}

static int write_trace(const char *path, const ft_step_view *v)
{
    ft_error err = {0};
    ft_text out = {0};
    int status = ft__perfetto(v, &out, &err) == FT_OK ? write_file(path, out.at, out.length) : cli_fail(&err);
    ft__text_free(&out);
    return status;
}

typedef struct folder {
    const char *path;
    int status;
} folder;

static bool write_into(void *user, const char *name, const char *at, size_t length)
{
    folder *f = user;
    char path[4096];
    int n = snprintf(path, sizeof path, "%s/%s", f->path, name);
    f->status = n > 0 && (size_t)n < sizeof path ? write_file(path, at, length)
                                                 : cli_complain(FT_E_FILE, "the folder's name is too long");
    return f->status == 0;
}

/* One that is there already will do. */
static int make_folder(const char *path)
{
    if (!mkdir(path, 0777) || errno == EEXIST) return 0;
    ft_error err = {0};
    ft__fail_at(&err, FT_E_FILE, path, 0, 0, "cannot make the folder: %s", strerror(errno));
    return cli_fail(&err);
}

static int write_chakra(const char *path, const ft_step_view *v)
{
    ft_error err = {0};
    folder f = {.path = path};
    int made = make_folder(path);
    if (made) return made;
    if (ft__chakra(v, write_into, &f, &err) == FT_OK) return 0;
    return f.status ? f.status : cli_fail(&err);
}

int cli_many_files(const cli_args *args, const ft_step_view *v)
{
    const char *trace = cli_value(args, OPT_TRACE), *chakra = cli_value(args, OPT_CHAKRA);
    int gpus = 0;
    for (int i = 0; i < args->given_count; i++) gpus += args->given[i].option == OPT_GPU;
    if (gpus > 1 && (trace || chakra))
        return cli_usage(args->command, "a trace shows one kind of GPU; %d were given", gpus);
    int status = trace ? write_trace(trace, v) : 0;
    return !status && chakra ? write_chakra(chakra, v) : status;
}

bool cli_many_screen(const cli_args *args, ft_text *out, const ft_style *style, const ft_step_view *v)
{
    static const ft_parallel alone = {.dp = 1, .tp = 1, .pp = 1, .vpp = 1, .cp = 1, .ep = 1};
    bool printed = true;
    if (v->cluster && v->cluster->simulated) printed = ft__screen_network(out, style, v->cluster->simulated);
    if (cli_has(args, OPT_RANK_GROUPS)) ft__screen_groups(out, style, v->parallel ? v->parallel : &alone);
    return printed;
}

void cli_add_groups(ft_text *out, const ft_parallel *p)
{
    if (out->failed) return;
    out->length--;
    ft__answer_groups(out, p);
    ft__text_add(out, "}");
}

void cli_many_answer(const cli_args *args, ft_text *out, const ft_step_view *v)
{
    if (cli_has(args, OPT_RANK_GROUPS) && v->parallel) cli_add_groups(out, v->parallel);
}

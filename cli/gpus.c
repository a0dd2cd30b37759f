/* gpus.c: `foretell gpus`: the catalogue, or the sheets of some GPUs. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "commands.h"
#include "device/gpu.h"
#include "report/text/gpu_screen.h"
#include "terminal.h"

typedef struct filter {
    const char *vendor, *generation;
    double min_memory_gib;
    int dtype; /* -1: any */
} filter;

static bool passes(const filter *f, const ft_device *d)
{
    if (f->vendor && strcmp(f->vendor, ft__vendor_name(d->vendor)) != 0) return false;
    if (f->generation && strcmp(f->generation, d->generation) != 0) return false;
    if (d->memory_gib < f->min_memory_gib) return false;
    return f->dtype < 0 || d->peak_tflops[f->dtype] > 0;
}

static int read_filter(const cli_args *args, const ft_device *all, size_t count, filter *out)
{
    *out = (filter){cli_value(args, OPT_VENDOR), cli_value(args, OPT_GENERATION), 0, -1};
    int status = cli_real(args, OPT_MIN_MEMORY, 0, 1e6, &out->min_memory_gib);
    if (status) return status;
    const char *dtype = cli_value(args, OPT_HAS_DTYPE);
    ft_dtype parsed;
    if (dtype && !ft_dtype_parse(dtype, &parsed)) {
        const char *names[FT_DTYPE_COUNT];
        for (int i = 0; i < FT_DTYPE_COUNT; i++) names[i] = ft_dtype_name((ft_dtype)i);
        const char *nearest = ft__nearest(dtype, names, FT_DTYPE_COUNT);
        if (nearest) return cli_complain(FT_E_NAME, "unknown dtype \"%s\"; did you mean \"%s\"?", dtype, nearest);
        return cli_complain(FT_E_NAME, "unknown dtype \"%s\"", dtype);
    }
    if (dtype) out->dtype = (int)parsed;
    if (!out->generation) return 0;
    const char **names = calloc(count + 1, sizeof *names);
    if (!names) return cli_complain(FT_E_MEMORY, "out of memory");
    bool known = false;
    for (size_t i = 0; i < count; i++) {
        names[i] = all[i].generation;
        known = known || !strcmp(names[i], out->generation);
    }
    const char *nearest = known ? NULL : ft__nearest(out->generation, names, count);
    free(names);
    if (known) return 0;
    if (nearest)
        return cli_complain(FT_E_NAME, "unknown generation \"%s\"; did you mean \"%s\"?", out->generation, nearest);
    return cli_complain(FT_E_NAME, "unknown generation \"%s\"", out->generation);
}

static int print_list(const cli_args *args)
{
    size_t count = ft__catalogue_count(), kept = 0;
    ft_device *all = calloc(count + 1, sizeof *all);
    if (!all) return cli_complain(FT_E_MEMORY, "out of memory");
    ft_error err = {0};
    filter f;
    int status = 0;
    for (size_t i = 0; i < count && !status; i++)
        if (ft__catalogue_find(ft__catalogue_name(i), &all[i], &err) != FT_OK) status = cli_fail(&err);
    if (!status) status = read_filter(args, all, count, &f);
    if (!status) {
        for (size_t i = 0; i < count; i++)
            if (passes(&f, &all[i])) all[kept++] = all[i];
        ft_text out = {0};
        ft_style style = cli_style(args);
        bool json = cli_has(args, OPT_JSON);
        if (json) {
            ft__text_add(&out, "[");
            for (size_t i = 0; i < kept; i++) {
                ft__text_add(&out, i ? ",\n" : "\n");
                ft__answer_gpu(&out, &all[i]);
            }
            ft__text_add(&out, "\n]\n");
        } else {
            if (!ft__screen_gpus(&out, &style, all, kept)) out.failed = true;
        }
        status = json ? cli_print(&out) : cli_show(&out, &style);
    }
    free(all);
    return !status && kept == 0 ? 1 : status; /* answered, and the answer is: none */
}

/* The file as it stands, for its sources and notes: from the catalogue or from the path. */
static json_t *spec_of(const char *name)
{
    json_t *spec = NULL;
    ft_error ignored;
    for (size_t i = 0; i < ft__catalogue_count(); i++) {
        if (strcmp(ft__catalogue_name(i), name) != 0) continue;
        size_t length;
        const char *text = ft__catalogue_json(i, &length);
        return ft__json_parse(text, length, name, &spec, &ignored) == FT_OK ? spec : NULL;
    }
    return ft__json_load(name, &spec, &ignored) == FT_OK ? spec : NULL;
}

static int print_sheets(const cli_args *args)
{
    ft_style style = cli_style(args);
    ft_text out = {0};
    bool json = cli_has(args, OPT_JSON);
    for (int i = 0; i < args->operand_count; i++) {
        ft_device device;
        ft_text warnings = {0};
        ft_error err = {0};
        if (ft__device_open(args->operands[i], &device, &warnings, &err) != FT_OK) {
            ft__text_free(&warnings);
            ft__text_free(&out);
            return cli_fail(&err);
        }
        json_t *spec = json ? NULL : spec_of(args->operands[i]);
        if (json) {
            ft__answer_gpu(&out, &device);
            ft__text_add(&out, "\n");
        } else {
            if (i) ft__text_add(&out, "\n");
            if (!ft__screen_gpu(&out, &style, &device, spec, warnings.at)) out.failed = true;
        }
        json_decref(spec);
        ft__text_free(&warnings);
    }
    return json ? cli_print(&out) : cli_show(&out, &style);
}

int cli_gpus(const cli_args *args) { return args->operand_count ? print_sheets(args) : print_list(args); }

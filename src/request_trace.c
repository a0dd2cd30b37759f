/* request_trace.c: a trace by its file's name. */
#include "request_trace.h"

#include "base/json.h"
#include "context.h"
#include "report/trace_screen.h"

ft_status ft__trace_of(const ft_context *ft, const char *path, const char *on, const char *const *gpus, size_t count,
                       double quantile, ft_sight *out, ft_error *err)
{
    ft_slices *from;
    *out = (ft_sight){.quantile = quantile};
    FT_TRY(ft__slices_open(path, &from, err));
    ft_status status = ft__sight_of(from, ft__context_predictor(ft), on, gpus, count,
                                    quantile > 0 ? quantile : ft__context_quantile(ft), out, err);
    ft__slices_close(from);
    if (status != FT_OK && err && !err->where[0] && status != FT_E_MEMORY) {
        ft_error said = *err;
        ft__fail_at(err, status, path, 0, 0, "%s", said.message);
    }
    return status;
}

ft_status ft__answer_trace_request(const ft_context *ft, const json_t *object, const json_t *id, ft_text *out,
                                   ft_error *err)
{
    static const char *const known[] = {"id", "task", "file", "on", "gpu", "quantile", "detail"};
    const char *path = NULL, *on = NULL, *gpus[FT_SIGHT_TARGETS];
    double quantile = 0;
    size_t count = 0;
    FT_TRY(ft__json_known_keys(object, known, sizeof known / sizeof *known, "", err));
    FT_TRY(ft__json_string(object, "file", FT_REQUIRED, &path, "", err));
    FT_TRY(ft__json_string(object, "on", FT_OPTIONAL, &on, "", err));
    FT_TRY(ft__json_number(object, "quantile", FT_OPTIONAL, 0.5, 0.99, &quantile, "", err));
    const json_t *gpu = json_object_get(object, "gpu");
    if (json_is_string(gpu))
        gpus[count++] = json_string_value(gpu);
    else if (json_is_array(gpu) && json_array_size(gpu) <= FT_SIGHT_TARGETS) {
        for (size_t i = 0; i < json_array_size(gpu); i++) {
            const char *name = json_string_value(json_array_get(gpu, i));
            if (!name) return ft__fail_at(err, FT_E_TYPE, "gpu", 0, 0, "\"gpu\" of a trace lists names or files");
            gpus[count++] = name;
        }
    } else if (gpu && !json_is_null(gpu)) {
        return ft__fail_at(err, FT_E_TYPE, "gpu", 0, 0, "\"gpu\" of a trace is a name, a file, or a list of up to %d",
                           FT_SIGHT_TARGETS);
    }
    ft_sight s;
    ft_status status = ft__trace_of(ft, path, on, gpus, count, quantile, &s, err);
    if (status == FT_OK) ft__answer_trace(out, id, &s);
    ft__sight_free(&s);
    return status;
}

/* trace.c: reading a request for a profiler trace. */
#include "request/trace.h"

#include "request/keys.h"
#include "request/tasks.h"

ft_status ft__trace_request_read(const json_t *object, ft_trace_request *out, ft_error *err)
{
    ft_said said;
    *out = (ft_trace_request){0};
    FT_TRY(ft__task_keys_known(object, FT_ASK_TRACE, err));
    FT_TRY(ft__json_string(object, FT_KEY(TRACE_FILE), FT_REQUIRED, &out->path, "", err));
    FT_TRY(ft__json_string(object, FT_KEY(TRACE_ON), FT_OPTIONAL, &out->on, "", err));
    ft__said_init(&said);
    FT_TRY(ft__said_read(object, FT_SECTION_COMMON, &said, err));
    out->quantile = ft__given(&said, FT_KEY_ID_QUANTILE) ? ft__real_of(&said, FT_KEY_ID_QUANTILE) : 0;
    out->host = ft__key_get(object, FT_KEY_ID_TRACE_HOST);
    const json_t *gpu = ft__key_get(object, FT_KEY_ID_GPU);
    if (json_is_string(gpu))
        out->gpus[out->gpu_count++] = json_string_value(gpu);
    else if (json_is_array(gpu) && json_array_size(gpu) <= FT_TRACE_TARGETS) {
        for (size_t i = 0; i < json_array_size(gpu); i++) {
            const char *name = json_string_value(json_array_get(gpu, i));
            if (!name) return ft__fail_at(err, FT_E_TYPE, "gpu", 0, 0, "\"gpu\" of a trace lists names or files");
            out->gpus[out->gpu_count++] = name;
        }
    } else if (gpu && !json_is_null(gpu)) {
        return ft__fail_at(err, FT_E_TYPE, "gpu", 0, 0, "\"gpu\" of a trace is a name, a file, or a list of up to %d",
                           FT_TRACE_TARGETS);
    }
    return FT_OK;
}

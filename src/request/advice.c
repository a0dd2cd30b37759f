/* advice.c: reading `loader`. */
#include "request/advice.h"

ft_status ft__loader_read(const json_t *object, ft_loader *out, ft_error *err)
{
    static const char *const keys[] = {"samples_per_s_disk", "disk_gbps", "sample_bytes", "workers",
                                       "worker_ms",          "pinned"};
    static const char where[] = "loader";
    const json_t *l = json_object_get(object, "loader");
    *out = (ft_loader){.given = false};
    if (!l) return FT_OK;
    if (!json_is_object(l))
        return ft__fail_at(
            err, FT_E_TYPE, where, 0, 0,
            "\"loader\" must be an object: {\"workers\": 4, \"worker_ms\": 8, \"samples_per_s_disk\": 900}");
    FT_TRY(ft__json_known_keys(l, keys, sizeof keys / sizeof *keys, where, err));
    FT_TRY(ft__json_number(l, "samples_per_s_disk", FT_OPTIONAL, 1e-6, 1e12, &out->samples_per_s_disk, where, err));
    FT_TRY(ft__json_number(l, "disk_gbps", FT_OPTIONAL, 1e-6, 1e6, &out->disk_gbps, where, err));
    FT_TRY(ft__json_number(l, "sample_bytes", FT_OPTIONAL, 1, 1e12, &out->sample_bytes, where, err));
    FT_TRY(ft__json_number(l, "worker_ms", FT_OPTIONAL, 0, 1e7, &out->worker_ms, where, err));
    FT_TRY(ft__json_whole(l, "workers", FT_OPTIONAL, 0, 4096, &out->workers, where, err));
    bool pinned = false; /* PyTorch's defaults: no workers, pageable memory */
    FT_TRY(ft__json_bool(l, "pinned", FT_OPTIONAL, &pinned, where, err));
    out->pageable = !pinned;
    out->given = true;
    /* Storage that is only known by its bandwidth delivers that. */
    if (!(out->samples_per_s_disk > 0) && out->disk_gbps > 0 && out->sample_bytes > 0)
        out->samples_per_s_disk = out->disk_gbps * 1e9 / out->sample_bytes;
    return FT_OK;
}

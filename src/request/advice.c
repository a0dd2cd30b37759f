/* advice.c: reading `loader`. */
#include "request/advice.h"

#include "request/keys.h"

ft_status ft__loader_read(const json_t *object, ft_said *said, ft_error *err)
{
    const json_t *l = ft__key_get(object, FT_KEY_ID_LOADER);
    if (!l) return FT_OK;
    if (!json_is_object(l))
        return ft__fail_at(
            err, FT_E_TYPE, "loader", 0, 0,
            "\"loader\" must be an object: {\"workers\": 4, \"worker_ms\": 8, \"samples_per_s_disk\": 900}");
    FT_TRY(ft__keys_known(l, &(ft_section){FT_SECTION_LOADER}, 1, err));
    return ft__said_read(l, FT_SECTION_LOADER, said, err);
}

ft_loader ft__loader_settle(const ft_said *s)
{
    ft_loader out = {.given = ft__given(s, FT_KEY_ID_LOADER)};
    if (!out.given) return out;
    out.samples_per_s_disk = ft__real_of(s, FT_KEY_ID_DISK_RATE);
    out.disk_gbps = ft__real_of(s, FT_KEY_ID_DISK_GBPS);
    out.sample_bytes = ft__real_of(s, FT_KEY_ID_SAMPLE_BYTES);
    out.worker_ms = ft__real_of(s, FT_KEY_ID_WORKER_MS);
    out.workers = ft__whole_of(s, FT_KEY_ID_WORKERS); /* PyTorch's defaults: no workers, pageable memory */
    out.pageable = !ft__switch_of(s, FT_KEY_ID_PINNED);
    /* Storage that is only known by its bandwidth delivers that. */
    if (!(out.samples_per_s_disk > 0) && out.disk_gbps > 0 && out.sample_bytes > 0)
        out.samples_per_s_disk = out.disk_gbps * 1e9 / out.sample_bytes;
    return out;
}

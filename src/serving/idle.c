/* idle.c: keys of the request that the engine has no use for.
 *
 * The model is read as a step without a layout, where no key of a cluster acts. They act in an engine of several GPUs:
 * so what is idle in the step is asked again of every engine, with as many ranks as it has. Where prompts are prefilled
 * elsewhere, they act if they change what caches travel over. */
#include <stdint.h>
#include <string.h>

#include "comm/cluster.h"
#include "request/effects.h"
#include "serving/settle.h"

/* Without the key a prompt's cache travels as fast. */
static bool as_fast(const ft_served *m, const json_t *cluster, ft_key_id key)
{
    ft_cluster without;
    const char *name = ft__keys[key].key;
    if (!json_object_get(cluster, name)) return true;
    json_t *rest = json_copy((json_t *)(uintptr_t)cluster); /* of its keys: the values are shared */
    bool same = rest && json_object_del(rest, name) == 0 &&
                ft__cluster_read(rest, m->device, ft__served_gpus(m), &without, NULL) == FT_OK &&
                ft__served_transfer_ms(m, &without) == ft__served_transfer_ms(m, &m->cluster);
    json_decref(rest);
    return same;
}

ft_status ft__settle_idle(const ft_serve_request *r, const ft_model_request *read, ft_serving *out, ft_error *err)
{
    const ft_served *const engines[] = {&out->served, &out->prefill_served};
    ft_idle_key at[FT_KEY_COUNT];
    ft_said said;
    size_t count = read->idle_count;
    memcpy(at, read->idle, count * sizeof *at);
    if (count) FT_TRY(ft__model_request_said(r->base, &said, err));
    for (size_t i = 0; i < sizeof engines / sizeof *engines && count; i++) {
        if (!engines[i]->device) continue; /* who decodes prefills, too */
        ft_model_request laid_out = *read;
        laid_out.parallel.tp = ft__served_gpus(engines[i]); /* exchanges among all of them */
        ft__request_still_idle(&said, &laid_out, at, &count);
    }
    out->idle = (ft_idle_list){.count = 0};
    for (size_t i = 0; i < count; i++) {
        bool travels = out->prefill_served.device && ft__keys[at[i].key].section == FT_SECTION_CLUSTER;
        if (!travels || as_fast(&out->served, read->cluster, at[i].key)) ft__idle_put(&out->idle, at[i].key, at[i].why);
    }
    for (size_t i = 0; i < r->idle.count; i++) ft__idle_put(&out->idle, r->idle.at[i].key, r->idle.at[i].why);
    return FT_OK;
}

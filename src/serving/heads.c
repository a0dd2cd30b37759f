/* heads.c: tensor ranks that a model's heads can be dealt to. */
#include "serving/heads.h"

/* Engines give every tensor rank as many heads as the others, and share those of the cache between whole ranks. */
static bool deals_heads(const ft_arch *a, int64_t tp)
{
    const int64_t kv = a->kv_heads;
    return a->heads % tp == 0 && (kv < 1 || (kv >= tp ? kv % tp == 0 : tp % kv == 0));
}

ft_status ft__served_heads(const ft_served *m, const char *key, ft_error *err)
{
    const ft_arch *a = m->arch;
    int64_t below = m->tp - 1, above = m->tp + 1;
    if (a->heads < 1 || deals_heads(a, m->tp)) return FT_OK;
    while (below > 1 && !deals_heads(a, below)) below--;
    while (above < a->heads && !deals_heads(a, above)) above++;
    const bool queries = a->heads % m->tp;
    return ft__fail_at(err, FT_E_RANGE, key, 0, 0,
                       "\"tp\" %lld does not divide the model's %lld %s heads; %lld or %lld would", (long long)m->tp,
                       (long long)(queries ? a->heads : a->kv_heads), queries ? "attention" : "key-value",
                       (long long)below, (long long)above);
}

/* config_window.c: which layers look through a sliding window. `window` is its width, 0 where no layer has one, and of
 * each `window_every` layers the last one is full (0: all alike). */
#include <string.h>

#include "base/json.h"
#include "model/config_type.h"

static bool is_sliding(const json_t *layer)
{
    const char *kind = json_string_value(layer);
    return kind && (strstr(kind, "sliding") || strstr(kind, "local"));
}

/* The list says it layer by layer. A rhythm is read as it is; without one, as many full layers at equal distances. */
static void read_layer_types(const json_t *list, ft_arch *a)
{
    size_t layers = json_array_size(list), sliding = 0, first_full = layers;
    if ((int64_t)layers > a->layers) layers = (size_t)a->layers;
    for (size_t i = 0; i < layers; i++) {
        if (is_sliding(json_array_get(list, i)))
            sliding++;
        else if (first_full > i)
            first_full = i;
    }
    if (!layers) return;
    if (!sliding) a->window = 0;
    if (!sliding || sliding == layers) {
        a->window_every = 0;
        return;
    }
    bool rhythm = first_full > 0;
    for (size_t i = 0; i < layers && rhythm; i++)
        rhythm = is_sliding(json_array_get(list, i)) == ((i + 1) % (first_full + 1) != 0);
    size_t full = layers - sliding;
    a->window_every = (int64_t)(rhythm ? first_full + 1 : (layers + full / 2) / full);
    if (a->window_every < 2) a->window_every = 2;
}

/* Qwen keeps a window in every config and switches it off beside it. */
static ft_status read_switch(const ft_reading *r, ft_arch *a)
{
    int64_t from = 0;
    bool used = false;
    FT_TRY(ft__config_flag(r, "use_sliding_window", &used));
    if (!used) a->window = 0;
    if (!a->window || json_is_null(json_object_get(r->config, "max_window_layers"))) return FT_OK;
    FT_TRY(ft__json_whole(r->config, "max_window_layers", FT_OPTIONAL, 0, 1 << 30, &from, r->where, r->err));
    /* Layers below it are full. Two runs of layers are read as all full, which never promises too little time. */
    if (from > 0) a->window = 0;
    return FT_OK;
}

ft_status ft__config_window(const ft_reading *r, ft_arch *a)
{
    const json_t *list = json_object_get(r->config, "layer_types");
    if (a->window && !strncmp(a->model_type, "qwen", 4)) FT_TRY(read_switch(r, a));
    if (a->window && json_is_array(list)) read_layer_types(list, a);
    if (!a->window || a->window_every < 2) a->window_every = 0;
    return FT_OK;
}

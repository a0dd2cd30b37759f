/* window.c: which layers look through a sliding window, and which are not rotated. `window` is its width, 0
 * where no layer has one, and of each `window_every` layers the last one is full (0: all alike). */
#include <string.h>

#include "base/json.h"
#include "import/config/type.h"

static bool is_sliding(const json_t *layer)
{
    const char *kind = json_string_value(layer);
    return kind && (strstr(kind, "sliding") || strstr(kind, "local") || strstr(kind, "chunked"));
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
    if (a->window && list && !json_is_null(list) && !json_is_array(list))
        return ft__config_fail(r, FT_E_TYPE, "layer_types", "\"layer_types\" must be a list, one word a layer");
    if (a->window && json_is_array(list)) read_layer_types(list, a);
    if (!a->window || a->window_every < 2) a->window_every = 0;
    return FT_OK;
}

/* 1 where a layer is rotated, 0 where it is not; only a rhythm in which the last of so many is not can be told. */
ft_status ft__config_turns(const ft_reading *r, ft_arch *a)
{
    static const char key[] = "no_rope_layers";
    const json_t *list = json_object_get(r->config, key);
    a->turn_every = 4;
    if (!json_is_null(json_object_get(r->config, "no_rope_layer_interval")))
        FT_TRY(ft__json_whole(r->config, "no_rope_layer_interval", FT_OPTIONAL, 1, 1 << 30, &a->turn_every, r->where,
                              r->err));
    if (json_is_array(list) && json_array_size(list)) {
        size_t layers = json_array_size(list), first = 0;
        if ((int64_t)layers < a->layers) /* longer: the config of a deeper one */
            return ft__config_fail(r, FT_E_RANGE, key, "\"%s\" has %zu entries for %lld layers", key, layers,
                                   (long long)a->layers);
        layers = (size_t)a->layers;
        for (size_t i = 0; i < layers; i++)
            if (!json_is_integer(json_array_get(list, i)) || json_integer_value(json_array_get(list, i)) >> 1)
                return ft__config_fail(r, FT_E_TYPE, key, "layer %zu of \"%s\" must be 1 (rotated) or 0", i + 1, key);
        while (first < layers && json_integer_value(json_array_get(list, first))) first++;
        a->turn_every = first < layers ? (int64_t)first + 1 : 0;
        for (size_t i = 0; i < layers && a->turn_every; i++)
            if (!json_integer_value(json_array_get(list, i)) != ((int64_t)(i + 1) % a->turn_every == 0))
                return ft__config_fail(r, FT_E_UNSUPPORTED, key,
                                       "layers without rotation are supported where they come at equal distances: "
                                       "layer %zu breaks the rhythm of %lld",
                                       i + 1, (long long)a->turn_every);
    } else if (list && !json_is_null(list) && !json_is_array(list)) {
        return ft__config_fail(r, FT_E_TYPE, key, "\"%s\" must be a list with 1 for each layer that is rotated", key);
    }
    if (a->turn_every == 1) a->position = FT_NO_POSITION;
    return FT_OK;
}

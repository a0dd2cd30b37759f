/* activation.c: Hugging Face's names of activations, and the function that each computes. */
#include <string.h>

#include "base/text.h"
#include "import/config/type.h"

/* Names of transformers.activations, and two of diffusers, as the name of the function they compute. */
static const struct {
    const char *name, *means;
} activations[] = {
    {"gelu", "gelu"},
    {"gelu_new", "gelu_new"},
    {"silu", "silu"},
    {"relu", "relu"},
    {"gelu_pytorch_tanh", "gelu_pytorch_tanh"},
    {"quick_gelu", "quick_gelu"},
    {"relu2", "relu2"},
    {"gelu_fast", "gelu_fast"},
    {"swish", "silu"},
    {"gelu_python", "gelu"},
    {"gelu_accurate", "gelu_new"},
    {"gelu-approximate", "gelu_pytorch_tanh"},
    {"gelu_tanh", "gelu_pytorch_tanh"},
    {"tanh", "tanh"},
    {"sigmoid", "sigmoid"},
    {"xielu", "xielu"},
    {"swigluoai", "silu"},
    {"situ", "silu"},
};
enum { ACTIVATION_COUNT = sizeof activations / sizeof *activations };

ft_status ft__config_activation(const ft_reading *r, const char *key, const char *name, const char **out)
{
    const char *names[ACTIVATION_COUNT];
    for (size_t i = 0; i < ACTIVATION_COUNT; i++) {
        names[i] = activations[i].name;
        if (strcmp(name, names[i]) != 0) continue;
        *out = activations[i].means;
        return FT_OK;
    }
    const char *nearest = ft__nearest(name, names, ACTIVATION_COUNT);
    int shown = (int)ft__utf8_cut(name, 60);
    if (nearest)
        return ft__config_fail(r, FT_E_NAME, key, "unknown activation \"%.*s\"; did you mean \"%s\"?", shown, name,
                               nearest);
    return ft__config_fail(r, FT_E_NAME, key,
                           "unknown activation \"%.*s\"; known are gelu, gelu_new, silu, relu and %d "
                           "more",
                           shown, name, ACTIVATION_COUNT - 4);
}

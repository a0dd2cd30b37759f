/* pointwise.c: PyTorch's derivative formulas, as the kernels they launch. */
#include "graph/pointwise.h"

#include <string.h>

static const ft_gradient gradients[] = {
    {"add", "", ""},
    {"sub", "", "neg:g"},
    {"mul", "mul:gw", "mul:gx"},
    {"div", "div:gw", "neg:g div:xw div:2w mul:13"}, /* -g * ((x / w) / w) */
    {"addu", "", NULL},
    {"mulu", "mulu:g", NULL},
    {"divu", "divu:g", NULL},
    {"scalar_mul", "mulu:g", NULL},
    {"powu", "powu:x mulu:1 mul:g2", NULL}, /* g * (e * x^(e-1)) */
    {"pow", "powu:x mulu:1 mul:g2", NULL},
    {"rsqrt", "mulu:g powu:y mul:12", NULL}, /* -g/2 * y^3 */
    {"sqrt", "mulu:y div:g1", NULL},
    {"neg", "neg:g", NULL},
    {"exp", "mul:gy", NULL},
    {"cos", "sin:x neg:1 mul:g2", NULL},
    {"sin", "cos:x mul:g1", NULL},
    {"log", "div:gx", NULL},
    {"copy", "copy:g", NULL},
    {"relu", "relu_backward:gy", NULL},
    {"gelu", "gelu_backward:gx", NULL},
    /* bloom's own function: keeps x alone and computes everything again */
    {"gelu_again",
     "mulu:x mulu:x mul:12 addu:3 mul:14 tanh:5 mulu:x mul:66 addu:8 mulu:9 mul:9x addu:9 mul:96 mul:96 addu:6 mulu:9 "
     "add:96 mul:9g",
     NULL},
    {"silu", "silu_backward:gx", NULL},
    {"softplus", "silu_backward:gx", NULL},
    {"swiglu", "swiglu_backward:gx", NULL}, /* both halves in one kernel */
    {"tanh", "tanh_backward:gy", NULL},
    {"sigmoid", "sigmoid_backward:gy", NULL},
    {"clamp", "compare:x compare:x compare:12 where:g3", NULL}, /* within both limits; a choice of g or zero */
    {"clamp_max", "compare:x where:g1", NULL},
    {"dropout", "mulu:gm", NULL}, /* masked_scale: gradient and mask in */
    {"masked_fill", "copy:g masked_fill!:1w", NULL},
    {"where", "where:gw", NULL},
    {"cast_fp32", "cast_back:g", NULL},
    {"cast_bf16", "cast_back:g", NULL},
    {"cast_fp16", "cast_back:g", NULL},
};

const ft_gradient *ft__gradient_find(const char *op)
{
    static const ft_gradient unknown = {"", "mul:gx", "mul:gx"};
    for (size_t i = 0; i < sizeof gradients / sizeof *gradients; i++)
        if (!strcmp(gradients[i].op, op)) return &gradients[i];
    return &unknown;
}

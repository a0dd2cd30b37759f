/* pointwise.c: PyTorch's derivative formulas, as the kernels they launch. */
#include "graph/pointwise.h"

#include <string.h>

static const ft_gradient gradients[] = {
    {"add", "", "", NULL},
    {"add_by_place", "", "", NULL},
    {"sub", "", "neg:g", NULL},
    {"mul", "mul:gw", "mul:gx", NULL},
    {"div", "div:gw", "neg:g div:xw div:2w mul:13", NULL}, /* -g * ((x / w) / w) */
    {"addu", "", NULL, NULL},
    {"mulu", "mulu:g", NULL, NULL},
    {"divu", "divu:g", NULL, NULL},
    {"scalar_mul", "mulu:g", NULL, NULL},
    {"powu", "powu:x mulu:1 mul:g2", NULL, NULL}, /* g * (e * x^(e-1)) */
    {"pow", "powu:x mulu:1 mul:g2", NULL, NULL},
    {"rsqrt", "mulu:g powu:y mul:12", NULL, NULL}, /* -g/2 * y^3 */
    {"sqrt", "mulu:y div:g1", NULL, NULL},
    {"neg", "neg:g", NULL, NULL},
    {"exp", "mul:gy", NULL, NULL},
    {"cos", "sin:x neg:1 mul:g2", NULL, NULL},
    {"sin", "cos:x mul:g1", NULL, NULL},
    {"log", "div:gx", NULL, NULL},
    {"copy", "copy:g", NULL, NULL},
    {"relu", "relu_backward:gy", NULL, NULL},
    {"relu2", "relu_backward:gx", NULL, NULL},       /* compiled into one kernel each way */
    {"relu2_weighed", "relu_backward:gx", "", NULL}, /* times a weight per row, as swiglu_weighed */
    {"gelu", "gelu_backward:gx", NULL, NULL},
    /* bloom's own function: keeps x alone and computes everything again */
    {"gelu_again",
     "mulu:x mulu:x mul:12 addu:3 mul:14 tanh:5 mulu:x mul:66 addu:8 mulu:9 mul:9x addu:9 mul:96 mul:96 addu:6 mulu:9 "
     "add:96 mul:9g",
     NULL, NULL},
    {"silu", "silu_backward:gx", NULL, NULL},
    {"softplus", "silu_backward:gx", NULL, NULL},
    {"swiglu", "swiglu_backward:gx", NULL, NULL},       /* both halves in one kernel */
    {"swiglu_weighed", "swiglu_backward:gx", "", NULL}, /* times a weight per row, whose gradient is a sum along it */
    {"tanh", "tanh_backward:gy", NULL, NULL},
    {"sigmoid", "sigmoid_backward:gy", NULL, NULL},
    {"clamp", "compare:x compare:x compare:12 where:g3", NULL, NULL}, /* within both limits; a choice of g or zero */
    {"clamp_max", "compare:x where:g1", NULL, NULL},
    {"dropout", "mulu:gm", NULL, NULL}, /* masked_scale: gradient and mask in */
    {"masked_fill", "copy:g masked_fill!:1w", NULL, NULL},
    {"where", "where:gw", NULL, "where:gw"}, /* x, the condition, the other choice */
    /* half of it where both are equal, nothing where it is the other */
    {"maximum", "compare:xw divu:g where:g12 compare:xw masked_fill!:34",
     "compare:xw divu:g where:g12 compare:xw masked_fill!:34", NULL},
    {"minimum", "compare:xw divu:g where:g12 compare:xw masked_fill!:34",
     "compare:xw divu:g where:g12 compare:xw masked_fill!:34", NULL},
    {"addcmul", "", "mulu:v mul:g1", "mulu:w mul:g1"}, /* g * (the other * value), whatever the value */
    {"addcdiv", "", "div:gv", "mul:gw div:1v div:2v neg:3"},
    {"lerp", "mulu:g", "mulu:g", "sub:wx mul:g1"},
    {"abs", "neg:x mul:g1", NULL, NULL}, /* its sign */
    {"square", "powu:x mulu:1 mul:g2", NULL, NULL},
    {"reciprocal", "neg:g mul:yy mul:12", NULL, NULL},
    {"log2", "mulu:x div:g1", NULL, NULL},
    {"log1p", "addu:x div:g1", NULL, NULL},
    {"expm1", "addu:y mul:g1", NULL, NULL},
    {"erf", "powu:x neg:1 exp:2 mulu:3 mul:g4", NULL, NULL},
    {"tan", "powu:y addu:1 mul:g2", NULL, NULL},
    {"clamp_min", "compare:x where:g1", NULL, NULL},
    {"leaky_relu", "relu_backward:gx", NULL, NULL},
    {"relu6", "relu_backward:gx", NULL, NULL},
    {"hardtanh", "relu_backward:gx", NULL, NULL},
    {"hardsigmoid", "relu_backward:gx", NULL, NULL},
    {"hardswish", "relu_backward:gx", NULL, NULL},
    {"elu", "silu_backward:gx", NULL, NULL},
    {"selu", "silu_backward:gx", NULL, NULL},
    {"mish", "silu_backward:gx", NULL, NULL},
    {"log_sigmoid", "silu_backward:gx", NULL, NULL},
    {"tril", "mulu:g", NULL, NULL},
    {"triu", "mulu:g", NULL, NULL},
    {"subu", "neg:g", NULL, NULL},      /* a number minus x */
    {"mse_loss", "sub:xw", NULL, NULL}, /* one kernel of both; so are these */
    {"bce_with_logits", "sigmoid:x sub:1w mul:2g divu:3", NULL, NULL},
    {"cast_fp32", "cast_back:g", NULL, NULL},
    {"cast_bf16", "cast_back:g", NULL, NULL},
    {"cast_fp16", "cast_back:g", NULL, NULL},
};

const ft_gradient *ft__gradient_find(const char *op)
{
    static const ft_gradient unknown = {"", "mul:gx", "mul:gx", "mul:gx"};
    for (size_t i = 0; i < sizeof gradients / sizeof *gradients; i++)
        if (!strcmp(gradients[i].op, op)) return &gradients[i];
    return &unknown;
}

/* A family: a physical model with few constants, and the dimensionless features in which its learned correction
 * is expressed. Everything generic (fitting, trees, intervals, kinship) works on this table; adding an operator family
 * is adding one file with one ft_family and a line in family.c.
 *
 * The forecast of a family is
 *     device time  T = launch + body(device, op; theta)
 *     op time      T_op = max(gap, T + gap / 2)            one eager call: the host's way to the launch never hides
 *     answer       T * exp(w * trees(features))            never under the floor
 * theta[0] is the launch in µs at 1.8 GHz (it is spent in clocks) and theta[1] the eager gap in µs (it is spent on the
 * host), in every family. */
#ifndef FT_KERNEL_FAMILY_H
#define FT_KERNEL_FAMILY_H
#include "device/traits.h"

enum { FT_MAX_THETA = 28, FT_MAX_FEATURES = 48, FT_MAX_VARIANTS = 64, FT_MAX_FAMILIES = 16 };
enum { FT_THETA_LAUNCH_US = 0, FT_THETA_GAP_US = 1 };

/* One constant. It is searched as exp(x) when `low` > 0, around `start`, with a Gaussian prior of `spread` (natural
 * log) that keeps what the data does not determine where physics put it; spread 0 freezes it. */
typedef struct ft_parameter {
    const char *name;
    double start, low, high, spread;
} ft_parameter;

typedef struct ft_physics {
    bool older;                   /* asked with it: kernels as software had them when the expert's rows were taken */
    double body_ms;               /* beyond the launch */
    double compute_ms, memory_ms; /* the two roofs inside body, to tell which one holds */
    int tile_m, tile_n, split_k;  /* 0: none */
    double tiles, waves;
    double
        spread; /* > 0: its figures are its own, not of an expert's rows: nothing learned applies, and so wide (log) */
    bool nothing;                   /* no kernel runs: shorter than any */
    const char *note;               /* static text or NULL */
    float feature[FT_MAX_FEATURES]; /* filled only when asked */
} ft_physics;

typedef struct ft_family {
    const char *name;
    const ft_parameter *parameters;
    int parameter_count;
    const char *const *feature_names;
    int feature_count;
    bool repeated; /* its tables ask few sizes over and over: there is more to learn than the count of rows says */
    bool falls; /* its library falls to slower kernels here and there, by no rule we know: constants follow the rest */
    /* Operators of one family are fitted apart when they are different programs: per dtype class, per row operator.
     * variant_of returns -1 for an op that is not this family's. fallback: the variant to use when the predictor
     * has never seen this one (fp4 -> fp8), -1 for none. */
    int variant_count;
    int (*variant_of)(const ft_op *op);
    const char *(*variant_name)(int variant);
    int (*variant_fallback)(int variant);
    /* The variant whose constants, fitted to this GPU or its generation, stand for this one's where those are another
     * generation's (a forward pass for its gradients); -1 for none, NULL: for no variant. */
    int (*variant_lent)(int variant);
    /* Says in such constants, which were copied, what nobody measured of this variant; NULL: nothing. */
    void (*lend)(double *theta);
    void (*physics)(const ft_device *device, const ft_op *op, const double *theta, bool want_features, ft_physics *out);
} ft_family;

/* Fixed times inside a GPU are numbers of clocks; constants give them at 1.8 GHz. */
static inline double ft__clock_scale(const ft_device *device) { return 1800 / ft__running_mhz(device); }

extern const ft_family *const ft__families[];
extern const int ft__family_count;
const ft_family *ft__family_of(const ft_op *op, int *variant); /* NULL: none, roofline answers */
int ft__family_find(const char *name);                         /* index or -1 */
/* What users name: "moe", all of a family, or "moe/triton_half", one variant. */
bool ft__cell_named(const char *name, const ft_family *family, int variant);
ft_status ft__cell_known(const char *name, ft_error *err);
#endif

/* manner.c: what the manner of a kernel does to its time. All of it was measured on one GPU, beside the family's own
 * kernel of the same sizes (data/constants/kernel/manner.json), and is taken to be the same share on others. */
#include "kernel/manner.h"

#include <math.h>

#include "kernel/manner_constants.h"

/* Routing is uneven and every group's last tile of rows part empty. */
static double uneven(double each)
{
    return fmin(FT_K_MANNER_UNEVEN_MOST, FT_K_MANNER_UNEVEN_LEAST + FT_K_MANNER_UNEVEN_ROWS / each);
}

/* Rows that share an index are added one after the other. */
static double meeting(double each, const ft_op *op)
{
    return fmax(1, each * FT_K_MANNER_MEET_ELEMENTS / (double)op->u.elementwise.numel);
}

static double of_attention(unsigned manner, ft_pass pass)
{
    double effort = 1;
    if (pass == FT_PASS_FWD) {
        if (manner & FT_MANNER_DROPOUT) effort *= FT_K_MANNER_DROPOUT_FORWARD;
        if (manner & FT_MANNER_MASK_ADDED) effort *= FT_K_MANNER_MASK_FORWARD;
    } else { /* a mask costs as much beside five products as beside two, dropout less: drawn once more */
        if (manner & FT_MANNER_MASK) effort *= FT_K_MANNER_MASK_BACKWARD;
        if (manner & FT_MANNER_DROPOUT) effort *= FT_K_MANNER_DROPOUT_BACKWARD;
    }
    return effort;
}

double ft__manner_effort(unsigned manner, double each, const ft_op *op)
{
    static const struct {
        ft_manner manner;
        double effort;
    } list[] = {
        {FT_MANNER_VECTOR, FT_K_MANNER_VECTOR},     {FT_MANNER_VECTOR_ACROSS, FT_K_MANNER_VECTOR_ACROSS},
        {FT_MANNER_ODD_ROWS, FT_K_MANNER_ODD_ROWS}, {FT_MANNER_DEPTHWISE_LAST, FT_K_MANNER_DEPTHWISE_LAST},
        {FT_MANNER_SELECT, FT_K_MANNER_SELECT},     {FT_MANNER_ACROSS, FT_K_MANNER_ACROSS},
        {FT_MANNER_ONE_OVER, FT_K_MANNER_ONE_OVER}, {FT_MANNER_JOIN_UNLIKE, FT_K_MANNER_JOIN_UNLIKE},
        {FT_MANNER_JOIN_ODD, FT_K_MANNER_JOIN_ODD},
    };
    if (!manner) return 1;
    if (op->kind == FT_OP_ATTENTION) return of_attention(manner, op->pass);
    double effort = 1;
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (manner & (unsigned)list[i].manner) effort *= list[i].effort;
    if (manner & FT_MANNER_UNEVEN) effort *= uneven(each);
    if (manner & FT_MANNER_MEET && op->kind == FT_OP_ELEMENTWISE) effort *= meeting(each, op);
    return effort;
}

double ft__manner_traffic(unsigned manner)
{
    return manner & FT_MANNER_MASK          ? FT_K_MANNER_MASK_TRAFFIC
           : manner & FT_MANNER_CAUSAL_CONV ? FT_K_MANNER_CAUSAL_CONV_TRAFFIC
                                            : 1;
}

static const struct {
    double trips, blocks;
} walks[FT_WALK_COUNT] = {
    [FT_WALK_MOMENTS] = {1, 1},
    [FT_WALK_MOMENTS_LAST] = {FT_K_MANNER_MOMENTS_LAST, 1},
    [FT_WALK_NORM_BOTH] = {FT_K_MANNER_NORM_BOTH, 1},
    [FT_WALK_NORM] = {1, 1},
    [FT_WALK_NORM_SMALL] = {1, FT_K_MANNER_NORM_SMALL_BLOCKS},
    [FT_WALK_NORM_LAST] = {FT_K_MANNER_NORM_LAST, 1},
    [FT_WALK_NORM_BACKWARD] = {FT_K_MANNER_NORM_BACKWARD, 1},
    [FT_WALK_NORM_BACKWARD_LOW] = {FT_K_MANNER_NORM_BACKWARD_LOW, 1},
    [FT_WALK_NORM_BACKWARD_LAST] = {FT_K_MANNER_NORM_BACKWARD_LAST, 1},
    [FT_WALK_POOL] = {FT_K_MANNER_POOL, 1},
    [FT_WALK_POOL_BACKWARD] = {FT_K_MANNER_POOL_BACKWARD, 1},
};

/* As long as its waits: a trip to memory, as often as a thread makes one, for every round of blocks that the GPU
 * holds. */
double ft__walk_ms(const ft_device *device, ft_walk walk, double trips, double blocks)
{
    if (walk == FT_WALK_NONE || (unsigned)walk >= FT_WALK_COUNT || !(trips > 0)) return 0;
    double rounds = fmax(1, blocks * walks[walk].blocks / (FT_K_MANNER_BLOCKS_PER_SM * device->sms));
    return FT_K_MANNER_TRIP_US * 1e-3 * (trips * walks[walk].trips) * rounds;
}

/* Constants of the family of convolutions, by place: for conv.c and conv_product.c alone. */
#ifndef FT_KERNEL_CONV_THETA_H
#define FT_KERNEL_CONV_THETA_H
#include "kernel/family.h"

enum {
    LAUNCH = FT_THETA_LAUNCH_US,
    GAP = FT_THETA_GAP_US,
    EC,
    EB,
    WAVE_US,
    FEED,
    PROLOGUE,
    SPLIT_US,
    SMOOTH,
    TAPS9,
    TAPS49,
    HABIT,
    HOLES,
    NARROW,
    SKEW,
    DATA,
    WEIGHTS,
    STRIDED,
    DIRECT,
    PAD_EB,
    POINT_WAVE_US,
    POINT_PROLOGUE,
    TRANSPOSE_US,
    TRANSPOSE_EB,
    WINOGRAD,
    SECOND_US,
    LEAD_US,
    FOURIER,
    THETA_COUNT
};
/* DATA below zero: nobody measured this GPU's gradients. An image's without a stride is a convolution itself, with
 * turned filters, and the library has the result's algorithms for it, at whose rate it goes, with their gain. */
static inline double ft__conv_data(const double *theta, double gain, double gaps)
{
    return theta[DATA] > 0 ? theta[DATA] : gaps < 1 ? -theta[DATA] : gain;
}
#endif

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
#endif

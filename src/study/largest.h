/* The largest model of a family that trains or serves. */
#ifndef FT_STUDY_LARGEST_H
#define FT_STUDY_LARGEST_H
#include "request/largest.h"
#include "study/context.h"
#include "study/days.h"

typedef struct ft_largest {
    const char *family;
    bool training;
    int64_t gpus;
    ft_device device;
    int64_t layers, hidden, heads, ffn, vocab; /* of the largest that fits; layers 0: none does */
    double parameters;
    double need_bytes;      /* on the GPU that holds most: reserved, and the context */
    double state_bytes;     /* weights, gradients and optimizer states among them */
    double next_parameters; /* one layer more */
    double next_short_bytes;
    ft_days days;      /* training */
    ft_step_view view; /* its step; lives until the next one with the same scratch. Of nothing where none fits */
} ft_largest;

ft_status ft__largest_of(const ft_context *ft, ft_scratch *scratch, const ft_largest_request *r, ft_largest *out,
                         ft_error *err);
#endif

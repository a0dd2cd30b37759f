/* One image, or one video, of a prompt: its parts, their time, what they hold. */
#ifndef FT_STUDY_GENERATE_H
#define FT_STUDY_GENERATE_H
#include "kernel/energy.h"
#include "study/context.h"
#include "study/generators.h"

enum { FT_MOST_PARTS = FT_MOST_TEXTS + 3 };

typedef struct ft_generated_part {
    const char *what;                 /* "text", "denoiser", "decoder", "finish": the host makes a file of it */
    const char *model;                /* in the catalogue's words; "" where it is none */
    double calls;                     /* forward passes */
    double ms, low_ms, high_ms;       /* of all of them */
    double weights_bytes, need_bytes; /* need: alone on the GPU, with what the framework holds */
    double joules;                    /* of kernels */
} ft_generated_part;

typedef struct ft_generated {
    const ft_generator *by; /* NULL: nobody knows what makes images of this model */
    int64_t steps, batch;   /* batch: images at once */
    ft_guidance guidance;
    bool tiled;
    ft_picture_size size;
    ft_execution execution;
    ft_attention_kind attention;
    ft_generated_part parts[FT_MOST_PARTS];
    size_t part_count;
    double ms, low_ms, high_ms; /* of a batch; every part stays on the GPU */
    double need_bytes, capacity_bytes;
    ft_fit fits;
    /* Parts lie in the host's memory and come when it is their turn (diffusers' enable_model_cpu_offload). */
    double offload_ms, offload_low_ms, offload_high_ms, offload_need_bytes;
    ft_fit offload_fits;
    ft_energy energy;
} ft_generated;

typedef struct ft_generate_asked {
    const json_t *object; /* the request of a forward pass of the denoiser */
    int64_t steps, batch; /* steps 0: the usual number */
    int guidance;         /* -1: the usual one */
    bool tiled;
} ft_generate_asked;

/* Which generator the model of a request belongs to; NULL: none. */
const ft_generator *ft__generator_of(const json_t *object);
/* Empties the scratch's arena; what it fills points into none. */
ft_status ft__generate_of(const ft_context *ft, ft_scratch *scratch, const ft_generate_asked *asked, ft_generated *out,
                          ft_error *err);
#endif

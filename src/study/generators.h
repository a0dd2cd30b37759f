/* What makes images and videos of prompts, by data/generators: which text encoders read the prompt, how often the
 * denoiser runs, what decodes its latents. Made by scripts/embed_generators.py. */
#ifndef FT_STUDY_GENERATORS_H
#define FT_STUDY_GENERATORS_H
#include <stddef.h>
#include <stdint.h>

#include "model/picture_size.h"

/* How the prompt's direction is strengthened: not at all, or inside the model; both halves in one doubled batch; the
 * second half in a pass of its own. */
typedef enum ft_guidance { FT_GUIDE_NONE, FT_GUIDE_BATCH, FT_GUIDE_TWICE, FT_GUIDE_COUNT } ft_guidance;
typedef enum ft_wide_decoder { FT_WIDE_NEVER, FT_WIDE_FOR_FP16, FT_WIDE_ALWAYS } ft_wide_decoder;

enum { FT_MOST_TEXTS = 3, FT_MOST_MADE_BY = 2 };

typedef struct ft_text_encoder {
    const char *model;
    int64_t seq, calls; /* calls: one for the prompt, one more for what guidance turns away from */
} ft_text_encoder;

typedef struct ft_generator {
    const char *name;
    const char *models[FT_MOST_MADE_BY]; /* denoisers, by their names in the catalogue or as they are asked for */
    int64_t steps;
    ft_guidance guidance;
    ft_picture_size size; /* frames 0: an image */
    int64_t words;        /* that the denoiser reads, where not as many as its config says; 0: as many */
    int64_t copies;       /* transformers that take turns and all lie in memory */
    size_t text_count;
    ft_text_encoder text[FT_MOST_TEXTS];
    const char *decoder;  /* ""; of this one nobody knows the operators here */
    int64_t tile;         /* pixels of a side, where it is decoded in tiles */
    ft_wide_decoder wide; /* the decoder runs in fp32, whose filters are TF32 */
    const char *source;
} ft_generator;

extern const ft_generator ft__generators[];
extern const size_t ft__generator_count;
#endif

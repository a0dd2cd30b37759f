/* positions.c: see positions.h. A table of learned positions ends. Rotary ones go on, with angles that the model has
 * never seen: time and memory are as forecast, and engines refuse such requests (max_model_len, context_length). */
#include "request/positions.h"

#include <inttypes.h>
#include <stdio.h>

void ft__beyond_positions(const ft_arch *a, ft_beyond what, double tokens, char out[FT_BEYOND_ROOM])
{
    static const char *const subjects[] = {[FT_BEYOND_SEQ] = "\"seq\" %.0f is",
                                           [FT_BEYOND_SEQUENCES] = "sequences of %.0f tokens are",
                                           [FT_BEYOND_REQUESTS] = "requests of %.0f tokens are"};
    char subject[64];
    *out = '\0';
    if (a->reach < 1 || tokens <= (double)a->reach || ft__counts_samples(a)) return;
    const char *why = "that the model has embeddings for";
    if (a->position != FT_LEARNED_POSITION)
        why = what == FT_BEYOND_REQUESTS
                  ? "that the model's config allows: engines refuse them unless it scales them (rope_scaling)"
                  : "that the model's config allows: more of them need scaling (rope_scaling)";
    snprintf(subject, sizeof subject, subjects[what], tokens);
    snprintf(out, FT_BEYOND_ROOM, "%s beyond the %" PRId64 " positions %s", subject, a->reach, why);
}

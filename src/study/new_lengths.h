/* Batches of a run that are the first of their length. */
#ifndef FT_STUDY_NEW_LENGTHS_H
#define FT_STUDY_NEW_LENGTHS_H
#include "request/model.h"

typedef struct ft_new_lengths {
    double ms;             /* what such a batch takes longer; 0: nothing, and the others are not known */
    double count, batches; /* how many a process meets in a run, of so many batches */
} ft_new_lengths;

/* `kept`: the share of sequences that are trained on. */
ft_new_lengths ft__new_lengths(const ft_model_request *r, double kept);
#endif

/* How long the answers are that a step trains on: lognormal with a mean, cut off at the longest. */
#ifndef FT_STUDY_ANSWER_LENGTHS_H
#define FT_STUDY_ANSWER_LENGTHS_H
#include <stdint.h>

/* The width that makes the longest of so many answers as long as it is: the lower root of ln(longest / mean) =
 * z width - width^2 / 2. Where there is none, the widest whose upper end lies there. */
double ft__answer_width(double mean, double longest, double all);
/* Packs of `pack` tokens that hold sequences, a prompt and such an answer each: the share of their tokens that
 * sequences have, the longest put first where there is room (NeMo RL's modified_first_fit_decreasing, about). */
double ft__answer_filling(double prompt, double mean, double longest, double all, double pack);
#endif

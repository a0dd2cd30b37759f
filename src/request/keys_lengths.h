/* Keys inside `lengths`, one row each. How a row reads is said in keys_list.h. */
#ifndef FT_REQUEST_KEYS_LENGTHS_H
#define FT_REQUEST_KEYS_LENGTHS_H

#define FT_LENGTHS_KEYS(FLAG, PLAIN)                                                                                   \
    PLAIN(LENGTHS_OF, "name", TEXT, 0, 0, NO_WORDS, DEPENDS,                                                           \
      "the figures of a public data set; keys given next to it override them")                                         \
    PLAIN(LENGTHS_MEAN, "mean", REAL, 1, 1e9, NO_WORDS, DEPENDS, "tokens of a sequence")                               \
    PLAIN(LENGTHS_SPREAD, "spread", REAL, 0, 1e9, NO_WORDS, DEPENDS, "their standard deviation; lengths are lognormal")\
    PLAIN(LENGTHS_MIN, "min", REAL, 1, 1e9, NO_WORDS, 1, "1; the shortest sequence")                                   \
    PLAIN(LENGTHS_MAX, "max", REAL, 1, 1e9, NO_WORDS, DEPENDS, "none; the longest sequence, before `seq` cuts or "     \
                                                               "drops it")                                             \
    PLAIN(LENGTHS_SAMPLES, "samples", REAL, 1, 1e12, NO_WORDS, DEPENDS,                                                \
      "the data set's, or 10,000: sequences in a run; the longest of them sets the peak memory")
#endif

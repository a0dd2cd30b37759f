/* Forests in the one order that packs best, saying what they said. */
#ifndef FT_FIT_TIDY_H
#define FT_FIT_TIDY_H
#include "kernel/forest.h"

void ft__trees_tidy(ft_tree *trees, size_t count);
#endif

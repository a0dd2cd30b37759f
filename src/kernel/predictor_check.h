/* What files of experts and trees have in common: their checksum, and what makes a record impossible. */
#ifndef FT_KERNEL_PREDICTOR_CHECK_H
#define FT_KERNEL_PREDICTOR_CHECK_H
#include "kernel/predictor.h"

uint64_t ft__records_checksum(const unsigned char *at, size_t length);
bool ft__expert_sound(const ft_expert *e, size_t trees);
bool ft__tree_sound(const ft_tree *t);
#endif

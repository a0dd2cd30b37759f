/* What files of experts and trees have in common: their checksum, and what makes a record impossible. */
#ifndef FT_KERNEL_PREDICTOR_CHECK_H
#define FT_KERNEL_PREDICTOR_CHECK_H
#include "kernel/predictor.h"

uint64_t ft__records_checksum(const unsigned char *at, size_t length);
bool ft__expert_sound(const ft_expert *e, size_t trees);
bool ft__tree_sound(const ft_tree *t);
bool ft__cut_table_sound(const ft_forests *f, size_t table);
/* Its table must be. */
bool ft__tests_sound(const ft_forests *f, size_t tree);
bool ft__forest_of_one_table(const ft_forests *f, const ft_expert *e);
#endif

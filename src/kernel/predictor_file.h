/* The layout of a predictor file: this header, leaves of all trees, their tests, experts, tables of cuts, cuts, and the
 * JSON that says what it was fitted from. All numbers are little-endian, records are the structs of predictor.h and
 * forest.h (fixed-width members, no padding that matters). Leaves come first, so that each fills a cache line. */
#ifndef FT_KERNEL_PREDICTOR_FILE_H
#define FT_KERNEL_PREDICTOR_FILE_H
#include "kernel/predictor.h"

#define FT_PREDICTOR_MAGIC "FORETELL"

typedef struct ft_predictor_header {
    char magic[8];
    uint32_t version, header_bytes;
    uint64_t checksum; /* of everything behind the header */
    uint64_t length;   /* of the file */
    uint32_t expert_count, expert_bytes;
    uint32_t tree_count, tree_bytes; /* leaves and tests of one tree together */
    uint64_t meta_length;
    uint32_t table_count, cut_count;
} ft_predictor_header;

_Static_assert(sizeof(ft_predictor_header) == 64, "the header is one cache line");
_Static_assert(sizeof(ft_leaves) == 64 && sizeof(ft_tests) == 16, "trees are laid out without padding");
_Static_assert(sizeof(ft_expert) % 8 == 0 && sizeof(ft_cut_table) % 4 == 0, "what follows stays aligned");
#endif

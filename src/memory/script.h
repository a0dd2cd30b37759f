/* What a step asks of the allocator, block by block of its graph, written down once to be run many times.
 *
 * A line of a script takes a tensor's memory, gives it back, or touches a workspace; sizes are in the allocator's
 * grains, tensors without memory of their own have no line. Layers between the second and the last but one are alike:
 * of them only what they leave behind is done for each, with the larger tensors that come and go, for what stays is cut
 * from blocks that these left. */
#ifndef FT_MEMORY_SCRIPT_H
#define FT_MEMORY_SCRIPT_H
#include "memory/sweep.h"

typedef enum ft_line_kind {
    FT_LINE_TAKE,
    FT_LINE_GIVE_OLDEST, /* of those that its repeated block made */
    FT_LINE_GIVE_YOUNGEST,
    FT_LINE_TAKE_SMALL, /* up to 1 MiB: counted, not placed */
    FT_LINE_GIVE_SMALL,
    FT_LINE_TOUCH,       /* a node's workspace */
    FT_LINE_TOUCH_SMALL, /* `tensor` is the node */
    FT_LINE_HANDLE,      /* a product: the first one of a thread takes the BLAS's workspace; `tensor` is the thread */
    FT_LINE_UPDATE       /* the optimizer */
} ft_line_kind;

typedef struct ft_line {
    int64_t grains;
    int32_t tensor;
    uint8_t kind, when; /* ft_line_kind; ft_when, by the block's iteration */
} ft_line;

typedef struct ft_script_block {
    const ft_line *lines; /* of one iteration */
    const ft_line *alike; /* of an iteration between the ends; NULL: all are walked */
    int32_t count, alike_count;
    int64_t repeat;
} ft_script_block;

typedef struct ft_script {
    const ft_script_block *blocks; /* the graph's */
    int32_t count;
} ft_script;

enum { FT_SCRIPT_ENDS = 4 }; /* iterations that are walked, two at either end */

/* False: out of memory. */
bool ft__script(const ft_sweep *s, ft_arena *arena, ft_script *out);
#endif

/* One Chakra file being written: messages with their lengths before them. */
#ifndef FT_REPORT_TRACE_CHAKRA_FILE_H
#define FT_REPORT_TRACE_CHAKRA_FILE_H
#include "base/text.h"
#include "graph/graph.h"

enum { FT_CHAKRA_DEPS = 3 };

typedef enum ft_chakra_type { FT_CHAKRA_COMP, FT_CHAKRA_COLL, FT_CHAKRA_SEND, FT_CHAKRA_RECV } ft_chakra_type;

typedef struct ft_chakra_node {
    ft_chakra_type type;
    const char *name;
    int64_t after[FT_CHAKRA_DEPS]; /* ids it waits for; 0: none */
    double ms;
    double flops, bytes; /* of computing; bytes: of the buffer of an exchange */
    ft_exchange_kind exchange;
    int64_t group;         /* of an exchange, as in groups.json */
    int64_t from, to, tag; /* of a send */
} ft_chakra_node;

typedef struct ft_chakra_file {
    ft_text text;            /* bytes, not characters */
    int64_t count;           /* nodes; ids count from 1 */
    double clock_ms, micros; /* durations are whole microseconds whose sum stays true */
} ft_chakra_file;

void ft__chakra_begin(ft_chakra_file *f, const char *note);
/* Returns the node's id. */
int64_t ft__chakra_add(ft_chakra_file *f, const ft_chakra_node *n);
#endif

/* Graph files that several tests ask for. */
#ifndef TESTS_GRAPHFILE_GRAPHS_H
#define TESTS_GRAPHFILE_GRAPHS_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "failing_alloc.h"
#include "graphfile_help.h"

static inline void row_is(const ft_graph *g, const char *name, const char *op, int64_t rows, int64_t cols)
{
    const ft_node *n = help_node(g, FT_FORWARD, name);
    assert_int_equal(FT_OP_ROW, n->op.kind);
    assert_string_equal(op, n->op.name);
    assert_int_equal(rows, n->op.u.row.rows);
    assert_int_equal(cols, n->op.u.row.cols);
}

#endif

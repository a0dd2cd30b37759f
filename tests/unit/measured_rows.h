/* Tables of measurements that tests write and read. */
#ifndef TESTS_MEASURED_ROWS_H
#define TESTS_MEASURED_ROWS_H
#define _DEFAULT_SOURCE /* mkdir */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "data_folder.h"
#include "device/gpu.h"
#include "failing_alloc.h"
#include "fit/fit.h"
#include "fit/measurements.h"
#include "graph/operator.h"
#include "scratch.h"

static inline ft_rows load(const char *folder, const ft_row_filter *filter)
{
    char path[1024];
    const char *folders[] = {path};
    ft_rows rows;
    ft_error err = {0};
    strcpy(path, scratch_path(folder));
    if (ft__rows_load(folders, 1, filter, &rows, &err) != FT_OK)
        fail_msg("%s:%d: %s", err.where, err.line, err.message);
    return rows;
}

/* The folder is refused with this code, at this line of this file, for this reason. */
static inline void refused(const char *folder, ft_status code, const char *file, int line, const char *why)
{
    char path[1024];
    const char *folders[] = {path};
    ft_rows rows;
    ft_error err = {0};
    strcpy(path, scratch_path(folder));
    ft_status s = ft__rows_load(folders, 1, NULL, &rows, &err);
    if (s != code) fail_msg("%s: %s, expected %s: %s", folder, ft_status_name(s), ft_status_name(code), err.message);
    assert_int_equal(0, rows.count);
    assert_null(rows.at);
    assert_string_equal(scratch_path(file), err.where);
    assert_int_equal(line, err.line);
    if (!strstr(err.message, why)) fail_msg("expected \"%s\" in \"%s\"", why, err.message);
}

#define GEMM "dtype,layout,m,n,k,ms,ms_min,ms_max\n"

static inline const ft_row *row_of(const ft_rows *rows, const char *name, double ms)
{
    for (size_t i = 0; i < rows->count; i++)
        if (!strcmp(rows->at[i].op.name, name) && fabs(rows->at[i].ms - ms) < 1e-12) return &rows->at[i];
    fail_msg("no row of %s with %g ms", name, ms);
    return NULL;
}

#endif

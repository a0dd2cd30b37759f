#define _GNU_SOURCE /* mkdtemp, nftw */
#include "scratch.h"

#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

static char folder[512];

int scratch_make(void **state)
{
    (void)state;
    const char *parent = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/foretell-test-XXXXXX", parent && *parent ? parent : "/tmp");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *at)
{
    (void)info, (void)kind, (void)at;
    return remove(path);
}

int scratch_remove(void **state)
{
    (void)state;
    return nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

const char *scratch_path(const char *name)
{
    static char paths[8][1024];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

const char *scratch_file(const char *name, const void *data, size_t length)
{
    const char *path = scratch_path(name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
    return path;
}

const char *scratch_text(const char *name, const char *text) { return scratch_file(name, text, strlen(text)); }

const char *scratch_gzip(const char *name, const void *data, size_t length)
{
    const char *path = scratch_path(name);
    gzFile file = gzopen(path, "wb");
    assert_non_null(file);
    if (length) assert_int_equal(gzwrite(file, data, (unsigned)length), length);
    assert_int_equal(gzclose(file), Z_OK);
    return path;
}

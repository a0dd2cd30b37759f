/* A folder for one test program's files, made in its set-up and removed in its tear-down. */
#ifndef SCRATCH_H
#define SCRATCH_H
#include <stddef.h>

int scratch_make(void **state);   /* cmocka group set-up */
int scratch_remove(void **state); /* cmocka group tear-down */

/* The path of `name` in the folder; one of eight buffers that are used in turn. */
const char *scratch_path(const char *name);
/* Writes a file into it, as it is or gzipped, and gives its path. */
const char *scratch_file(const char *name, const void *data, size_t length);
const char *scratch_text(const char *name, const char *text);
const char *scratch_gzip(const char *name, const void *data, size_t length);
#endif

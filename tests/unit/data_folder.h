/* A folder of measurements inside the scratch folder. */
#ifndef FT_TEST_DATA_FOLDER_H
#define FT_TEST_DATA_FOLDER_H
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "scratch.h"

/* Writes "a/h200/gemm.csv.gz" and the folders above it; gzipped when the name says so. */
static inline void data_table(const char *name, const char *text)
{
    char folder[512];
    for (const char *slash = strchr(name, '/'); slash; slash = strchr(slash + 1, '/')) {
        snprintf(folder, sizeof folder, "%.*s", (int)(slash - name), name);
        mkdir(scratch_path(folder), 0700);
    }
    size_t length = strlen(name);
    if (length > 3 && !strcmp(name + length - 3, ".gz"))
        scratch_gzip(name, text, strlen(text));
    else
        scratch_text(name, text);
}
#endif

#define _GNU_SOURCE /* memfd_create */
#include "fuzz.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SLOTS = 4 };

const char *fuzz_file(int slot, const void *data, size_t size)
{
    static int files[SLOTS];
    static char paths[SLOTS][64];
    if (slot < 0 || slot >= SLOTS) fuzz_broken("slot in range", __FILE__, __LINE__);
    if (!files[slot]) {
        files[slot] = memfd_create("fuzz", 0);
        if (files[slot] < 0) fuzz_broken("memfd_create works", __FILE__, __LINE__);
        snprintf(paths[slot], sizeof paths[slot], "/proc/self/fd/%d", files[slot]);
    }
    FUZZ_CHECK(ftruncate(files[slot], 0) == 0);
    for (size_t done = 0; done < size;) {
        ssize_t put = pwrite(files[slot], (const char *)data + done, size - done, (off_t)done);
        FUZZ_CHECK(put > 0);
        done += (size_t)put;
    }
    return paths[slot];
}

/* Objects of JSON hash the same in every run, so that a seed gives the same inputs again. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    json_object_seed(1);
    return 0;
}

_Noreturn void fuzz_broken(const char *condition, const char *file, int line)
{
    fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, condition);
    abort();
}

/* What the fuzz targets share. A target is one function that libFuzzer calls with bytes; it must neither crash, leak,
 * hang nor break a stated property, whatever the bytes. Add a target: write fuzz_<subject>.c, name it in meson.build,
 * put a few small inputs (good and bad ones) into corpus/fuzz_<subject>/. scripts/fuzz runs it from then on.
 */
#ifndef FUZZ_H
#define FUZZ_H
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

/* A file in memory with these bytes, for readers that take a path. Reused by the next call with the same `slot`. */
const char *fuzz_file(int slot, const void *data, size_t size);

/* Stops the fuzzer with a message: a property does not hold. */
#define FUZZ_CHECK(condition) ((condition) ? (void)0 : fuzz_broken(#condition, __FILE__, __LINE__))
_Noreturn void fuzz_broken(const char *condition, const char *file, int line);
#endif

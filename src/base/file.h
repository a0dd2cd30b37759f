/* Files, by name given from outside. */
#ifndef FT_BASE_FILE_H
#define FT_BASE_FILE_H
#include <stdint.h>

#include "base/error.h"

bool ft__file_exists(const char *path);
/* What cannot be done with a file ("open", "read"), by errno. */
ft_status ft__file_fault(ft_error *err, const char *verb, const char *path, int code);
/* The whole file with a NUL behind it, released with free(). */
ft_status ft__file_read(const char *path, size_t cap, char **out, size_t *length, ft_error *err);
/* To a temporary, then renamed. */
ft_status ft__file_write(const char *path, const void *data, size_t length, ft_error *err);
/* Read-only mapping; released with ft__file_unmap. */
ft_status ft__file_map(const char *path, const void **out, size_t *length, ft_error *err);
/* The same without reading ahead: of a file of gigabytes the few pages that are looked at. */
ft_status ft__file_map_lazily(const char *path, const void **out, size_t *length, ft_error *err);
void ft__file_unmap(const void *at, size_t length);
/* Names in a folder that end in `suffix`, sorted; free each and the list. Missing folder: count 0, FT_OK. */
ft_status ft__folder_list(const char *path, const char *suffix, char ***out, size_t *count, ft_error *err);
void ft__folder_list_free(char **names, size_t count);

uint64_t ft__hash(const void *data, size_t length, uint64_t seed); /* FNV-1a, 64 bits: splits and checksums */
#endif

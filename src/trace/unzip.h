/* A file's bytes, unpacked where it is gzipped.
 *
 * zlib's own gzread keeps back what it had unpacked when it meets the damage, a wrong checksum at the very end of a
 * whole file too. Here all that could be unpacked comes out first. Further members behind the first are read on, other
 * bytes behind it are passed over, as gzip does. */
#ifndef FT_TRACE_UNZIP_H
#define FT_TRACE_UNZIP_H
#include <stddef.h>

#include "base/error.h"

typedef struct ft_unzip ft_unzip;

ft_status ft__unzip_open(const char *path, ft_unzip **out, ft_error *err);
/* At most `most` bytes; 0 at the end, and where nothing more can be unpacked: see below. */
size_t ft__unzip_read(ft_unzip *u, unsigned char *to, size_t most);
/* After 0 bytes: why there are no more, "" at the end of a file that is whole. */
const char *ft__unzip_broken(const ft_unzip *u);
void ft__unzip_close(ft_unzip *u);
#endif

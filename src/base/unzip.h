/* A file's bytes, unpacked where it is gzipped.
 *
 * zlib's own gzread keeps back what it had unpacked when it meets the damage, a wrong checksum at the very end of a
 * whole file too, and loses bytes where a signal interrupts it. Here all that could be unpacked comes out first, and an
 * interrupted call is made again. Further members behind the first are read on, other bytes behind it are passed over,
 * as gzip does. */
#ifndef FT_BASE_UNZIP_H
#define FT_BASE_UNZIP_H
#include <stddef.h>

#include "base/error.h"

typedef struct ft_unzip ft_unzip;

/* Why no more comes. */
typedef enum ft_unzip_end {
    FT_UNZIP_WHOLE,      /* the end of the file */
    FT_UNZIP_EARLY,      /* the packed file stops before its end */
    FT_UNZIP_DAMAGED,    /* zlib's reason */
    FT_UNZIP_UNREADABLE, /* the system's reason */
} ft_unzip_end;

ft_status ft__unzip_open(const char *path, ft_unzip **out, ft_error *err);
/* At most `most` bytes; 0 at the end, and where nothing more can be unpacked: see below. */
size_t ft__unzip_read(ft_unzip *u, unsigned char *to, size_t most);
/* After 0 bytes: why, with the reason of zlib or of the system; `reason` may be NULL. */
ft_unzip_end ft__unzip_ended(const ft_unzip *u, const char **reason);
/* The same in a sentence, "" at the end of a file that is whole. */
const char *ft__unzip_broken(const ft_unzip *u);
void ft__unzip_close(ft_unzip *u);
#endif

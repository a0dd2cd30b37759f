/* zlib.h: the part of zlib that src/ calls, where a browser stands in for it (WebAssembly).
 *
 * A page unpacks gzip itself (DecompressionStream) before it hands a file over, so that files here are plain;
 * inflate says what to do about a file that is packed all the same. */
#ifndef FT_WEB_ZLIB_H
#define FT_WEB_ZLIB_H
#define MAX_WBITS 15
enum { Z_OK = 0, Z_STREAM_END = 1, Z_ERRNO = -1, Z_STREAM_ERROR = -2, Z_DATA_ERROR = -3, Z_MEM_ERROR = -4, Z_BUF_ERROR = -5 };
enum { Z_NO_FLUSH = 0 };
typedef unsigned int uInt;

typedef struct z_stream {
    const unsigned char *next_in;
    uInt avail_in;
    unsigned char *next_out;
    uInt avail_out;
    const char *msg;
} z_stream;

static inline int inflateInit2(z_stream *z, int bits)
{
    (void)z, (void)bits;
    return Z_OK;
}
static inline int inflateReset(z_stream *z)
{
    (void)z;
    return Z_OK;
}
static inline int inflate(z_stream *z, int flush)
{
    (void)flush;
    z->msg = "this build reads plain files, unpack it first";
    return Z_DATA_ERROR;
}
static inline int inflateEnd(z_stream *z)
{
    (void)z;
    return Z_OK;
}
#endif

/* A profiler trace of any length, an event at a time.
 *
 * Two forms are read, plain or gzipped: an object with the array "traceEvents" among other keys, as PyTorch's
 * export_chrome_trace writes it, and the bare array of events. Nothing but the event at hand and two small values of
 * the header is kept, whatever the file's size, and nesting is counted, not recursed into. */
#ifndef FT_TRACE_SLICES_H
#define FT_TRACE_SLICES_H
#include "base/error.h"
#include "base/text.h"

typedef struct ft_slices ft_slices;

ft_status ft__slices_open(const char *path, ft_slices **out, ft_error *err);
/* The same from memory that outlives the reader; for tests. */
ft_status ft__slices_of(const void *data, size_t length, ft_slices **out, ft_error *err);
void ft__slices_close(ft_slices *s);

/* The next event as text that may be written to, NUL-terminated, until the next call. *more false at the end, and where
 * a file stops early: see below. Fails where there is no trace at all. */
ft_status ft__slices_next(ft_slices *s, char **text, size_t *length, bool *more, ft_error *err);

/* After the last event. */
const char *ft__slices_broken(const ft_slices *s);      /* why the file ended early, "" where it did not */
uint64_t ft__slices_bytes(const ft_slices *s);          /* of JSON read */
uint64_t ft__slices_skipped(const ft_slices *s);        /* events too large to look at, entries that are no objects */
const char *ft__slices_devices(const ft_slices *s);     /* the text of "deviceProperties"; "" without */
const char *ft__slices_distributed(const ft_slices *s); /* of "distributedInfo" */
#endif

/* An ONNX file without its weights: the wire format read from end to end, what is large left out by its length. */
#ifndef FT_IMPORT_ONNX_WIRE_H
#define FT_IMPORT_ONNX_WIRE_H
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

enum { FT_ONNX_KEPT = 1024 }; /* bytes of a tensor's contents that are worth reading: shapes, axes, scalars */

/* `out` is a message of the same schema, in the arena, with unknown fields, long contents, documentation and subgraphs
 * left out. Touches headers alone: the pages between them are never read from disk. */
ft_status ft__onnx_trim(const uint8_t *file, size_t length, ft_arena *arena, const uint8_t **out, size_t *out_length,
                        ft_error *err);
#endif

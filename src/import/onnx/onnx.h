/* An ONNX file (.onnx) as a model. docs/onnx.md is its manual. */
#ifndef FT_IMPORT_ONNX_ONNX_H
#define FT_IMPORT_ONNX_ONNX_H
#include "model/parts.h"

/* Reads names, shapes and attributes; weights are stepped over, inside the file and beside it. `where` names the file
 * in messages. What `out` owns, ft__arch_release gives back. */
ft_status ft__onnx_open(const char *path, ft_arch *out, ft_error *err);
ft_status ft__onnx_read(const void *bytes, size_t length, const char *where, ft_arch *out, ft_error *err);

/* The forward pass: shapes are inferred with the workload's batch and seq while operators are built. */
void ft__make_onnx(ft_maker *m);
#endif

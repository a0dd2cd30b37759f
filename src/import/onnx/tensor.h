/* Contents of small tensors, from the four ways in which ONNX writes them. Beside parse.c alone. */
#ifndef FT_IMPORT_ONNX_TENSOR_H
#define FT_IMPORT_ONNX_TENSOR_H
#include "import/onnx/graph.h"
#include "import/onnx/onnx.pb-c.h"

/* `name` is for messages. */
ft_status ft__onnx_tensor_of(const FtOnnx__Tensor *from, const int64_t *dims, size_t dim_count, const char *name,
                             ft_arena *arena, const ft_onnx_tensor **out, ft_error *err);
/* value_int, value_floats ... of a Constant. */
ft_status ft__onnx_tensor_from(const ft_onnx_attribute *a, ft_arena *arena, const ft_onnx_tensor **out, ft_error *err);
#endif

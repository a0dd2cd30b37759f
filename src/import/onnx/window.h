/* A window that moves over an image, for conv.c and vision.c. */
#ifndef FT_IMPORT_ONNX_WINDOW_H
#define FT_IMPORT_ONNX_WINDOW_H
#include "import/onnx/run.h"

typedef struct ft_onnx_window {
    int axes; /* of the image: 1, 2 or 3 */
    int64_t kernel[FT_ONNX_DIMS], stride[FT_ONNX_DIMS], dilation[FT_ONNX_DIMS], pad[2 * FT_ONNX_DIMS],
        out[FT_ONNX_DIMS];
    bool even; /* one stride and one padding on every side, no dilation: what kernels are fitted for */
} ft_onnx_window;

/* The result's sizes from the node's attributes; false after an error. `kernel` must be there. */
bool ft__onnx_slide(ft_onnx_run *r, const ft_onnx_item *x, ft_onnx_window *w);
#endif

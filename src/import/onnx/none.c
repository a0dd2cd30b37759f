/* none.c: what a build without protobuf-c says of ONNX files. */
#include "import/onnx/onnx.h"

ft_status ft__onnx_open(const char *path, ft_arch *out, ft_error *err)
{
    return ft__onnx_read(NULL, 0, path, out, err);
}

ft_status ft__onnx_read(const void *bytes, size_t length, const char *where, ft_arch *out, ft_error *err)
{
    (void)bytes;
    (void)length;
    (void)out;
    return ft__fail_at(err, FT_E_UNSUPPORTED, where, 0, 0,
                       "this build reads no ONNX files: install protobuf-c and its compiler, then build again");
}

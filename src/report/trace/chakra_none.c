/* chakra_none.c: a build without protobuf-c. */
#include "report/trace/chakra.h"

ft_status ft__chakra(const ft_step_view *v, ft_file_sink sink, void *user, ft_error *err)
{
    (void)v;
    (void)sink;
    (void)user;
    return ft__fail(err, FT_E_UNSUPPORTED,
                    "this build writes no Chakra traces: it needs protobuf-c (Debian: libprotobuf-c-dev, "
                    "protobuf-c-compiler) when it is compiled");
}

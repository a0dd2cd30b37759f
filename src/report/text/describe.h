/* An operator in a few words: "gemm m 4096 n 4096 k 4096 nt bf16". */
#ifndef FT_REPORT_TEXT_DESCRIBE_H
#define FT_REPORT_TEXT_DESCRIBE_H
#include "base/text.h"
#include "foretell.h"

void ft__describe_op(ft_text *out, const ft_op *op);
#endif

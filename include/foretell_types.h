/* foretell_types.h: the words that every part of libforetell shares: statuses, errors and number formats.
 *
 * foretell.h includes it; programs include that. It stands by itself so that the ground floor of the library
 * (src/base: errors, text, JSON, files) knows these words and nothing else of the interface.
 */
#ifndef FORETELL_TYPES_H
#define FORETELL_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FT_API __attribute__((visibility("default")))

/* -- errors ------------------------------------------------------------------------------------ */

/* One list: the code, its name in JSON answers, the exit status the program gives it. */
#define FT_STATUS_LIST(X)                                                     \
    X(FT_OK, "ok", 0)                                                         \
    X(FT_E_USAGE, "usage", 2)             /* a flag or command is wrong   */  \
    X(FT_E_SYNTAX, "syntax", 3)           /* JSON, CSV or number malformed */ \
    X(FT_E_KEY, "unknown_key", 3)         /* a key nobody knows           */  \
    X(FT_E_MISSING, "missing", 3)         /* a key or column is missing   */  \
    X(FT_E_TYPE, "wrong_type", 3)         /* a string where a number goes */  \
    X(FT_E_RANGE, "out_of_range", 3)      /* zero, negative, too large    */  \
    X(FT_E_NAME, "unknown_name", 3)       /* op, gpu, dtype, model ...    */  \
    X(FT_E_UNSUPPORTED, "unsupported", 3) /* the GPU lacks the dtype ...  */  \
    X(FT_E_SPEC, "bad_spec", 3)           /* impossible device figures    */  \
    X(FT_E_FILE, "file", 3)               /* cannot open, read or write   */  \
    X(FT_E_FORMAT, "bad_format", 3)       /* truncated, checksum, version */  \
    X(FT_E_MEMORY, "out_of_memory", 4)    /* allocation failed            */  \
    X(FT_E_BUG, "bug", 4)                 /* ours, please report          */

typedef enum ft_status {
#define X(code, name, exit_status) code,
    FT_STATUS_LIST(X)
#undef X
        FT_STATUS_COUNT
} ft_status;

typedef struct ft_error {
    ft_status code;
    char message[640]; /* one sentence: what is wrong, what was expected, the nearest valid name */
    char where[256];   /* file, or the key path inside a request; empty when neither applies */
    int line, column;  /* 1-based; 0 when unknown */
    double value;      /* the number that was refused; NaN where it was none */
} ft_error;

/* Any thread; static text; "?" and 4 for no status. Functions take NULL for `err` where nobody wants to know. */
FT_API const char *ft_status_name(ft_status s); /* "unknown_name" */
FT_API int ft_status_exit(ft_status s);         /* 0, 2, 3 or 4 */

/* -- number formats ---------------------------------------------------------------------------- */

/* enum, name, bytes per element. Formats under a byte count their packed size. */
#define FT_DTYPE_LIST(X)                   \
    X(FT_FP64, "fp64", 8.0)                \
    X(FT_FP32, "fp32", 4.0) /* TF32 off */ \
    X(FT_TF32, "tf32", 4.0)                \
    X(FT_FP16, "fp16", 2.0)                \
    X(FT_BF16, "bf16", 2.0)                \
    X(FT_FP8, "fp8", 1.0)                  \
    X(FT_INT8, "int8", 1.0)                \
    X(FT_FP4, "fp4", 0.5)

typedef enum ft_dtype {
#define X(code, name, bytes) code,
    FT_DTYPE_LIST(X)
#undef X
        FT_DTYPE_COUNT
} ft_dtype;
enum { FT_DTYPE_ROOM = 16 }; /* of arrays by format in structs: more formats do not move what stands behind them */
/* Any thread; texts are static, `name` is read and not kept. */
FT_API const char *ft_dtype_name(ft_dtype d);                /* static; "?" for what is no format */
FT_API double ft_dtype_bytes(ft_dtype d);                    /* 0 for what is no format */
FT_API bool ft_dtype_parse(const char *name, ft_dtype *out); /* false, and *out as it was: nobody's name */

#ifdef __cplusplus
}
#endif
#endif

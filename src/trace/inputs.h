/* The inputs of an operator as the profiler writes them: "Input Dims", "Input type", "Input Strides" and "Concrete
 * Inputs" are four lists, an entry per argument; a list of tensors is a list inside. */
#ifndef FT_TRACE_INPUTS_H
#define FT_TRACE_INPUTS_H
#include "foretell.h"
#include "trace/record.h"

enum { FT_INPUTS = 32, FT_INPUT_RANK = 8 };

typedef struct ft_input {
    int rank; /* 0: a number, or nothing */
    int64_t dim[FT_INPUT_RANK], stride[FT_INPUT_RANK];
    bool strides_known;
    bool list;      /* of tensors: `numel` of all, `tensors` of them, dim of the first that has any */
    bool scattered; /* one of a list's is not contiguous */
    int64_t tensors;
    double numel;         /* 0: no tensor */
    double stored;        /* elements of its memory: fewer where it is expanded */
    double element_bytes; /* 0: not known */
    ft_dtype dtype;       /* of floating numbers */
    bool floating;
    bool dense;           /* one run of memory without gaps, in whatever order */
    bool contiguous;      /* and in its own */
    const char *concrete; /* text of a number or a list of them; not NUL-terminated */
    size_t concrete_length;
} ft_input;

typedef struct ft_inputs {
    int count;
    ft_input at[FT_INPUTS];
} ft_inputs;

void ft__inputs_read(const ft_signature_text *text, ft_inputs *out);

/* The argument as a number, a truth, a list of numbers (how many there are); what is missing leaves *out alone. */
bool ft__input_number(const ft_inputs *in, int at, double *out);
bool ft__input_true(const ft_inputs *in, int at);
int ft__input_numbers(const ft_inputs *in, int at, int64_t *out, int most);

double ft__input_bytes(const ft_input *x, double otherwise); /* `otherwise` per element where its format is not known */
int64_t ft__input_last(const ft_input *x);                   /* the last axis, 1 for a number */
#endif

/* An operator of a trace as the kernels that the forecasts know.
 *
 * A table of PyTorch's operators, forward ones and those that autograd calls, each with the argument that says what.
 * What the table does not know is taken as one pass over its tensors. */
#ifndef FT_TRACE_ATEN_H
#define FT_TRACE_ATEN_H
#include "graph/manner.h"
#include "trace/inputs.h"

enum { FT_CALLED_PARTS = 4 };

/* One kernel of the operator: how it differs from what the operator says, as a graph's node has it. */
typedef struct ft_called_part {
    ft_op op;
    double times;
    unsigned manner;
    double each;
    ft_walk walk;
    double trips, blocks;
} ft_called_part;

typedef enum ft_called_class {
    FT_CALLED_PRODUCT, /* work for matrix units: products, attention, convolutions */
    FT_CALLED_NORM,    /* softmax, norms, reductions */
    FT_CALLED_POINTWISE,
    FT_CALLED_MEMORY, /* copies, lookups, concatenations, fills */
    FT_CALLED_OPTIMIZER,
    FT_CALLED_OTHER,
    FT_CALLED_CLASSES
} ft_called_class;

typedef struct ft_called {
    ft_called_class class;
    bool known; /* the table has it; otherwise one pass over its tensors */
    int count;  /* 0: it launches nothing, or its sizes are not known */
    ft_called_part part[FT_CALLED_PARTS];
} ft_called;

/* `kernel`: the first one's name, or NULL where none was recorded: it tells the formats of tensor lists, and TF32.
 * `blocks`: of all its kernels, 0 where unknown: the size of lists that the profiler found too long to write down.
 * `usual`: the format where nothing tells. False: the operator costs the GPU nothing (a view) or nothing is known of
 * its inputs. */
bool ft__aten_call(const char *name, const ft_inputs *in, const char *kernel, double blocks, ft_dtype usual,
                   ft_called *out);

/* Whether an operator stands for all kernels launched inside it: the forecasts count what it calls. */
bool ft__aten_whole(const char *name);
/* Whether it does so only where it calls nothing that is known by itself: a linear calls its product. */
bool ft__aten_wraps(const char *name);
/* For traces without kernels: does it run on a GPU by itself, rather than through others that it calls? */
bool ft__aten_runs(const char *name);
bool ft__aten_free(const char *name); /* views, allocations and questions: no kernel */
const char *ft__called_class_name(ft_called_class c);

/* What a kernel's name says. */
bool ft__kernel_on_tensor_cores(const char *kernel);
bool ft__kernel_is_product(const char *kernel); /* by its name alone: GEMM, convolution or attention */
ft_dtype ft__kernel_dtype(const char *kernel, ft_dtype otherwise);
#endif

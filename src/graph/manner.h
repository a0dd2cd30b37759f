/* How a kernel differs from the one that its operator alone stands for: what the benchmarks of a family do not contain.
 * The graph says what the kernel is; how much longer it takes was measured, and stands with the kernels
 * (kernel/manner.c, data/constants/kernel/manner.json). */
#ifndef FT_GRAPH_MANNER_H
#define FT_GRAPH_MANNER_H

/* A set of bits: attention may read a mask and drop out. */
typedef enum ft_manner {
    FT_MANNER_VECTOR = 1 << 0,        /* a batched product of one row per matrix, which lies along what is summed */
    FT_MANNER_VECTOR_ACROSS = 1 << 1, /* the same, and the matrix lies across it */
    FT_MANNER_UNEVEN = 1 << 2,        /* a product whose rows are dealt to its matrices: `each` of them if evenly */
    FT_MANNER_ODD_ROWS = 1 << 3,      /* a product with a matrix whose rows begin at odd addresses */
    FT_MANNER_MASK = 1 << 4,          /* attention that is given a mask */
    FT_MANNER_MASK_ADDED = 1 << 5,    /* and adds it to the scores of many queries */
    FT_MANNER_DROPOUT = 1 << 6,       /* attention that draws random numbers */
    FT_MANNER_SELECT = 1 << 7,        /* the largest few of every row instead of the largest, or their order */
    FT_MANNER_ACROSS = 1 << 8,        /* an operand lies across the order in which the result is written */
    FT_MANNER_ONE_OVER = 1 << 9,      /* rows of one column more than a power of two */
    FT_MANNER_JOIN_UNLIKE = 1 << 10,  /* two parts of unlike widths are joined */
    FT_MANNER_JOIN_ODD = 1 << 11,     /* rows that begin at odd addresses are joined */
    FT_MANNER_CAUSAL_CONV = 1 << 13,  /* a short convolution along a sequence, channel by channel */
    FT_MANNER_INDEX_ADD = 1 << 14,    /* rows are added to where they belong, element by element and atomically */
    FT_MANNER_GROUPED = 1 << 15,      /* one kernel for all of a product's uneven matrices: PyTorch's */
    FT_MANNER_STREAM = 1 << 16, /* a product of one row by a compiler's own kernel, which reads every weight once */
    FT_MANNER_GATED = 1 << 17,  /* the same with weights of 8 bits, behind a gate that every block computes again */
    FT_MANNER_MASK_OF_KEYS = 1 << 18, /* attention that adds one row of a mask to the scores of all queries */
    FT_MANNER_ADDS = 1 << 19          /* a product that is added to what stands where it goes */
} ft_manner;

/* Kernels that wait for one load before they issue the next: a node says how many waits one of its thread blocks has
 * one behind the other if each were a trip to memory (`trips`), and how many blocks there are. */
typedef enum ft_walk {
    FT_WALK_NONE,
    FT_WALK_MOMENTS,            /* batch norm's sums, a block per channel */
    FT_WALK_MOMENTS_LAST,       /* channels last */
    FT_WALK_NORM,               /* the result alone, a block per image and channel */
    FT_WALK_NORM_SMALL,         /* of images smaller than a block */
    FT_WALK_NORM_LAST,          /* channels last */
    FT_WALK_BOTH,               /* sums and result by one kernel of cuDNN's, in fp32 */
    FT_WALK_BOTH_LAST,          /* channels last */
    FT_WALK_BOTH_HALF,          /* in fp16 */
    FT_WALK_BOTH_HALF_LAST,     /* channels last */
    FT_WALK_GRADIENT,           /* both walks over both operands by cuDNN, in fp32 */
    FT_WALK_GRADIENT_LAST,      /* channels last */
    FT_WALK_GRADIENT_LOW,       /* by PyTorch in fewer bits */
    FT_WALK_GRADIENT_LOW_LAST,  /* channels last */
    FT_WALK_GRADIENT_HALF,      /* by cuDNN in fp16 */
    FT_WALK_GRADIENT_HALF_LAST, /* channels last */
    FT_WALK_GROUP_MOMENTS,      /* group norm's sums, a block per group */
    FT_WALK_SUMS,               /* sums over two operands, a block per image and channel */
    FT_WALK_SUMS_SMALL,         /* by a warp where there are fewer than 512 */
    FT_WALK_BROADCAST,          /* numbers of a channel meet every pixel, in fp32 */
    FT_WALK_BROADCAST_LOW,      /* in fewer bits */
    FT_WALK_ADD_UP,             /* a thread adds the images' sums of its channel one by one */
    FT_WALK_POOL,               /* by the tap of a window */
    FT_WALK_POOL_BACKWARD,      /* each pixel looks up which windows found it */
    FT_WALK_POOL_LAST,          /* channels last */
    FT_WALK_POOL_LAST_BACKWARD, /* channels last: each result adds to what it found */
    FT_WALK_AVERAGE,            /* means over windows */
    FT_WALK_AVERAGE_LAST,       /* channels last */
    FT_WALK_AVERAGE_BACKWARD,
    FT_WALK_ADAPTIVE,      /* means over windows that the sizes leave: a block per image and channel, a row a trip */
    FT_WALK_ADAPTIVE_LAST, /* channels last, by the pixel */
    FT_WALK_ADAPTIVE_LAST_BACKWARD,
    FT_WALK_NEAREST, /* interpolations: a copy of the nearest pixel */
    FT_WALK_NEAREST_LAST,
    FT_WALK_NEAREST_BACKWARD,
    FT_WALK_NEAREST_LAST_BACKWARD,
    FT_WALK_LINEAR, /* of two neighbours an axis, a thread per pixel walks over channels and images */
    FT_WALK_LINEAR_LAST,
    FT_WALK_LINEAR_BACKWARD,
    FT_WALK_LINEAR_WIDE_BACKWARD, /* of 32 bits */
    FT_WALK_LINEAR_LAST_BACKWARD,
    FT_WALK_VOLUME, /* in three dimensions */
    FT_WALK_VOLUME_BACKWARD,
    FT_WALK_CUBIC,
    FT_WALK_CUBIC_SAME, /* of the size that it has: a copy, a thread per pixel walks over channels and images */
    FT_WALK_CUBIC_BACKWARD,
    FT_WALK_CUBIC_WIDE_BACKWARD,
    FT_WALK_SMOOTH, /* with antialias: a thread per element, by the pixel that it is made of */
    FT_WALK_SMOOTH_LAST,
    FT_WALK_SMOOTH_BACKWARD,
    FT_WALK_SAMPLE, /* images read at places that were computed: a thread per place walks over channels */
    FT_WALK_SAMPLE_LAST,
    FT_WALK_SAMPLE_CUBIC,
    FT_WALK_SAMPLE_CUBIC_LOW,
    FT_WALK_SAMPLE_CUBIC_LAST,
    FT_WALK_SAMPLE_CUBIC_CLIPPED, /* places are moved inside first */
    FT_WALK_SAMPLE_VOLUME,
    FT_WALK_SAMPLE_BACKWARD, /* atomics */
    FT_WALK_SAMPLE_LAST_BACKWARD,
    FT_WALK_SAMPLE_LOW_BACKWARD,
    FT_WALK_SAMPLE_NEAREST_BACKWARD,
    FT_WALK_SAMPLE_CUBIC_BACKWARD,
    FT_WALK_SAMPLE_CUBIC_LOW_BACKWARD,
    FT_WALK_SAMPLE_CUBIC_CLIPPED_BACKWARD,
    FT_WALK_SAMPLE_VOLUME_BACKWARD,
    FT_WALK_ACROSS,   /* copies across the order in which elements lie */
    FT_WALK_ATOMIC,   /* sums into places that an index names, in 16 bits: an atomic for each element */
    FT_WALK_SCAN,     /* running sums along an axis that is not memory's innermost: a thread per column, step by step */
    FT_WALK_UNFOLD,   /* windows of one image: a thread per place and channel, a tap a trip */
    FT_WALK_FOLD,     /* windows into images: a thread per pixel, a window a trip */
    FT_WALK_OVERLAP,  /* the same of views along one axis */
    FT_WALK_COUNT_UP, /* whole numbers one after the other, by PyTorch's kernel for any step */
    FT_WALK_MEET,     /* rows added to where a sorted index says: a warp goes through those that share one */
    FT_WALK_MEET_WIDE,    /* of 32 bits */
    FT_WALK_MEET_NARROW,  /* of no more columns than a warp has threads */
    FT_WALK_MEET_SINGLE,  /* of one column */
    FT_WALK_ADD_BY_INDEX, /* elements of 16 bits added to where an index of each says */
    FT_WALK_BIAS_LSTM,    /* cuDNN's gradients of a recurrent layer's biases, which go through all steps row by row */
    FT_WALK_BIAS_GRU,
    FT_WALK_BIAS_PLAIN,
    FT_WALK_MOMENTS_TURNED, /* batch norm in an order that its kernels do not know: sums by a reduction for any order */
    FT_WALK_NORM_TURNED,
    FT_WALK_GRADIENT_TURNED,
    FT_WALK_WEIGHT_NORM, /* norms of columns, a block for every sixteen of them: rows by 64, twice */
    FT_WALK_WEIGHT_NORM_BACKWARD,
    FT_WALK_CHANNELS, /* softmax along an axis in the middle: a thread per place goes along it, an element a trip */
    FT_WALK_CHANNELS_BACKWARD,
    FT_WALK_TOGETHER, /* the same along an axis that the threads of a block share */
    FT_WALK_TOGETHER_BACKWARD,
    FT_WALK_APART,        /* sums over axes that do not lie together: a value a trip */
    FT_WALK_APART_STAGED, /* by several blocks each */
    FT_WALK_COUNT
} ft_walk;
#endif

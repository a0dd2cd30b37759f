/* Where forecasts of a GPU would come from: one kernel of each kind, and what its answer rests on. */
#ifndef FT_STUDY_BASIS_H
#define FT_STUDY_BASIS_H
#include "study/compare.h"

enum { FT_BASIS_KERNELS = 5 };
extern const char *const ft__basis_kernels[FT_BASIS_KERNELS];
typedef struct ft_basis {
    char name[64];                     /* of the GPU */
    char source[FT_BASIS_KERNELS][16]; /* "learned", "sibling", ...; "" where it has no such kernel */
    char kin[FT_BASIS_KERNELS][64];    /* whose measurements, of a sibling */
    double span[FT_BASIS_KERNELS];     /* high over low; 0: none */
} ft_basis;
/* FT_E_NAME: no such GPU. */
ft_status ft__basis_of(ft_answerer answer, void *user, const char *gpu, ft_basis *out, ft_error *err);
#endif

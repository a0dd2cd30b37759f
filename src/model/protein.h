/* What reads a protein beside words, and what of the words' layers looks at it (protein.c, aligner.c): evolla. */
#ifndef FT_MODEL_PROTEIN_H
#define FT_MODEL_PROTEIN_H
#include <stdbool.h>
#include <stdint.h>

#include "model/bytes.h"

typedef struct ft_protein {
    ft_stack_size reader; /* of amino acids; 0 layers: there is none */
    int64_t vocab, usual; /* usual: residues where a request says nothing */
    int64_t latents, latent_layers, latent_heads, latent_dim,
        latent_ffn;      /* queries that sum it up; ffn: times its width */
    int64_t aligner_ffn; /* times the words' width */
    bool aligner_bias;
    double dropout; /* of the encoder's layers */
} ft_protein;
#endif

/* audio_weights.c: an encoder of sound beside a language model (Qwen's omni models): whisper's layers behind two
 * convolutions over the spectrogram, or behind three over its image. Requests have no sound yet: its weights take
 * memory, nothing runs. */
#include "graph/emit.h"
#include "model/mixers.h"

static void product(ft_build *b, int64_t out, int64_t in, bool bias)
{
    ft__weight(b, "audio.weight", out, in);
    if (bias) ft__parameter(b, "audio.bias", 1, out);
}

void ft__part_audio_weights(ft_maker *m)
{
    enum { FRAMES = 3, HALVINGS = 3 }; /* a filter's width; how often the image of a spectrogram is halved */
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t wide = a->ear_hidden, filters = a->ear_filters;
    bool frozen = b->frozen;
    b->frozen = true; /* no gradient reaches what does not run */
    ft__block_open(b, FT_BLOCK(ENCODER_EMBED), 1, FT_NONE);
    if (filters > 0) {
        product(b, filters, FRAMES * FRAMES, true);
        for (int i = 1; i < HALVINGS; i++) product(b, filters, filters * FRAMES * FRAMES, true);
        product(b, wide, filters * (a->ear_mel_bins >> HALVINGS), false);
        product(b, wide, wide, true);
    } else {
        product(b, wide, a->ear_mel_bins * FRAMES, true);
        product(b, wide, wide * FRAMES, true);
    }
    ft__parameter(b, "audio.norm", 2, wide);
    product(b, a->ear_out > 0 ? a->ear_out : a->hidden, wide, true);
    ft__block_close(b, FT_NONE);
    ft__block_open(b, FT_BLOCK(ENCODER_LAYERS), a->ear_layers, FT_NONE);
    for (int i = 0; i < 4; i++) product(b, wide, wide, i > 0 || filters > 0); /* whisper's keys have no bias */
    product(b, a->ear_ffn, wide, true);
    product(b, wide, a->ear_ffn, true);
    ft__parameter(b, "audio.norm", 4, wide);
    ft__block_close(b, FT_NONE);
    b->frozen = frozen;
}

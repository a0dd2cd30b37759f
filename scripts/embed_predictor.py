#!/usr/bin/env python3
"""Write an assembler file that includes a predictor's bytes: embed_predictor.py FILE OUTPUT.

A digest of the bytes stands in a comment, so that the output changes, and is assembled again, when they do. A file that
does not exist is embedded as an empty one; the library then says that it has no predictor of its own.
"""
import hashlib
import pathlib
import sys

TEMPLATE = """\
/* Made by scripts/embed_predictor.py. Bytes: {digest} */
#ifdef __wasm__
#define OBJECT @object
    .section .rodata.foretell_predictor, "", @
#else
#define OBJECT %object
#if defined(__linux__) && defined(__ELF__)
    .section .note.GNU-stack, "", %progbits
#endif
    .section .rodata.foretell_predictor, "a", %progbits
#endif
    .balign 64
    .globl ft__default_predictor
    .hidden ft__default_predictor
    .type ft__default_predictor, OBJECT
ft__default_predictor:
{body}    .globl ft__default_predictor_end
    .hidden ft__default_predictor_end
    .type ft__default_predictor_end, OBJECT
ft__default_predictor_end:
    .byte 0
    .size ft__default_predictor, ft__default_predictor_end - ft__default_predictor
    .size ft__default_predictor_end, 1
"""


def main() -> None:
    predictor, output = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    digest, body = "none", ""
    if predictor.exists():
        digest = hashlib.sha256(predictor.read_bytes()).hexdigest()
        path = str(predictor.resolve()).replace("\\", "\\\\").replace('"', '\\"')
        body = f'    .incbin "{path}"\n'
    source = TEMPLATE.format(digest=digest, body=body)
    if not output.exists() or output.read_text() != source:
        output.write_text(source)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Write an assembler file that includes a file's bytes: embed_predictor.py FILE OUTPUT [SYMBOL].

SYMBOL is ft__default_predictor where none is said; the byte behind the last is SYMBOL_end.

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
    .section .rodata.{symbol}, "", @
#else
#define OBJECT %object
#if defined(__linux__) && defined(__ELF__)
    .section .note.GNU-stack, "", %progbits
#endif
    .section .rodata.{symbol}, "a", %progbits
#endif
    .balign 64
    .globl {symbol}
    .hidden {symbol}
    .type {symbol}, OBJECT
{symbol}:
{body}    .globl {symbol}_end
    .hidden {symbol}_end
    .type {symbol}_end, OBJECT
{symbol}_end:
    .byte 0
    .size {symbol}, {symbol}_end - {symbol}
    .size {symbol}_end, 1
"""


def main() -> None:
    predictor, output = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    symbol = sys.argv[3] if len(sys.argv) > 3 else "ft__default_predictor"
    digest, body = "none", ""
    if predictor.exists():
        digest = hashlib.sha256(predictor.read_bytes()).hexdigest()
        path = str(predictor.resolve()).replace("\\", "\\\\").replace('"', '\\"')
        body = f'    .incbin "{path}"\n'
    source = TEMPLATE.format(digest=digest, body=body, symbol=symbol)
    if not output.exists() or output.read_text() != source:
        output.write_text(source)


if __name__ == "__main__":
    main()

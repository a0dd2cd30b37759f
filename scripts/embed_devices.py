#!/usr/bin/env python3
"""Write the device files of a folder as C string literals: embed_devices.py FOLDER OUTPUT.

Sorted by name, so that the same files give the same bytes. The output is left alone when it would not change, which
lets the build skip what depends on it.
"""
import pathlib
import sys


def literal(text: bytes) -> str:
    """The bytes as C literals, one per line of the file; anything but plain ASCII as octal escapes."""
    lines = []
    for line in text.splitlines(keepends=True) or [b""]:
        escaped = "".join(
            {0x22: '\\"', 0x5C: "\\\\", 0x0A: "\\n", 0x3F: "\\?"}.get(byte)  # \? keeps trigraphs away
            or (chr(byte) if 0x20 <= byte < 0x7F else f"\\{byte:03o}")
            for byte in line
        )
        lines.append(f'        "{escaped}"')
    return "\n".join(lines)


def main() -> None:
    folder, output = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    files = sorted(folder.glob("*.json"), key=lambda path: path.stem.encode())
    parts = [
        "/* Made from data/devices/ by scripts/embed_devices.py. */\n",
        '#include "device/embedded.h"\n\n',
        "#if defined(__GNUC__)\n#pragma GCC diagnostic ignored \"-Woverlength-strings\"\n#endif\n\n",
        f"const size_t ft__embedded_device_count = {len(files)};\n\n",
        "const struct ft__embedded_file ft__embedded_devices[] = {\n",
    ]
    for path in files:
        text = path.read_bytes()
        parts.append(f'    {{"{path.stem}",\n{literal(text)},\n        {len(text)}}},\n')
    parts.append("    {0, 0, 0},\n};\n")
    source = "".join(parts)
    if not output.exists() or output.read_text() != source:
        output.write_text(source)


if __name__ == "__main__":
    main()

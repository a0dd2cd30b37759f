#!/usr/bin/env python3
"""Write the device files of a folder as C string literals: embed_devices.py FOLDER OUTPUT.

With them go tables of what is asked of all at once: `aliases`, other names of a GPU, and `stands_for`, chips whose GPUs
take from this one what their files leave out.

Sorted by name, so that the same files give the same bytes. The output is left alone when it would not change, which
lets the build skip what depends on it.
"""
import json
import pathlib
import re
import sys

VENDORS = {"nvidia": "FT_VENDOR_NVIDIA", "amd": "FT_VENDOR_AMD", "intel": "FT_VENDOR_INTEL", "other": "FT_VENDOR_OTHER"}
WORD = re.compile(r"[a-z0-9]+(_[a-z0-9]+)*")


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


def word(text: object, path: pathlib.Path) -> str:
    if not isinstance(text, str) or not WORD.fullmatch(text):
        sys.exit(f"{path}: {text!r} is not a name of small letters, digits and single underscores")
    return text


def aliases(sheets: dict) -> list[str]:
    owner = {path.stem: path for path in sheets}
    rows = []
    for path, sheet in sheets.items():
        for alias in sheet.get("aliases", []):
            if word(alias, path) in owner:
                sys.exit(f"{path}: the alias {alias} belongs to {owner[alias]}")
            owner[alias] = path
            rows.append(f'    {{"{alias}", "{path.stem}"}},\n')
    return rows


def kin(sheets: dict) -> list[str]:
    found = []
    for path, sheet in sheets.items():
        for chip in sheet.get("stands_for", []):
            capability, vendor = sheet["compute_capability"], sheet["vendor"]
            order = (list(VENDORS).index(vendor), len(capability), capability)
            if any(order == other and name != path.stem for other, name, _ in found):
                sys.exit(f"{path}: another GPU stands for {capability} already")
            row = f'    {{"{capability}", "{sheet["generation"]}", "{word(chip, path)}", "{path.stem}", {VENDORS[vendor]}}},\n'
            found.append((order, path.stem, row))
    return [row for _, _, row in sorted(found)]


def table(kind: str, name: str, count: str, rows: list[str], end: str) -> str:
    return f"const size_t {count} = {len(rows)};\n\nconst struct {kind} {name}[] = {{\n" + "".join(rows) + f"    {end},\n}};\n"


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
    sheets = {path: json.loads(path.read_bytes()) for path in files}
    for path, sheet in sheets.items():
        text = path.read_bytes()
        title = literal(sheet["title"].encode()).strip()
        usual = "true" if sheet.get("usual", False) else "false"
        maker = f"{VENDORS[sheet['vendor']]}, {int(sheet['year'])}, {usual}"
        parts.append(f'    {{"{path.stem}", {title},\n{literal(text)},\n        {len(text)}, {maker}}},\n')
    parts.append("    {0, 0, 0, 0, FT_VENDOR_NVIDIA, 0, false},\n};\n\n")
    parts.append(table("ft__embedded_alias", "ft__embedded_aliases", "ft__embedded_alias_count", aliases(sheets), "{0, 0}"))
    parts.append("\n")
    parts.append(table("ft__embedded_kin", "ft__embedded_kin", "ft__embedded_kin_count", kin(sheets), "{0, 0, 0, 0, FT_VENDOR_NVIDIA}"))
    source = "".join(parts)
    if not output.exists() or output.read_text() != source:
        output.write_text(source)


if __name__ == "__main__":
    main()

"""What scripts write into pages: text between two marks, `<!-- NAME -->` and `<!-- end -->`; what stands around them stays."""
import pathlib
import sys

END = "<!-- end -->"


def between(page: pathlib.Path, name: str, text: str) -> None:
    begin = f"<!-- {name} -->"
    before, found, rest = page.read_text(encoding="utf-8").partition(f"{begin}\n")
    _, end, after = rest.partition(END)
    if not found or not end:
        sys.exit(f"{page}: expected {begin} and then {END}")
    page.write_text(f"{before}{begin}\n{text}{END}{after}", encoding="utf-8")

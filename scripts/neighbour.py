"""Another script as a module: most have no ending, so that `import` does not find them."""
from __future__ import annotations

import importlib.machinery
import importlib.util
import pathlib
import sys
import types


def load(path: pathlib.Path) -> types.ModuleType:
    loader = importlib.machinery.SourceFileLoader(path.stem, str(path))
    spec = importlib.util.spec_from_loader(path.stem, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.dont_write_bytecode = True  # no cache beside a script
    loader.exec_module(module)
    return module

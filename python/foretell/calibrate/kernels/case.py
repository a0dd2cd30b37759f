"""What names a kernel to be timed: column -> name or integer, as the tables of measurements have them."""

from __future__ import annotations

from typing import Any

Case = dict[str, Any]

"""The version, the same as FT_VERSION of foretell.h (a test holds them together)."""

__version__ = "0.1.0"

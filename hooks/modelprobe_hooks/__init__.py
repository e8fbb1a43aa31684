"""What an engine may import to be looked after from inside; standard library only."""

__version__ = "0.1.0"

"""Helpers that do not depend on environments: validation, files, imports by name, progress bars, seeds, signals."""

"""Modules that know nothing about environments: validation, files, imports by name, progress bars, seeds, signals."""

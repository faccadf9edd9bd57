"""The reproduction of Cimpean et al. (2025), FAReL."""

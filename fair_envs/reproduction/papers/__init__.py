"""The papers, with one module each that defines ``main(scale=..., out=..., jobs=..., progress=...)``."""

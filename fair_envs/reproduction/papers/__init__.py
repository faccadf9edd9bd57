"""The papers, one module each, with ``main(scale=..., out=..., jobs=..., progress=...)``."""

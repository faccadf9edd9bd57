"""The speeds that the package promises, and what measures them."""

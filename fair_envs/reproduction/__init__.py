"""Papers' experiments, run again: cells that run once, in parallel, and the tables made from them."""

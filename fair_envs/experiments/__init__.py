"""Jobs whose results are stored under a hash of their inputs, and the executors that run them."""

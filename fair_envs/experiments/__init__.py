"""Jobs whose results are kept by their content, and what runs them."""

"""One adapter for each interface: converts what the interface returns into a `Batch`, and back."""

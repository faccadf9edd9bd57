"""The environments, one package each."""

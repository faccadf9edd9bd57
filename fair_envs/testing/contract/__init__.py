"""The contract: what every environment promises, as tests that pytest runs.

`record` is for every environment that reports the record, `rules` for those made of rules, which have more interfaces,
and `fuzzed` plays at random. ``pytest --fair-env my_package:MyEnv-v0`` runs them on an environment; the package's own
tests run them on all of its environments.
"""

"""The reproduction of Hu, Lear and Zhang (2024), long-term fairness."""

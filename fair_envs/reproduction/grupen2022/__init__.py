"""The reproduction of Grupen, Selman and Lee (2022), team fairness."""

"""The reproduction of La Malfa et al. (2025), fair-PPO."""

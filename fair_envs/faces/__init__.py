"""The faces: one batch of lanes seen as a Gymnasium, PettingZoo or Stable-Baselines3 environment."""

"""The faces (interfaces): a batch of lanes as a Gymnasium, PettingZoo or Stable-Baselines3 environment."""

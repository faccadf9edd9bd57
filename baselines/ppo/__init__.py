"""PPO and its fair variants: fair-PPO, A-PPO, F-PPO and PPO with a constraint."""

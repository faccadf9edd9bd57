"""Settings shared by several methods."""

from collections.abc import Mapping
from typing import Literal

Device = Literal["cpu"]
"""Device of the networks: networks of these sizes train faster on a CPU, where training is also reproducible."""

COMMON: Mapping[str, str] = {
    "n_steps": "Steps of each lane in a rollout.",
    "batch_size": "Size of a minibatch.",
    "n_epochs": "Passes over each rollout.",
    "learning_rate": "Learning rate of Adam.",
    "gamma": "Discount factor.",
    "gae_lambda": "Lambda of generalised advantage estimation.",
    "clip_range": "Clipping range of PPO's probability ratio around 1.",
    "ent_coef": "Weight of the entropy bonus.",
    "vf_coef": "Weight of the value loss.",
    "max_grad_norm": "Norm at which gradients are clipped.",
    "seed": "Seed of the networks, the environment and all random draws.",
    "threads": "Number of threads for PyTorch and the environment.",
    "eval_freq": "Steps between two evaluations, which are logged beside the metrics; 0 disables them.",
    "eval_episodes": "Number of episodes of each of these evaluations.",
    "device": "Device of the networks; only the CPU is supported, on which networks of this size train fastest.",
}
"""Help texts of settings that have the same meaning in several methods, by name."""

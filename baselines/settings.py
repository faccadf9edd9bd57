"""What the settings of several methods have in common."""

from collections.abc import Mapping
from typing import Literal

Device = Literal["cpu"]
"""Where networks are trained: those of these sizes train faster on a CPU, where equal trainings give equal networks."""

COMMON: Mapping[str, str] = {
    "n_steps": "Steps of each lane in a rollout.",
    "batch_size": "Size of a minibatch.",
    "n_epochs": "Passes over each rollout.",
    "learning_rate": "Learning rate of Adam.",
    "gamma": "Discount factor.",
    "gae_lambda": "Lambda of generalised advantage estimation.",
    "clip_range": "How far PPO lets the ratio of probabilities move from 1.",
    "ent_coef": "Weight of the entropy bonus.",
    "vf_coef": "Weight of the value loss.",
    "max_grad_norm": "Norm at which gradients are clipped.",
    "seed": "Seed of the networks, the environment and all random draws.",
    "threads": "Threads that PyTorch and the environment use.",
    "eval_freq": "Steps between two evaluations that are logged beside the metrics; 0 is none.",
    "eval_episodes": "Episodes of each of these evaluations.",
    "device": "Device of the networks; only the CPU is supported, on which networks of this size train fastest.",
}
"""The sentences of settings that mean the same in several methods, by name."""

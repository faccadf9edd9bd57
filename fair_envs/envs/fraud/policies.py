"""Scripted policies for FairFraud."""

from typing import Any

from numpy.typing import NDArray

from fair_envs.envs.fraud.rules import OBSERVED, SCALE, Fraud
from fair_envs.evaluation.deciders import Decider
from fair_envs.support.aliases import Flags
from fair_envs.support.parameters import NonNegative, checked

AMOUNT = OBSERVED.index("amount")
PERSONAL = len(OBSERVED) - len(SCALE)  # the first number of an observation that is about the transaction


class AboveAmount(Decider):
    """Authenticates payments above an amount.

    In the default tables frauds are smaller than genuine payments, so it mostly checks customers.

    Args:
        env: FairFraud, of any interface, or its rules.
        amount: The largest amount that is not checked, at least 0. Above 1000 are about 8 % of the payments; about as
            many are frauds.

    Raises:
        ValueError: The environment is another one, or the amount is negative.
    """

    def __init__(self, env: Any, amount: float = 1000.0) -> None:
        super().__init__(env)
        if not isinstance(self.rules, Fraud):
            raise ValueError(f"env must be FairFraud, got {env}")
        self.amount = checked("amount", amount, NonNegative)

    def chosen(self, observation: NDArray[Any]) -> Flags:
        """Return the payments of at most the amount."""
        found: Flags = observation[:, AMOUNT] * SCALE[AMOUNT - PERSONAL] <= self.amount
        return found


__all__ = ["AboveAmount"]

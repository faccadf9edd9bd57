"""The parameters of FairFraud: every number an experiment may change, with its default and source.

Sources: F is the fraud environment of Cimpean et al. (2025), "FAReL", as its code runs; M is MultiMAuS (Zintgraf et
al., 2017), the simulator that F modified. Values without a mark are this package's recommendations.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple

from fair_envs.core.feedback import Kind
from fair_envs.support.parameters import Range, UnitInterval

Population = Annotated[int, Range(1, 10_000)]
Factor = Annotated[float, Range(0, 10)]
Amount = Annotated[float, Range(-1e6, 1e6)]

# The options of each choice, in the order in which compiled rules number them.
SHAPED, MONEY = range(2)
NO_BIAS, EUROPE, EUROPE_MERCHANT_0 = range(3)
ON_SUCCESS, ALWAYS = range(2)
BY_MERCHANT, BY_AMOUNT = range(2)


class FraudParams(NamedTuple):
    """The parameters of FairFraud."""

    profile: Literal["recommended", "authors"] = "recommended"  # selects other defaults, see PROFILES
    # The episode
    horizon: Annotated[int, Range(1, 2**31 - 2)] = 1000  # transactions until truncation; F
    hours: Annotated[int, Range(1, 366 * 24)] = 168  # hours until termination; F
    first_day: Annotated[int, Range(1, 366)] = 1  # day of 2016 on which the episode begins, at midnight; F, M
    clock: Literal["pacific", "local_mean"] = "pacific"  # its time zone; F, M: 7:53 h behind UTC, by mistake
    # Customers and fraudsters
    customers: Population = 100  # at the start; F, M: 3333
    fraudsters: Population = 10  # at the start; F, M: 55
    transactions_per_year: Annotated[float, Range(0, 1e9)] = 90357.0  # by both kinds, at the numbers above; F, M
    fraud_proportion: UnitInterval = 0.5  # share of transactions by fraudsters; F. Few happen in January, see Fraud
    noise_level: UnitInterval = 0.1  # noise of rates and personal profiles; F, M
    steal_probability: UnitInterval = 0.3329  # probability that a fraudster uses a customer's card; F, M
    # Authentication
    patience_weight: UnitInterval = 0.8  # of patience in the authentication probability, against the amount; F, M
    # Effects of transactions on customers and fraudsters
    post_transaction_update: bool = True  # satisfaction, leaving, corrupted cards; M, not F
    initial_satisfaction: UnitInterval = 0.9  # F sets this but starts at 1, as M does
    after_cancelled: Factor = 0.95  # satisfaction is multiplied by this; M
    after_unchecked: Factor = 1.01  # M
    after_checked: Factor = 0.99  # M
    customer_stays: UnitInterval = 0.9  # probability to stay after a transaction, times the satisfaction; F, M: 0.516
    fraudster_stays: UnitInterval = 0.6  # the same without satisfaction; F, M: 0.333
    stays_after_fraud: UnitInterval = 0.09664  # probability that a customer stays whose card was used in a fraud; F, M
    # Rewards
    reward: Literal["shaped", "money"] = "shaped"  # F
    margin: Amount = 0.003  # "money": share of the amount of a genuine payment that goes through; F, M
    fee: Amount = 0.01  # "money": for each such payment; F, M
    reward_bias: Literal["none", "europe", "europe_merchant_0"] = "none"  # whose payments earn more; F
    reward_bias_size: Amount = 0.1  # F
    reward_bias_on: Literal["success", "always"] = "success"  # F adds it regardless of decision and outcome
    # Interactions
    legitimate: Literal["merchant", "amount"] = "merchant"  # the factor that may explain a difference
    feedback: Kind = "full"  # when the label (fraud or not) is revealed; F
    delay: Annotated[int, Range(1, 100_000)] = 100  # transactions until a delayed label arrives


PROFILES: Mapping[str, Mapping[str, Any]] = {
    "recommended": {},
    "authors": {
        "clock": "local_mean",
        "post_transaction_update": False,
        "initial_satisfaction": 1.0,
        "reward_bias_on": "always",
    },
}

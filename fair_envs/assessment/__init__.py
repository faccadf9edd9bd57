"""Evaluates any policy in any environment with a record: performance, group rates, gaps and their noise floors."""

from fair_envs.assessment.datasets import export_minari, export_pycfrl
from fair_envs.assessment.evaluation import evaluate
from fair_envs.assessment.exporting import export
from fair_envs.assessment.played import System, system_of
from fair_envs.assessment.policies import policy_named, policy_of
from fair_envs.assessment.result import Evaluation, Row, table_of

__all__ = [
    "Evaluation",
    "Row",
    "System",
    "evaluate",
    "export",
    "export_minari",
    "export_pycfrl",
    "policy_named",
    "policy_of",
    "system_of",
    "table_of",
]

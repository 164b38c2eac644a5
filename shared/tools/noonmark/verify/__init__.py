"""The checker: finds broken promises in a history of what happened. Pure: no database, no topic.

`history` is its input, `invariants` lists the rules, `judge` applies them, `page` prints the verdict.
docs/verification.md says what each invariant means and how histories are collected.
"""

from noonmark.verify.expected import Expected
from noonmark.verify.history import History
from noonmark.verify.invariants import INVARIANTS, Invariant
from noonmark.verify.judge import Report, judge
from noonmark.verify.page import page

__all__ = ["INVARIANTS", "Expected", "History", "Invariant", "Report", "judge", "page"]

"""Parts of a study, for job arrays on a cluster: each job computes the chunks of one part into a separate folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from ...common.real_arrays import excerpt, whole_number
from ...errors import StudyError
from ..plan.plan import Plan


@dataclass(frozen=True)
class Part:
    """Part `number` of `parts`, counted from 1."""

    number: int
    parts: int

    @classmethod
    def checked(cls, part: Sequence[int], plan: Plan) -> Self:
        """Return the part that a user gives as (number, parts).

        Raises
        ------
        StudyError
            If the pair is invalid, or if the study may stop early, which depends on all samples before.
        """
        if not isinstance(part, Sequence) or isinstance(part, str) or len(part) != 2:
            raise StudyError(
                f"part is {excerpt(part)}; expected (number, parts), such as (3, 100) for the third of 100"
            )
        parts = whole_number("part[1]", part[1], StudyError, least=1)
        number = whole_number("part[0]", part[0], StudyError, least=1)
        if number > parts:
            raise StudyError(f"part is ({number}, {parts}); expected a number from 1 to {parts}")
        if plan.description.stop_when is not None:
            raise StudyError(
                f"part is ({number}, {parts}), but stop_when may end the study early, which depends on all samples; "
                "expected a study without stop_when. Remove it, or run the whole study"
            )
        return cls(number, parts)

    def samples(self, plan: Plan) -> int:
        """Return the approximate number of samples of this part, before the size of the chunks is known."""
        return -(-plan.description.samples // self.parts)

    def chunk_size(self, plan: Plan, size: int) -> int:
        """Return a chunk size of at most `size`, for which no part has more than one chunk more than another."""
        return min(size, self.samples(plan))

    def chunks(self, count: int) -> range:
        """Return the chunks of this part if the study has `count` chunks."""
        return range((self.number - 1) * count // self.parts, self.number * count // self.parts)

"""The parts of a report that `linear_analysis` computes: local sensitivities, and means by control variates."""

from __future__ import annotations

import html
from typing import Any

from ..store.stored_results import StoredResults
from .pictures import units_along
from .report_tables import number, table

MOST_SHOWN = 5
LEAST_SHOWN = 0.01  # of the largest change
LEAST_GAIN = 1.1  # of control variates, in samples
LARGEST_GAIN = 1e6  # a larger one follows from round-off: the measure is linear in the parameters.
#: A relative difference of the standard deviations that is reported, besides twice the error of an estimate from n
#: samples of a normal distribution, 1 / sqrt(2 n).
LEAST_DIFFERENCE = 0.1
MEANING = "By gradient: the standard deviation of a linear measure with the derivatives at the means of the parameters."
NOT_SMOOTH = "the derivatives are uncertain, because the measure is not smooth at the means."
NOT_LINEAR = "the measure is not linear in the range of the parameters."
INCOMPLETE = "the standard deviation of the samples omits samples without a value."


class LinearAnalysis:
    """The result of `linear_analysis`. The parts that are missing in it are empty.

    `survivors` is the sentence about failed samples, which is the first line of each table.
    """

    def __init__(self, analysis: dict[str, Any], survivors: str = "") -> None:
        self._survivors = survivors
        self._gradients = analysis.get("gradients", {})
        self._control_variates = analysis.get("control_variates", {})
        self._reasons = analysis.get("reasons", {})

    def first_order(self, measure: str) -> float | None:
        """Return the standard deviation of first order of a measure, if it is known."""
        return self._gradients.get(measure, {}).get("first_order_std")

    @property
    def has_first_order(self) -> bool:
        """Whether the standard deviation of first order of a measure is known."""
        return any(self.first_order(name) is not None for name in self._gradients)

    def note(self, results: StoredResults, statistics: dict[str, Any]) -> str:
        """Explain the standard deviations of first order, and name the measures for which they are different."""
        known = [name for name in self._gradients if self.first_order(name) is not None]
        if not known:
            return ""
        different: dict[str, list[str]] = {INCOMPLETE: [], NOT_SMOOTH: [], NOT_LINEAR: []}
        for name in known:
            of_one, found = self._gradients[name], statistics["of"][name]
            first_order, std = of_one["first_order_std"], (found["variance"] or 0.0) ** 0.5
            if std > 0.0 and abs(first_order / std - 1) > LEAST_DIFFERENCE + (2 / max(1, found["count"])) ** 0.5:
                reason = NOT_SMOOTH if _is_uncertain(of_one, std) else NOT_LINEAR
                if found["count"] < statistics["samples"]:
                    reason = INCOMPLETE
                unit = results[name].attrs.get("units", "")
                different[reason].append(f"{name} ({first_order:.3g} instead of {std:.3g} {unit})")
        sentences = [MEANING]
        sentences += [
            f"It differs from the standard deviation of the samples for {', '.join(names)}: {reason}"
            for reason, names in different.items()
            if names
        ]
        return " " + html.escape(" ".join(sentences))

    def mean(self, results: StoredResults, measure: str) -> str:
        """Return a paragraph with the mean by control variates, and the factor by which they reduce the samples."""
        found, unit = self._control_variates.get(measure, {}), results[measure].attrs.get("units", "")
        mean, half, factor = (found.get(key) for key in ("mean", "half_width", "factor"))
        if mean is None or half is None:
            return ""
        if factor is not None and factor < LEAST_GAIN:
            text = f"Control variates hardly reduce the number of samples for the mean (factor {factor:.3g})."
        else:
            gain = (
                ""
                if factor is None
                else f". The plain mean needs {factor:.3g} times as many samples for this precision"
            )
            if factor is not None and factor > LARGEST_GAIN:
                gain = ". The measure is linear in the parameters"
            text = f"Mean with control variates: {mean:.6g} {unit}, 95 % confidence interval {mean - half:.6g} to "
            text += f"{mean + half:.6g} {unit}{gain}."
        return f'<p class="note">{html.escape(text)}</p>'

    def sensitivities(self, results: StoredResults) -> str:
        """Return the folded tables of the largest local sensitivities of each measure."""
        tables = "".join(self._sensitivities(results, measure) for measure in self._gradients)
        if not tables:
            reason = self._reasons.get("gradients")
            return f'<p class="note">Local sensitivities are not available: {html.escape(reason)}</p>' if reason else ""
        note = "Derivatives of the measures with all parameters at their means. The small numbers are estimated errors."
        return f'<details><summary>Local sensitivities</summary><p class="note">{note}</p>{tables}</details>'

    def _sensitivities(self, results: StoredResults, measure: str) -> str:
        found, unit = self._gradients[measure], results[measure].attrs.get("units", "")
        changes = {c: change for c, change in enumerate(found["contribution"]) if change}
        most = sorted(changes, key=lambda c: -changes[c])[:MOST_SHOWN]
        names, units = results["parameter"].values, units_along(results, "parameter")
        rows = []
        for c in most:
            if changes[c] < LEAST_SHOWN * changes[most[0]]:
                break
            slope, error = found["gradient"][c], found["error"][c]
            std, of_slope = found["parameter_std"][c], found["gradient_units"][c]
            rows.append(
                f"<tr><th>{html.escape(str(names[c]))}</th>{number(slope, below=_error(error))}"
                f"<td>{html.escape(of_slope)}</td>{number(std)}<td>{html.escape(units[c])}</td>"
                f"{number(slope * std)}<td>{html.escape(unit)}</td></tr>"
            )
        if not rows:
            return ""
        words = ("parameter", "unit of derivative", "unit of std", "unit of change")
        head = (words[0], "derivative", words[1], "std of parameter", words[2], "change per std", words[3])
        return f"<h3>{html.escape(measure)}</h3>{table(head, rows, words, self._survivors)}"


def _is_uncertain(of_one: dict[str, Any], std: float) -> bool:
    """Whether the errors of the derivatives are not small compared with the standard deviation of the samples."""
    pairs = zip(of_one["error"], of_one["parameter_std"], strict=True)
    errors = [error * std for error, std in pairs if error is not None]
    return bool(sum(errors) > LEAST_DIFFERENCE * std)


def _error(error: float | None) -> str:
    return "error unknown" if error is None else f"± {error:.1g}"

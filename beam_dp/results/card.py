"""The deployment card of a release: its record as an entry of OpenDP's registry of deployments.

A card says who is protected, how much, and by which mechanisms; all of it stands in the record,
which was paid for. What only people know (who publishes the numbers, what for, and why the budget
is right) is left open, and marked by `FILL`. What a card says stands in `card.yaml`.
"""

import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from beam_dp.mechanisms.numerics import checks
from beam_dp.results.report import amount
from beam_dp.results.shown_numbers import one_line
from beam_dp.results.view import NOT_PRIVATE, left_out, zeros
from beam_dp.spending.ledger import Balance
from beam_dp.text.text_tables import shortened
from beam_dp.transforms.run_record import text_of

FILL = "FILL IN"
_ENDING = re.compile(r"\.[a-z]+(?:\.gz)?(?=\s*(?:,|$))")
_NEEDED = {"parameters", "budget", "columns", "composition"}


def card(
    record: Mapping[str, Any], balance: Balance | None = None, audited: str = ""
) -> dict[str, Any]:
    """Return the card of a release.

    Args:
        record: the record of the release.
        balance: what the ledger holds that the release was charged to; None: there is none.
        audited: what an audit of the same mapping said; "": there was none.

    Raises:
        ValueError: for what is no record of a private release.
    """
    import yaml  # here, for few releases need it

    rule = "be that of a private release: of released.csv it is the file released.csv.json"
    checks.require(record.keys() >= _NEEDED, "card", "record", rule)
    checks.require(NOT_PRIVATE not in record, "card", "record", f"{rule}: this one has no noise")
    skeleton = Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8")
    try:
        facts = {
            "FILL": FILL,
            **_release(record),
            **_protection(record),
            **_cost(record, balance, audited),
        }
    except (AttributeError, KeyError, TypeError):
        raise checks.ParameterError("card", "record", rule) from None
    made: dict[str, Any] = _filled(yaml.safe_load(skeleton), facts)
    spent = {name: float(Fraction(part)) for name, part in record["budget"].items()}
    positive = {name: number for name, number in spent.items() if number}
    made["deployment"]["privacy_loss"]["privacy_parameters"] = positive
    return made


def _filled(part: Any, facts: Mapping[str, str]) -> Any:
    if isinstance(part, dict):
        return {name: _filled(each, facts) for name, each in part.items()}
    if isinstance(part, list):
        return [_filled(each, facts) for each in part]
    return part.format_map(facts).strip() if isinstance(part, str) else part


def _line(text: str) -> str:
    return re.sub(r"\s*\n\s*", " ", text.strip())


def _names(names: Iterable[object]) -> str:
    return ", ".join(f"`{one_line(name)}`" for name in names)


def _release(record: Mapping[str, Any]) -> dict[str, str]:
    """Return what was released, and how."""
    given = {**record.get("job", {}), **record["parameters"]}
    asked, kept = (
        [f"{name}: `{one_line(_line(text_of(given[name])))}`" for name in names if given.get(name)]
        for names in (
            ("query", "ledger_period", "metrics", "bounds"),
            ("top_partitions", "suppress"),
        )
    )
    name, keys = str(given.get("input") or "rows"), record["columns"]["keys"]
    chosen = [f"partitions: {record['selection']}"] if record.get("selection") else []
    drawn = [
        f"{each['metric']}: {each['mechanism']}, noise scale {each['noise_scale']}".removesuffix(
            ", noise scale -"
        )
        for each in record.get("releases", ())
    ]
    return {
        "name": one_line(name),
        "slug": re.sub("[^a-z0-9]+", "-", _ENDING.sub("", name.lower())).strip("-") or "release",
        "date": str(record.get("date", ""))[:10],
        "numbers": _names(names[0] for names in record["columns"]["numbers"]),
        "by": f"per {_names(keys)}" if keys else "of all rows",
        "asked": "; ".join(asked),
        "kept": "; ".join(kept),
        "left_out": "; ".join([left_out(record), *zeros(record)]),
        "mechanisms": "\n".join(f"- {shortened(one_line(line))}" for line in (*chosen, *drawn)),
        "versions": ", ".join(map(" ".join, record.get("versions", {}).items())),
    }


def _protection(record: Mapping[str, Any]) -> dict[str, str]:
    """Return who is protected, and in which sense."""
    parameters, budget, keys = record["parameters"], record["budget"], record["columns"]["keys"]
    approximate = Fraction(budget.get("delta", 0)) > 0
    exact = ", ".join(f"{name} = {part}" for name, part in budget.items())
    variant = "Approximate DP" if approximate else "Pure DP"
    if "rho" in budget:
        variant = "Custom" if approximate else "Zero-concentrated DP"
        exact += " (delta-approximate rho-zCDP, Bun and Steinke 2016)" * approximate
    owners, period = parameters["person"], parameters.get("period")
    owners = [owners] if isinstance(owners, str) else owners
    unit, neighbours = "person", f"all rows of one person, which is one value of {_names(owners)}"
    further = ""
    if len(owners) > 1:
        unit = "owner of a row"
        neighbours = f"all rows that have one owner, in whichever of {_names(owners)}"
    if period:
        unit = f"person and {one_line(period)}"
        neighbours = f"the rows of one {_names([period])} of one person in {_names(owners)}"
        further = f" All rows of a person with n values of {_names([period])} are n such steps."
    partitions = "That there is one partition, of all rows."
    if keys:
        partitions = "No names of partitions: which ones are named is chosen privately."
    if (public := parameters.get("partitions") or {}).get("type") == "PublicPartitions":
        partitions = f"The names of the {public['keys']} partitions, which were given beforehand."
    metrics = parameters.get("metrics") or [parameters.get("statistic") or {}]
    read = [
        *owners,
        *([period] if period else []),
        *keys,
        *(each["column"] for each in metrics if each.get("column")),
    ]
    return {
        "variant": variant,
        "exact": exact,
        "unit": unit,
        "neighbours": neighbours,
        "further": further,
        "partitions": partitions,
        "columns": _names(dict.fromkeys(read)),
    }


def _cost(record: Mapping[str, Any], balance: Balance | None, audited: str) -> dict[str, str]:
    """Return what the release cost, part by part, and what its ledger and an audit say."""
    metrics = {each["label"]: each["metric"] for each in record.get("releases", ())}
    lines = [shortened(str(record["composition"]))]
    for each in record.get("spent", ()):
        label, _, use = each["on"].rpartition(": ")
        on = f"{metrics[label]}, {use}" if label in metrics else metrics.get(use, each["on"])
        lines.append(f"{one_line(on)}: {amount(each)}, {each['times']} times")
    if tables := record.get("job", {}).get("tables"):
        lines.append(f"One of {one_line(tables)}")
    if audited:
        lines.append(f"Audited on made-up rows of these columns: {audited}")
    if balance is not None:
        lines.append(f"All releases about these people, by their ledger: {balance.line}")
    elif "ledger" in record.get("job", {}):
        lines.append(f"{FILL}: what the ledger says; --ledger names it")
    several = balance is not None and len(balance.charges) > 1
    return {
        "composition": "\n".join(f"- {line}" for line in lines),
        "release_type": "Many releases" if several else "One release",
    }

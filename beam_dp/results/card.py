"""The deployment card of a release: its record as an entry of OpenDP's registry of deployments.

A card says who is protected, how much, and by which mechanisms; all of it stands in the record,
which was paid for. What only people know (who publishes the numbers, what for, and why the budget
is right) is left open, and marked by `FILL`. Texts are Markdown, as the registry shows them.
"""

import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.numerics.short_numbers import shortened
from beam_dp.results.report import amount
from beam_dp.results.shown_numbers import plain
from beam_dp.results.view import NOT_PRIVATE
from beam_dp.spending.ledger import Balance
from beam_dp.transforms.run_record import said

FILL = "FILL IN"
_OPEN = (
    f"Made of the record of the release. {FILL} what is marked, and data_source_type (Static or "
    "Dynamic) and data_product_sector, which must be one of the registry's words."
)
_UNPROTECTED = (
    "The parameters of the release, its date and the versions of the libraries: its record."
)
_FLOATS = (
    "Floating point: values become whole multiples of a public unit before they are added up. Noise "
    "is drawn as whole numbers, by coins that compare random bits of the operating system with "
    "exact chances: there is no seed, and no noise is a float."
)
_PLATFORM = (
    "Timing: nobody asks questions of the data, and no message, log or file name has data. What the "
    "platform shows of a run (element counts, time, memory) is exact, and must stay with who may "
    f"see the input. {FILL}: who has access to the input, and how it is secured."
)
_POST = (
    "Intervals and rank errors are computed from released numbers and parameters. So are means, "
    "variances and shares, from released sums and counts. Ends of intervals are cut to what is "
    "possible; numbers are not, so a count may be below 0."
)
_ROWS = (
    "Rows without a usable person or partition are dropped, each by itself. Where clips, centres or "
    "a bound on partitions were chosen by the rows, that was private, and the budget has paid. "
    f"{FILL}: what was looked at before (exploration, earlier years), and how the budget and the "
    "given parameters were chosen. What was learnt from these rows for that is not accounted for."
)


def card(record: Mapping[str, Any], balance: Balance | None = None) -> dict[str, Any]:
    """Return the card of a release.

    Args:
        record: the record of the release.
        balance: what the ledger holds that the release was charged to; None: there is none.

    Raises:
        ValueError: for what is no record of a private release.
    """
    rule = "be that of a private release, as released.csv.json"
    checks.require(
        {"parameters", "budget", "columns", "composition"} <= record.keys(), "card", "record", rule
    )
    checks.require(NOT_PRIVATE not in record, "card", "record", f"{rule}: this one has no noise")
    name = str(record.get("job", {}).get("input") or "rows")
    several = balance is not None and len(balance.charges) > 1
    return {
        "url_slug": re.sub("[^a-z0-9]+", "-", name.lower()).strip("-") or "release",
        "status": "Draft",
        "tier": 3,
        "deployment": {
            "basic": {
                "name": f"Released statistics: {plain(name)}",
                "data_curators": [f"{FILL}: who publishes the numbers"],
                "intended_use": f"{FILL}: what the numbers are for",
                "data_product_type": "Summary statistics",
                "data_product_region": f"{FILL}: which region the data describes",
                "description": _description(record),
                "publication_date": str(record.get("date", ""))[:10],
            },
            "dp_variant": _variant(record),
            "privacy_loss": _loss(record),
            "deployment_model": {
                "model_name": "Central",
                "actors": "The curator sees the input; readers see the released numbers and their "
                f"record. {FILL}: who runs the release and the platform, and why they are trusted.",
                "release_type": "Many releases" if several else "One release",
                "release_type_details": f"{FILL}: which further releases of these people are "
                "planned, and after which time the budget begins anew.",
                "access_type": "Non-interactive",
            },
            "accounting": {
                "post_processing": "\n".join([_POST, *_asked(record, "top_partitions", "keep")]),
                "composition": _composition(record, balance),
            },
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": "\n".join(
                    [*_asked(record, "query", "metrics", "bounds"), _ROWS]
                ),
                "mechanisms": _mechanisms(record),
                "justification": f"{FILL}: why this budget, this unit and these bounds",
            },
            "administrative": {
                "registry_authors": [f"{FILL}: who wrote this card"],
                "notes": _OPEN,
            },
        },
    }


def _names(given: Any) -> str:
    return ", ".join(f"`{plain(name)}`" for name in ([given] if isinstance(given, str) else given))


def _list(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _asked(record: Mapping[str, Any], *names: str) -> list[str]:
    """Return what a release, or its job, was asked for under these names."""
    given = {**record.get("job", {}), **record["parameters"]}
    return [f"Asked for {name}: `{plain(said(given[name]))}`." for name in names if given.get(name)]


def _description(record: Mapping[str, Any]) -> str:
    keys, numbers = record["columns"]["keys"], record["columns"]["numbers"]
    by = f"per {_names(keys)}" if keys else "of all rows"
    return f"{_names(names[0] for names in numbers)} {by}, each with an interval or a rank error."


def _variant(record: Mapping[str, Any]) -> dict[str, str]:
    budget, parameters = record["budget"], record["parameters"]
    approximate = Fraction(budget.get("delta", 0)) > 0
    if "rho" in budget:
        name = "Custom" if approximate else "Zero-concentrated DP"
    else:
        name = "Approximate DP" if approximate else "Pure DP"
    partitions = parameters.get("partitions") or {}
    if partitions.get("type") == "PublicPartitions":
        keys = f"The names of the {partitions['keys']} partitions, which were given beforehand."
    elif record["columns"]["keys"]:
        keys = "No names of partitions: which ones are named is chosen privately."
    else:
        keys = "That there is one partition, of all rows."
    return {
        "variant_name": name,
        "data_domain": "Every table with these columns, whatever is in its cells: "
        f"{_names([*_owners(parameters), *(parameters.get('partition') or ()), *_read(parameters)])}.",
        "unprotected_quantities": _list([keys, _UNPROTECTED]),
    }


def _owners(parameters: Mapping[str, Any]) -> list[str]:
    person = parameters["person"]
    return [person] if isinstance(person, str) else list(person)


def _read(parameters: Mapping[str, Any]) -> list[str]:
    metrics = parameters.get("metrics") or [parameters.get("statistic") or {}]
    return list(dict.fromkeys(each["column"] for each in metrics if each.get("column")))


def _loss(record: Mapping[str, Any]) -> dict[str, Any]:
    parameters, budget = record["parameters"], record["budget"]
    owners, period = _owners(parameters), parameters.get("period")
    unit, differ = "person", f"all rows of one person, which is one value of {_names(owners)}"
    if len(owners) > 1:
        unit = "owner of a row"
        differ = f"all rows that have one owner, in whichever of {_names(owners)}"
    if period:
        unit = f"person and {plain(period)}"
        differ = (
            f"the rows of one `{plain(period)}` of one person (one value of {_names(owners)}; "
            "whoever has rows of n of these is n steps away)"
        )
    exact = {name: float(Fraction(part)) for name, part in budget.items() if Fraction(part)}
    details = ", ".join(f"{name} = {part}" for name, part in budget.items())
    about = "delta-approximate rho-zCDP (Bun, Steinke 2016); " * (exact.keys() >= {"rho", "delta"})
    return {
        "privacy_unit": unit,
        "privacy_unit_details": f"Two tables are adjacent if one has {differ}, and the other has "
        "none of them; all else is equal.",
        "privacy_parameters": exact,
        "privacy_parameters_details": f"{about}exact: {details}; of all numbers, intervals, names "
        "of partitions and the record together",
    }


def _composition(record: Mapping[str, Any], balance: Balance | None) -> str:
    metrics = {each["label"]: each["metric"] for each in record.get("releases", ())}
    lines = [shortened(str(record["composition"]))]
    for each in record.get("spent", ()):
        label, _, use = each["on"].rpartition(": ")
        on = f"{metrics[label]}, {use}" if label in metrics else metrics.get(use, each["on"])
        lines.append(f"{plain(on)}: {amount(each)}, {each['times']} times")
    if balance is not None:
        lines.append(f"All releases about these people, by their ledger: {balance.line}")
    elif "ledger" in record.get("job", {}):
        lines.append(f"{FILL}: what the ledger says; --ledger names it")
    return _list(lines)


def _mechanisms(record: Mapping[str, Any]) -> str:
    chosen = [f"partitions: {record['selection']}"] if record.get("selection") else []
    drawn = [
        f"{each['metric']}: {each['mechanism']}, noise scale {each['noise_scale']}"
        for each in record.get("releases", ())
    ]
    versions = ", ".join(f"{name} {number}" for name, number in record.get("versions", {}).items())
    listed = [shortened(plain(line)) for line in (*chosen, *drawn)]
    return _list([*listed, _FLOATS, _PLATFORM, f"Versions: {versions}."])

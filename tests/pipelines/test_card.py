"""The deployment card: what OpenDP's registry of deployments asks for, made of a record."""

import datetime
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

import beam_dp as dp
from beam_dp.results.card import FILL
from beam_dp.results.card import card as card_of
from beam_dp.testing import NotPrivate, without_noise
from pipelines import aggregate, card

VARIANTS = {"Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom"}
SECTIONS = {
    "basic": (
        "name data_curators intended_use data_product_type data_product_region description "
        "publication_date"
    ),
    "dp_variant": "variant_name data_domain unprotected_quantities",
    "privacy_loss": (
        "privacy_unit privacy_unit_details privacy_parameters privacy_parameters_details"
    ),
    "deployment_model": "model_name actors release_type release_type_details access_type",
    "accounting": "post_processing composition",
    "implementation": "preprocessing_and_hyperparameter_tuning mechanisms justification",
    "administrative": "registry_authors notes",
}
"""The names that the registry knows, of those that a card gives; it refuses others."""
LISTS = ("data_curators", "registry_authors")


def check(made: dict[str, Any]) -> None:
    """Hold a card to the registry's rules: names, types and words."""
    assert set(made) == {"url_slug", "status", "tier", "deployment"}
    assert made["status"] == "Draft" and made["tier"] == 3 and made["url_slug"]
    assert {name: set(part) for name, part in made["deployment"].items()} == {
        name: set(names.split()) for name, names in SECTIONS.items()
    }
    parts = {name: part for each in made["deployment"].values() for name, part in each.items()}
    numbers = parts.pop("privacy_parameters")
    assert set(numbers) <= {"epsilon", "delta", "rho"}
    assert all(type(number) is float for number in numbers.values())
    for name, part in parts.items():
        texts = part if name in LISTS else [part]
        assert texts and all(type(text) is str and text for text in texts), name
    datetime.date.fromisoformat(parts["publication_date"])
    assert parts["variant_name"] in VARIANTS and parts["model_name"] == "Central"
    assert parts["data_product_type"] == "Summary statistics"
    assert parts["release_type"] in ("One release", "Many releases")
    assert parts["access_type"] == "Non-interactive"


COMMON = ["--person", "visitor", "--partition", "day", "--overwrite", "--runner", "FnApiRunner"]
PUBLIC = ["--public_partitions", "1,2,3"]


@pytest.fixture
def made(
    visits: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Callable[..., dict[str, Any]]:
    """Return what releases the visits, and reads the card of that."""

    def called(*words: str, of: tuple[str, ...] = ()) -> dict[str, Any]:
        out = str(tmp_path / "out.csv")
        assert aggregate.main(["--input", visits, "--output", out, *COMMON, *words]) == 0
        capsys.readouterr()
        assert card.main([f"{out}.json", *of]) == 0
        found: dict[str, Any] = yaml.safe_load(capsys.readouterr().out)
        check(found)
        parts: dict[str, Any] = found["deployment"]
        return parts

    return called


def test_a_card_of_public_partitions(made):
    parts = made("--count", "--mean", "minutes", "--median", "spent", "--epsilon", "1", *PUBLIC)
    assert parts["dp_variant"]["variant_name"] == "Pure DP"
    assert parts["privacy_loss"]["privacy_parameters"] == {"epsilon": 1.0}
    assert "names of the 3 partitions" in parts["dp_variant"]["unprotected_quantities"]
    assert "`visitor`, `day`, `minutes`, `spent`" in parts["dp_variant"]["data_domain"]
    assert "`count`, `mean_minutes`, `median_spent` per `day`" in parts["basic"]["description"]
    assert "- median_spent, ranks: epsilon " in parts["accounting"]["composition"]
    assert (
        "- count: clip what each person adds to all partitions"
        in parts["implementation"]["mechanisms"]
    )
    asked = parts["implementation"]["preprocessing_and_hyperparameter_tuning"]
    assert "- metrics: `Count(" in asked and "bounds: `ContributionBounds(" in asked
    assert "Floating point: " in parts["implementation"]["mechanisms"]
    assert f"beam-dp {dp.__version__}" in parts["implementation"]["mechanisms"]
    for open_part in (
        *parts["basic"]["data_curators"],
        parts["basic"]["intended_use"],
        parts["implementation"]["justification"],
    ):
        assert open_part.startswith(FILL)


def test_a_card_of_private_partitions_with_its_ledger(made, tmp_path, capsys):
    path = str(tmp_path / "l.jsonl")
    dp.Ledger(path, dp.Budget(3, 1e-5)).charge(dp.Budget(1), "before", "visitor")
    words = ["--count", "--epsilon", "1", "--delta", "1e-6", "--ledger", path]
    parts = made(*words, of=("--ledger", path))
    assert parts["dp_variant"]["variant_name"] == "Approximate DP"
    assert parts["privacy_loss"]["privacy_parameters"] == {"epsilon": 1.0, "delta": 1e-6}
    assert "chosen privately" in parts["dp_variant"]["unprotected_quantities"]
    assert "2 runs: epsilon 2 of 3" in parts["accounting"]["composition"]
    assert parts["deployment_model"]["release_type"] == "Many releases"
    assert "- partitions: " in parts["implementation"]["mechanisms"]
    assert card.main([str(tmp_path / "out.csv.json")]) == 0
    assert f"{FILL}: what the ledger says" in capsys.readouterr().out


@pytest.mark.parametrize(("delta", "variant"), [(0, "Zero-concentrated DP"), (1e-6, "Custom")])
def test_a_card_in_rho(delta, variant, made, config):
    budget = {"rho": 0.5, **({"delta": delta} if delta else {})}
    parts = made("--count", *config(budget=budget), *([] if delta else PUBLIC))
    assert parts["dp_variant"]["variant_name"] == variant
    assert parts["privacy_loss"]["privacy_parameters"] == budget
    said = parts["privacy_loss"]["privacy_parameters_details"]
    assert ("delta-approximate" in said) == bool(delta) and "rho = 1/2" in said


RECORD = {
    "parameters": {"person": ["from", "to\n"], "metrics": [{"type": "Count"}], "partition": []},
    "budget": {"epsilon": "1", "delta": "0"},
    "columns": {"keys": [], "numbers": [["count", "count_low", "count_high"]]},
    "composition": "epsilon 1.0, delta 0.0",
    "date": "2026-11-26T01:00:00+00:00",
}


@pytest.mark.parametrize(
    ("name", "slug"), [("2024-05.csv.gz,b c.parquet", "2024-05-b-c"), ("*.csv", "release")]
)
def test_a_slug_is_the_name_without_its_ending(name, slug):
    record = {**RECORD, "job": {"input": name}}
    assert card_of(record)["url_slug"] == slug


def test_neighbours_are_those_of_owners_and_of_periods():
    several = card_of(RECORD)
    check(several)
    said = several["deployment"]["privacy_loss"]
    assert said["privacy_unit"] == "owner of a row"
    assert "in whichever of `from`, `to\\n`" in said["privacy_unit_details"]
    parameters = {**RECORD["parameters"], "person": "visitor", "period": "day"}
    parameters["ledger_period"] = "2026-11-22"
    drawn = [{"metric": "median_x", "mechanism": "rank search", "label": "0", "noise_scale": "-"}]
    job = {"query": "SELECT visitor,\n  day\nFROM rows\n"}
    daily = card_of({**RECORD, "parameters": parameters, "job": job, "releases": drawn})
    check(daily)
    parts = daily["deployment"]["implementation"]
    asked = parts["preprocessing_and_hyperparameter_tuning"]
    assert "query: `SELECT visitor, day FROM rows`; ledger_period: `2026-11-22`; " in asked
    assert "- median_x: rank search\n" in parts["mechanisms"]
    assert "`visitor`, `day`" in daily["deployment"]["dp_variant"]["data_domain"]
    said = daily["deployment"]["privacy_loss"]
    assert said["privacy_unit"] == "person and day"
    assert said["privacy_unit_details"].endswith("with n values of `day` are n such steps.")


def test_no_card_without_noise_or_without_a_record(visits, tmp_path, refused):
    with pytest.warns(NotPrivate), without_noise():
        trial = dp.release(
            visits, person="visitor", metrics=[dp.Count()], budget=dp.Budget(epsilon=1)
        )
    path = tmp_path / "trial.json"
    path.write_text(json.dumps(trial.record))
    assert "this one has no noise" in refused(card, str(path))
    needed = {"parameters": {}, "budget": {}, "columns": {}, "composition": ""}
    for text in ("[]", "day,count\n", '{"budget": 1}', json.dumps(needed)):
        path.write_text(text)
        assert "record must be that of a private release" in refused(card, str(path))
    assert "No such file or directory" in refused(card, str(tmp_path / "no.json"))
    words = [str(path), "--ledger", str(tmp_path / "no.jsonl")]
    assert "there is no ledger" in refused(card, *words)

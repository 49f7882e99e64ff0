"""Package of differentially private statistics for Apache Beam; also staged to workers."""

import re
from pathlib import Path

from setuptools import find_packages, setup

TESTS = [
    "boto3>=1.40",
    "deltalake>=1.1",
    "flask>=3",
    "flask-cors>=5",
    "google-cloud-storage>=3,<4",
    "hypothesis>=6.100",
    "moto[s3]>=5.1",
    "pandas>=2.2",
    "polars>=1.30",
    "pyiceberg[sql-sqlite]>=0.10",
    "pytest>=8.1",
    "pytest-xdist>=3.5",
    "setuptools>=68",
]
REPORT = ["jinja2>=3.1"]
SQL = ["duckdb>=2.0"]
YAML = "apache-beam[yaml]>=2.77,<3"
LINTERS = ["mypy>=1.11", "ruff>=0.17"]
# `make docs`, which the tests run too.
DOCS = ["mkdocs>=1.6,<2", "mkdocs-material>=9.6,<10", "mkdocstrings[python]>=0.29"]
# pipeline-dp has no wheels elsewhere; below these versions pip takes broken ones in silence.
LINUX = "; sys_platform == 'linux' and platform_machine == 'x86_64'"
PEERS = [
    "polars>=1.30",
    f"pipeline-dp==0.3.1{LINUX}",
    f"python-dp>=1.1.5{LINUX}",
    f"dp-accounting>=0.6,<0.7{LINUX}",
]
README = Path(__file__).parent / "README.md"
PACKAGE = Path(__file__).with_name("beam_dp") / "__init__.py"
[VERSION] = re.findall(r'^__version__ = "(.+)"$', PACKAGE.read_text(encoding="utf-8"), re.MULTILINE)

setup(
    name="beam-dp",
    version=VERSION,
    description="Differentially private statistics on Apache Beam without clipping bounds",
    long_description=README.read_text(encoding="utf-8") if README.exists() else "",
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    packages=find_packages(include=["beam_dp", "beam_dp.*", "pipelines", "pipelines.*"]),
    package_data={
        "beam_dp": ["py.typed", "results/report.html", "results/report.js", "results/card.yaml"],
        "beam_dp.beam_yaml": ["*.yaml"],
    },
    entry_points={"console_scripts": ["beam-dp=beam_dp.command:main"]},
    python_requires=">=3.11,<3.14",
    # pyarrow before 14.0.1 runs code from the files that it reads (CVE-2023-47248).
    install_requires=[
        "apache-beam>=2.77,<3",
        "filelock>=3.16,<4",
        "highspy>=1.10,<1.16",
        "numpy>=2.0",
        "pyarrow>=21.0",
        "scipy>=1.13,<2",
    ],
    extras_require={
        "dev": [*TESTS, *LINTERS, *REPORT, *SQL, *DOCS, YAML, "tpchgen-cli>=2"],
        "demo": [*REPORT, "tpchgen-cli>=2"],
        "report": REPORT,
        "sql": SQL,
        "yaml": [YAML],
        "docs": DOCS,
        "gcp": ["apache-beam[gcp]>=2.77,<3"],
        "bench": [*PEERS, *SQL, "tpchgen-cli>=2"],
    },
)

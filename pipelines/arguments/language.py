"""Say in the words of the command line what the library says in those of Python.

What one option alone can get wrong is refused where that option is read (`words`). What remains is
refused by the library, when the release is built or its files are read; the library knows neither
flags nor their names, so the messages that a command line can cause are told again here.
"""

import re

_NAMED = "--public_partitions 1,2,3"
_PUBLIC = f"or name the partitions: {_NAMED}"
_SELECTED = "where partitions are selected privately"
_PHRASES = {
    r"Budget(?:\.zcdp)?: (\w+) (must be .*)\. Write .*": r"--\1 \2",
    r"\w+: bounds must limit the partitions of one person.*": (
        f"--max_partitions must be given {_SELECTED}: add --max_partitions 3, {_PUBLIC}"
    ),
    r"PrivatePartitions: delta must be above 0.*": (
        f"--delta must be above 0 {_SELECTED}: add --delta 1e-6, {_PUBLIC}"
    ),
    r"\w+: bounds must be left out where rows have two owners.*": (
        "--max_partitions, --max_rows_per_partition and --max_rows must be left out where "
        "--person names two columns"
    ),
    r"\w+: partitions must be public where rows have two owners.*": (
        f"the partitions must be named where --person names two columns: {_NAMED}"
    ),
    r"\w+: a metric of rows with two owners must be .*": (
        "--count, --sum, --max, --min and --distinct are all that --person with two columns can "
        "have"
    ),
    r"ScaleThenChoose: budget must have an epsilon and a delta.*": (
        "--search scale_then_choose must have --epsilon and a --delta above 0"
    ),
    r"\w+: candidates for a clip must be at most (\d+), not (\d+)\..*": (
        r"--candidates of what has a clip must be at most \1 values, not \2: take a coarser grid, "
        r"like 1:1000000:x2, or --one_sided"
    ),
    r"\w+: (partition_rows must .*)": r"--\1",
    r"TruncatedGeometric: (pre_threshold must .*)": r"--\1",
    r"PublicPartitions: a key must be .*, not (.*)": (
        r"--public_partitions: a key must be text, not \1"
    ),
    r"\w+: (partition must name each column once), not .*": r"--\1",
    r"\w+: (output columns must have different names, .* twice)\..*": (
        r"\1: give the column of --partition another name in the data"
    ),
    r"Ratio: bounds must limit the rows of one person.*": (
        "--max_rows_per_partition must be given where every row counts: add "
        "--max_rows_per_partition 10, or --per person"
    ),
    r"LocalSensitivity: delta must be above 0.*": (
        "--method local_sensitivity must have a --delta above 0"
    ),
    r"Ratio: neighbours must be .* where partitions are private.*": (
        f"--neighbours must be add-remove {_SELECTED}, which it does not cover: {_NAMED}"
    ),
    r"(CustomProfile|BlackBox): \w+ must be picklable.*": (
        "the function of --custom_profile or --black_box must be picklable, to be sent to workers: "
        "name one that holds no open file, lock or generator"
    ),
    r"PreprocessSensitivity: statistic must be .* for people with an epsilon of their own.*": (
        "--person_epsilon is for --sum, --max, --min and --median: no way is known to compute "
        "others for unequal sensitivities and any number of people"
    ),
    r"PreprocessSensitivity: sensitivity must be left out: a Median.*": (
        "--sensitivity must be left out: --median with --person_epsilon is searched for"
    ),
    r"PreprocessSensitivity: partitions must be public ones for people.*": (
        f"the partitions must be named with --person_epsilon: {_NAMED}"
    ),
    r"PreprocessSensitivity: budget must be a pure epsilon.*": (
        "--person_epsilon must have --epsilon, without --delta"
    ),
    r"PreprocessSensitivity: budget must be the largest of epsilons, (.*), not (.*): .*": (
        r"--epsilon must be the largest of --person_epsilon, \1, not \2: what the person who "
        "allows most allows"
    ),
    r"PreprocessSensitivity: epsilons (must .*)": r"--person_epsilon: epsilons \1",
    r"RemovalLoss: partition must not have a column named 'profile'.*": (
        "--partition must name another column than 'profile', which is used between the steps"
    ),
    r"RemovalLoss: removals must be at most (\d+), not (\d+)\..*": (
        r"the budget is too small: each search would look at the best \2 people, and at most \1 "
        "are kept; raise --epsilon or --rho, or give fewer --candidates or --max_partitions"
    ),
    r"\w+: budget must be larger: (the search .* can be held)\. .*": (
        r"the budget is too small: \1; raise --epsilon, --rho or its part of --weights, give "
        "fewer --candidates or --max_partitions, or --one_sided for what can be from below"
    ),
    r"ReadRows: pattern (must .*) For a directory write .*": (
        r"--input \1 For a directory write --input 'directory/*.parquet'."
    ),
    r"ReadRows: quotes must be left out .*": (
        "--csv_quotes none is for CSV files only: leave it out"
    ),
    r"WriteRows: path must name (a new file, not .*)\. Write .*": (
        r"--output must name \1; --overwrite replaces it"
    ),
    r"WriteRows: path (must .*)": r"--output \1",
    r"\w+: the runner (must be one of .*)": r"--runner \1",
    r"ReadRows: (.*)": r"--input: \1",
    r"WriteRows: (.*)": r"--output: \1",
}
_TABLE = [(re.compile(phrase, re.DOTALL), words) for phrase, words in _PHRASES.items()]


def translated(message: str) -> str:
    """Return the message with flags for parameters; one that needs no translation as it is."""
    for phrase, words in _TABLE:
        found = phrase.fullmatch(message)
        if found:
            return found.expand(words)
    return message

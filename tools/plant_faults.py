"""Put faults into the code, one at a time, and see that a test fails for each: a suite that misses one proves less.

    python tools/plant_faults.py            every fault, each with the tests named beside it
    python tools/plant_faults.py 3 14       some of them, by number
    python tools/plant_faults.py --all 3    with the whole suite

The code is changed in place and put back; a file with changes of yours is refused. Prints for each fault the first test
that caught it. Ends with 1 where one survives.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
# A fault may make something wait for ever.
PATIENCE = 900  # seconds


class Fault(NamedTuple):
    """A fault.

    Attributes:
        name: what is wrong.
        file: where.
        right: the code as it is, which the file has once.
        wrong: what takes its place.
        tests: where it should be caught, the cheapest first.
    """

    name: str
    file: str
    right: str
    wrong: str
    tests: str


FAULTS = [
    Fault(
        "the shift has the other sign",
        "debias/debiaser.py",
        "subtract(vectors, alpha * offset.astype(np.float64))",
        "subtract(vectors, -alpha * offset.astype(np.float64))",
        "tests/unit/test_shift.py tests/unit/test_debias.py",
    ),
    Fault(
        "alpha is ignored",
        "debias/debiaser.py",
        "return self.alphas.get(key, self.alpha)",
        "return 1.0",
        "tests/unit/test_debias.py tests/cluster/test_debias.py",
    ),
    Fault(
        "a line is acknowledged before the server has confirmed it",
        "ingest/bulk/delivery.py",
        "                verdict = self._request(rest)\n",
        '                self.settle([ActionResult(item, "done", "created") for item in rest.chunk.items])\n'
        "                verdict = self._request(rest)\n",
        "tests/unit/test_bulk*.py tests/cluster/faults/test_faults_answers.py tests/cluster/faults/*_kills.py",
    ),
    Fault(
        "the first dead letter of a request is dropped",
        "ingest/bulk/journal.py",
        "self._letters.add(letters)",
        "self._letters.add(letters[1:])",
        "tests/unit/test_bulk*.py tests/cluster/test_dead_letters.py tests/cluster/test_bad_input.py",
    ),
    Fault(
        "versions are in the reverse order",
        "plugin/versions.py",
        'key=lambda i: int(i.rpartition("-v")[2]))',
        'key=lambda i: -int(i.rpartition("-v")[2]))',
        "tests/cluster/versions/test_versions.py tests/cluster/test_index_commands.py",
    ),
    Fault(
        "the alias is swapped before the check",
        "plugin/transfer/cutover.py",
        "    documents = verify(run)\n",
        "    run.retry(swap, run)\n    documents = verify(run)\n",
        "tests/cluster/versions/test_[rt]*.py tests/cluster/faults/test_transfer*.py",
    ),
    Fault(
        "of equal scores the smaller id comes first",
        "evaluate/measures/base.py",
        "sorted(pairs, reverse=True)",
        "sorted(pairs, key=lambda pair: (-pair[0], pair[1]))",
        "tests/unit/test_measures*.py tests/unit/test_score_run.py",
    ),
    Fault(
        "LPR looks at the cut list only",
        "evaluate/measures/preference.py",
        "_preference(ranked, given[query], language, group)",
        "_preference(ranked, {d: s for d, s in given[query].items() if d in ranked.top(query, 20)}, language, group)",
        "tests/unit/test_measures*.py tests/unit/test_score_run.py",
    ),
    Fault(
        "anchored loses the filter in its second step",
        "retrieval/dsl.py",
        "    clauses = request.filters.clauses\n    among",
        "    clauses: list[Mapping[str, Any]] = []\n    among",
        "tests/cluster/test_modes*.py tests/cluster/test_search.py",
    ),
    Fault(
        "the password gets into a load's log",
        "langshift/commands/load_display.py",
        "self._corpus, place.name)",
        'self._corpus, [place.name, __import__("os").environ.get("OPENSEARCH_PASSWORD")])',
        "tests/cluster/access/test_secrets.py",
    ),
    Fault(
        "the console answers under any name",
        "web/security.py",
        'if not self._access.serves(request.headers.get("host", "")):',
        'if not self._access.serves(request.headers.get("host", "")) and not request.url:',
        "tests/unit/test_console*.py tests/cluster/console/test_console_access.py",
    ),
    Fault(
        "a template may change the vector field",
        "plugin/user_template.py",
        "        _check_embedding(field, place, ours[name])\n",
        "        pass\n",
        "tests/unit/test_template*.py tests/cluster/test_template.py",
    ),
    Fault(
        "a regional language does not fall back to the primary one",
        "debias/vectors.py",
        "for wider in filter(None, (primary(language), macrolanguage(language))):",
        "for wider in filter(None, (macrolanguage(language),)):",
        "tests/unit/test_vectors.py tests/unit/test_debias.py",
    ),
    Fault(
        "queries are shifted although they are to stay",
        "lab/langshift_lab/methods/debiaser.py",
        "if not self.shift_queries and self.method not in QUERY_SIDE:",
        "if self.vectors is None:",
        "lab/tests/unit/test_method_debiaser.py",
    ),
    Fault(
        "a retune subtracts the new scale from what is shifted already",
        "plugin/shift.painless",
        "alpha = number(stamp.alpha);",
        "alpha = 0.0;",
        "tests/cluster/test_painless.py tests/cluster/versions/test_retune.py",
    ),
    Fault(
        "a retune misses what was written while it copied",
        "plugin/transfer/copying.py",
        '{"range": {"_seq_no": {"gt": checkpoint}}}',
        '{"range": {"_seq_no": {"gt": checkpoint + 1}}}',
        "tests/cluster/versions/test_[rt]*.py tests/cluster/faults/test_transfer*.py",
    ),
    Fault(
        "a resumed load takes one line too many for handled",
        "ingest/bulk/journal_store.py",
        '        self._lasts[begin:end] = array("q", [last])\n',
        '        self._lasts[begin:end] = array("q", [last + 1])\n',
        "tests/unit/test_bulk*.py tests/cluster/test_resume.py",
    ),
    Fault(
        "significance takes the questions of an article for independent",
        "evaluate/compare/significance.py",
        "    known = {key: found for key, found in differences.items() if found}\n    names",
        "    known = {key: found for key, found in differences.items() if found}\n"
        "    clusters = {query: query for found in known.values() for query in found}\n    names",
        "tests/unit/test_compare*.py",
    ),
    Fault(
        "hybrid weighs words as vectors and vectors as words",
        "retrieval/modes/hybrid.py",
        'both = {"dense": max(0.0, 1 - words - tokens), "lexical": words}',
        'both = {"dense": words, "lexical": max(0.0, 1 - words - tokens)}',
        "tests/unit/test_search*.py tests/cluster/test_modes.py",
    ),
    Fault(
        "documents are sent to a model without its prefix",
        "debias/encoders/embeddings_api.py",
        "[self.document_prefix + text for text in texts]",
        "list(texts)",
        "tests/unit/test_encoder_http.py",
    ),
]


def main(arguments: list[str]) -> int:
    """Plant the faults that are named by number, or all."""
    everything = "--all" in arguments
    numbers = [int(one) for one in arguments if one != "--all"] or range(1, len(FAULTS) + 1)
    survived = 0
    for number in numbers:
        caught = _caught(FAULTS[number - 1], everything=everything)
        survived += caught is None
        print(f"{number:2} {FAULTS[number - 1].name}: {caught or 'SURVIVED'}", flush=True)
    return 1 if survived else 0


def _caught(fault: Fault, *, everything: bool) -> str | None:
    """The first test that fails with a fault; None where none does."""
    path = ROOT / fault.file
    before = path.read_bytes()
    if subprocess.run(["git", "diff", "--quiet", "HEAD", "--", fault.file], cwd=ROOT, check=False).returncode:
        sys.exit(f"{fault.file} has changes that are not committed: commit or stash them first.")
    code = before.decode()
    if code.count(fault.right) != 1:
        sys.exit(f"{fault.file} has {fault.right!r} {code.count(fault.right)} times: correct FAULTS.")
    tests = [] if everything else sorted(str(one) for glob in fault.tests.split() for one in ROOT.glob(glob))
    try:
        path.write_text(code.replace(fault.right, fault.wrong), encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-p", "no:randomly", *tests],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"no end after {PATIENCE} s"
    finally:
        path.write_bytes(before)
    # 1: tests failed; anything else but 0 says that none could run.
    if done.returncode not in (0, 1):
        sys.exit(done.stdout + done.stderr)
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    return failed[1] if failed else None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

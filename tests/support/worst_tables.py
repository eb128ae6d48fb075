"""What tables show at their worst, long names and figures of six digits, and whether each of them can be read then."""

import ast
import sys
from pathlib import Path

from documents import ROOT
from readable_tables import COLUMNS, require_readable

from langshift import output
from langshift.commands import run_tables
from langshift.evaluate.measures.base import Scores

NAME = "articles-of-the-whole-archive-since-nineteen-hundred"
WIDE = "月亮和地球之间的潮汐力使海水每天涨落两次的文章索引"
THAI = "บทความเกี่ยวกับดวงจันทร์และกระแสน้ำขึ้นน้ำลงทั้งหมดในคลังข้อมูล"
NAMES = (NAME, WIDE, THAI)
SENTENCE = f"{NAME} {WIDE} is what a sentence can be about, and it has an end."
LONG = {"nDCG(gains={1: 3, 2: 7, 3: 15, 4: 31})@1000": 0.123456}
MEANS = {"nDCG@20": 0.987654, "R@20": 1.0, "TLR@20": None, **LONG}
COUNT = 999_999
LANGUAGES = ("de", "en", "sr-Latn", "th", "und", "zh-Hant", "x-private", "(not given)", "fr", "ja")


def scores(mean=0.123456, count=1, **more):
    return Scores({str(number): mean for number in range(count)}, COUNT, **more)


CALLS = ("table", "show_table")


def sites_of(rooms, without=()):
    """(File, line) -> last line of each call in these folders that prints a table, but for the files in ``without``."""
    files = [path for room in rooms for path in sorted((ROOT / room).rglob("*.py"))]
    return {
        (str(path), call.lineno): call.end_lineno
        for path in files
        if str(path.relative_to(ROOT)) not in without
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call) and getattr(call.func, "attr", getattr(call.func, "id", None)) in CALLS
    }


def places_called(patch, sites):
    """The places of the calls that print a table; each table is looked at, as narrow as a usual terminal and whole."""
    places = set()
    patch.setenv("COLUMNS", str(COLUMNS))

    def note_place():
        frame = sys._getframe(2)
        name, line = str(Path(frame.f_code.co_filename).resolve()), frame.f_lineno
        places.update(site for site, last in sites.items() if site[0] == name and site[1] <= line <= last)

    def looked_at(table):
        def checked(*given, **how):
            note_place()
            require_readable(table, *given, **how)

        return checked

    def noted(show_table):
        def checked(table):
            note_place()
            show_table(table)

        return checked

    for function, make in ((output.table, looked_at), (run_tables.show_table, noted)):
        for module in [
            module for name, module in sys.modules.items() if name.startswith(("langshift.", "langshift_lab."))
        ]:
            if vars(module).get(function.__name__) is function:
                patch.setattr(module, function.__name__, make(function))
    return places


def require_all_readable(patch, sites, cases):
    """Fail where a table that the cases print cannot be read, or where one of the calls is in no case."""
    called = places_called(patch, sites)
    for shown in cases:
        shown()
    forgotten = {f"{Path(name).relative_to(ROOT)}:{line}" for name, line in set(sites) - called}
    assert not forgotten

"""Files and folders that are written: whole, through no link, and for whom they are meant whatever the umask."""

import os
import pwd
import stat
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

from langshift.evaluate.convert.pool import new_folder
from langshift.files import atomic_write, ensure_folder, private_file, write_bytes, write_json
from langshift_lab.generation.generators import AnswerCache


def mode(path):
    return stat.S_IMODE(path.lstat().st_mode)


@contextmanager
def umask(bits):
    before = os.umask(bits)
    try:
        yield
    finally:
        os.umask(before)


@pytest.fixture(params=["present", "plain"])
def folder(request, tmp_path):
    """A folder that everybody may write to, as /tmp; the test runs as the present user, and as a plain one."""
    if request.param == "present":
        tmp_path.chmod(0o1777)
        yield tmp_path
        return
    if os.geteuid() != 0:
        pytest.skip("the present user is a plain one")
    with tempfile.TemporaryDirectory() as made:
        Path(made).chmod(0o1777)
        os.seteuid(pwd.getpwnam("nobody").pw_uid)
        try:
            yield Path(made)
        finally:
            os.seteuid(0)


@pytest.mark.parametrize("bits", [0o000, 0o022, 0o077, 0o777])
def test_a_private_file_and_its_folders_are_the_owners_alone(folder, bits):
    with umask(bits):
        write_bytes(folder / "a" / "b" / "new", b"1", private=True)
        write_json(folder / "a" / "b" / "new.json", {}, private=True)
        private_file(folder / "a" / "log").close()
    assert (folder / "a" / "b" / "new").read_bytes() == b"1"
    assert {mode(path) for path in (folder / "a", folder / "a" / "b")} == {0o700}
    assert {mode(path) for path in (folder / "a").rglob("*") if path.is_file()} == {0o600}


@pytest.mark.parametrize(("bits", "made"), [(0o000, 0o666), (0o022, 0o644), (0o077, 0o600)])
def test_any_other_new_file_goes_by_the_umask(folder, bits, made):
    with umask(bits):
        write_bytes(folder / "new", b"1")
    assert mode(folder / "new") == made


@pytest.mark.parametrize("private", [False, True])
@pytest.mark.parametrize("decided", [0o600, 0o640, 0o664])
def test_a_file_that_is_replaced_keeps_its_mode(folder, decided, private):
    path = folder / "kept"
    path.touch()
    path.chmod(decided)
    with umask(0), atomic_write(path, private=private) as partial:
        assert mode(partial) == decided
        partial.write_bytes(b"2")
    assert (path.read_bytes(), mode(path)) == (b"2", decided)


def test_no_link_is_followed(folder):
    theirs = folder / "theirs"
    theirs.write_bytes(b"theirs")
    # Such as one could guess before.
    for name in ("report", f".report.partial-{os.getpid()}", "log"):
        (folder / name).symlink_to(theirs)
    write_bytes(folder / "report", b"ours")
    with private_file(folder / "log") as log:
        log.write(b"ours")
    assert theirs.read_bytes() == b"theirs"
    assert all(
        (folder / name).read_bytes() == b"ours" and not (folder / name).is_symlink() for name in ("report", "log")
    )


def test_the_new_files_name_cannot_be_guessed_and_is_gone_after_a_failure(folder):
    names = set()

    def fail():
        with atomic_write(folder / "report") as partial:
            assert partial.read_bytes() == b""
            names.add(partial.name)
            raise ZeroDivisionError

    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            fail()
    assert len(names) == 2
    assert all("report" not in name and len(name) > 16 for name in names)
    assert list(folder.iterdir()) == []


def test_a_failure_names_the_file_that_was_to_be(folder):
    (folder / "file").touch()
    with pytest.raises(FileExistsError, match=f"'{folder / 'file'}'$"):
        write_bytes(folder / "file" / "inner", b"")
    (folder / "closed").mkdir()
    with pytest.raises(IsADirectoryError, match=f"'{folder / 'closed'}'$"):
        write_bytes(folder / "closed", b"")


def test_a_folder_for_others_to_pass_is_not_theirs_to_write_to(folder):
    with umask(0):
        ensure_folder(folder / "a" / "b", 0o755)
    assert [mode(folder / "a"), mode(folder / "a" / "b")] == [0o755, 0o755]


def test_converted_datasets_and_kept_answers_are_the_owners_alone(folder):
    (folder / "shared").mkdir()
    (folder / "shared").chmod(0o750)
    with umask(0):
        for name in ("made", "shared"):
            with new_folder(folder / name) as partial:
                (partial / "corpus.jsonl").touch()
        AnswerCache(folder / "cache" / "answers.sqlite").__exit__()
    assert [mode(folder / name) for name in ("made", "shared", "cache")] == [0o700, 0o750, 0o700]
    assert {mode(path) for path in (folder / "cache").iterdir()} == {0o600}

"""What others may put where a file is to be, and what may happen while it is written."""

import os
import stat
import threading
from pathlib import Path

import pytest

from warmq._files import lock, write_whole


def written(path: Path, text: str) -> None:
    write_whole(path, lambda file: file.write(text.encode()))


def test_a_file_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 255)
    written(path, "earlier")
    path.chmod(0o640)

    def half(file: object) -> None:
        assert [stat.S_IMODE(it.stat().st_mode) for it in tmp_path.glob(".*.unfinished")] == [0o600]
        raise OSError("no space")

    with pytest.raises(OSError, match="no space"):
        write_whole(path, half)
    assert (path.read_text(), os.listdir(tmp_path)) == ("earlier", [path.name])
    written(path, "later")
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("later", 0o640)


def test_a_pipe_is_written_into_and_a_link_is_followed(tmp_path: Path) -> None:
    pipe, link, target = tmp_path / "pipe", tmp_path / "link", tmp_path / "far" / "rows"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    written(pipe, "all of it")
    reader.join()
    assert read == ["all of it"] and stat.S_ISFIFO(pipe.lstat().st_mode)
    target.parent.mkdir()
    link.symlink_to("far/rows")
    written(link, "there")
    assert link.is_symlink() and target.read_text() == "there"


def test_what_is_planted_is_not_written_through(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    for name in [".rows.unfinished", "_lock"]:
        (tmp_path / name).symlink_to(victim)
    written(tmp_path / "rows", "ours")
    with pytest.raises(OSError):
        lock(tmp_path / "_lock")
    assert victim.read_text() == "precious"
    if os.geteuid() == 0:
        shared = tmp_path / "shared"
        shared.mkdir()
        shared.chmod(0o1777)
        (shared / "link").symlink_to(victim)
        os.lchown(shared / "link", 12345, -1)
        with pytest.raises(PermissionError, match="user 12345"):
            written(shared / "link", "ours")
        assert victim.read_text() == "precious"


def test_a_lock_says_who_holds_it(tmp_path: Path) -> None:
    held = lock(tmp_path / "_lock")
    with pytest.raises(BlockingIOError, match=f"process {os.getpid()}"):
        lock(tmp_path / "_lock")
    os.close(held)
    os.close(lock(tmp_path / "_lock"))

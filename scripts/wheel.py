#!/usr/bin/env python3
"""Packs a wheel around a `warmq` that is built already: what `maturin build` makes, without building again.

    scripts/wheel.py BINARY FOLDER [TAGS]      prints the path of the wheel

For tests (`make test` has a debug build, and another would take minutes) and for `make dist`, whose static command runs on more systems
than the one it was built on: TAGS are those of its name, as in py3-none-musllinux_1_1_x86_64. Needs maturin, for the metadata.
"""

import base64
import hashlib
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

PYTHON = Path(__file__).resolve().parent.parent / "python"


def main(binary: Path, folder: Path, tags: str | None = None) -> Path:
    with tempfile.TemporaryDirectory() as scratch:
        make = [sys.executable, "-m", "maturin", "pep517", "write-dist-info", "--metadata-directory", scratch]
        subprocess.run(make, cwd=PYTHON, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        (info,) = Path(scratch).iterdir()
        if tags:
            retag(info / "WHEEL", tags)
        stem = info.name.removesuffix(".dist-info")
        files = {f"{info.name}/{path.relative_to(info)}": path for path in info.rglob("*") if path.is_file()}
        package = PYTHON / "src"
        sources = [path for path in package.rglob("*") if path.suffix == ".py" or path.name == "py.typed"]
        files |= {str(path.relative_to(package)): path for path in sources}
        files[f"{stem}.data/scripts/warmq"] = binary
        tag = tags or next(line.split()[1] for line in (info / "WHEEL").read_text().splitlines() if line.startswith("Tag:"))
        folder.mkdir(parents=True, exist_ok=True)
        wheel = folder / f"{stem}-{tag}.whl"
        pack(wheel, files, f"{info.name}/RECORD")
        return wheel


def retag(wheel: Path, tags: str) -> None:
    python, abi, platforms = tags.split("-")
    others = [line for line in wheel.read_text().splitlines() if line and not line.startswith("Tag:")]
    wheel.write_text("\n".join(others + [f"Tag: {python}-{abi}-{platform}" for platform in platforms.split(".")]) + "\n")


def pack(wheel: Path, files: dict[str, Path], record: str) -> None:
    lines = []
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, path in sorted(files.items()):
            content = path.read_bytes()
            entry = zipfile.ZipInfo(name)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if "/scripts/" in name else 0o100644) << 16
            archive.writestr(entry, content)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            lines.append(f"{name},sha256={digest},{len(content)}\n")
        archive.writestr(record, "".join(lines) + f"{record},,\n")


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    print(main(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:]))

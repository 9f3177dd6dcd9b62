"""The rules of the house as tests: who may import what, who may touch a disk, who may print, sizes, words, and places.

Each test gathers all offenders before it fails, so that one run shows the whole list. The checks read the syntax tree,
not the text, so a word in a docstring never counts; the rules themselves are tested at
the end, on sources that break them.
"""

from __future__ import annotations

import ast
import statistics
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("layout", "logstore", "reconciler")
ARROW = (*PACKAGES, "tools", "tests")
"""Each may import itself and what stands before it."""

TOP_LEVEL = {"pyproject.toml", "README.md", "layout", "logstore", "reconciler", "tests", "tools"}
IMPURE = {
    *("os", "shutil", "logging", "time", "random", "subprocess"),
    *("fcntl", "glob", "io", "mmap", "multiprocessing", "pathlib", "socket", "tempfile", "threading"),
}
MUTATORS = {
    *("rename", "renames", "replace", "unlink", "remove", "rmdir", "removedirs", "mkdir", "makedirs", "rmtree"),
    *("truncate", "ftruncate", "link", "symlink", "mknod", "mkfifo", "chmod", "chown", "utime", "move"),
    *("copy", "copy2", "copyfile", "copytree"),
}
PATH_MUTATORS = {"mkdir", "rmdir", "unlink", "touch", "write_text", "write_bytes", "symlink_to", "hardlink_to"}
THE_WRITER = Path("logstore/fs/durable.py")

MODULE_MAX, MODULE_MEDIAN, FUNCTION_MAX = 400, 150, 70


class Source:
    """One Python file: its path below the repository, its text and its syntax tree."""

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self.text = text
        self.tree = ast.parse(text)

    @property
    def package(self) -> str:
        return self.path.parts[0]

    @property
    def lines(self) -> int:
        return self.text.count("\n")

    def at(self, line: int, text: str) -> str:
        return f"{self.path}:{line}: {text}"

    def imports(self) -> Iterator[tuple[int, str]]:
        """Line and top-level name of everything imported, inside functions too."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                for name in node.names:
                    yield node.lineno, name.name.split(".")[0]
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, self.at(node.lineno, "a relative import")
                yield node.lineno, (node.module or "").split(".")[0]

    def calls(self) -> Iterator[tuple[int, str, str]]:
        """Line, owner and name of every call: ``os.rename(...)`` gives ``("os", "rename")``, ``print()`` no owner."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call):
                if isinstance(node.func, ast.Attribute):
                    yield node.lineno, ast.unparse(node.func.value), node.func.attr
                elif isinstance(node.func, ast.Name):
                    yield node.lineno, "", node.func.id

    def functions(self) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield node


def read_sources(*folders: str) -> list[Source]:
    paths = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]
    return [Source(path.relative_to(ROOT), path.read_text(encoding="utf-8")) for path in paths]


@pytest.fixture(scope="module")
def packages() -> list[Source]:
    return read_sources(*PACKAGES)


@pytest.fixture(scope="module")
def sources() -> list[Source]:
    return read_sources(*PACKAGES, "tools")


def none_of(offenders: list[str]) -> None:
    assert not offenders, "\n".join(["", *offenders])


def against_the_arrow(source: Source) -> list[str]:
    later = ARROW[ARROW.index(source.package) + 1 :]
    return [source.at(line, f"imports {name}") for line, name in source.imports() if name in later]


def impure(source: Source) -> list[str]:
    reached = [source.at(line, f"imports {name}") for line, name in source.imports() if name in IMPURE]
    named = {"open", "print", "input", "exec", "eval"}
    return reached + [
        source.at(line, f"calls {name}") for line, owner, name in source.calls() if not owner and name in named
    ]


def changes_to_a_disk(source: Source) -> list[str]:
    """Calls that change a disk by themselves; those of a ``Disk`` that was handed in are the way to do it."""
    found = []
    for line, owner, name in source.calls():
        by_module = owner in ("os", "shutil") and name in MUTATORS
        by_seam = owner.rpartition(".")[2].lstrip("_") == "disk"
        by_path = source.package != "reconciler" and bool(owner) and name in PATH_MUTATORS and not by_seam
        if by_module or by_path:
            found.append(source.at(line, f"{owner}.{name}"))
    renamed = [
        source.at(node.lineno, f"takes names out of {node.module}, which hides a change")
        for node in ast.walk(source.tree)
        if isinstance(node, ast.ImportFrom)
        and node.module in ("os", "shutil")
        and any(alias.name in MUTATORS for alias in node.names)
    ]
    return found + renamed


def prints(source: Source) -> list[str]:
    return [source.at(line, "prints") for line, owner, name in source.calls() if not owner and name == "print"]


def swallowed(source: Source) -> list[str]:
    broad = {"Exception", "BaseException"}
    found = []
    for node in ast.walk(source.tree):
        if isinstance(node, ast.ExceptHandler):
            caught = {part.id for part in ast.walk(node.type) if isinstance(part, ast.Name)} if node.type else broad
            if caught & broad and not any(isinstance(part, ast.Raise) for part in ast.walk(node)):
                found.append(source.at(node.lineno, "catches everything and raises nothing"))
    return found


def test_each_package_imports_only_what_stands_before_it(sources: list[Source]) -> None:
    none_of([text for source in sources for text in against_the_arrow(source)])


def test_layout_needs_the_standard_library_alone_and_does_no_input_or_output(packages: list[Source]) -> None:
    layout = [source for source in packages if source.package == "layout"]
    assert layout
    none_of([text for source in layout for text in impure(source)])
    allowed = {*sys.stdlib_module_names, "layout"}
    none_of([source.at(line, name) for source in layout for line, name in source.imports() if name not in allowed])


def test_only_one_module_changes_a_disk(packages: list[Source]) -> None:
    readers = [source for source in packages if source.path != THE_WRITER]
    none_of([text for source in readers for text in changes_to_a_disk(source)])


def test_spark_is_imported_only_by_the_audit(packages: list[Source]) -> None:
    others = [source for source in packages if source.path.parts[:2] != ("reconciler", "audit")]
    strangers = [source.at(line, name) for source in others for line, name in source.imports() if name == "pyspark"]
    none_of(strangers)


def test_only_the_command_line_and_the_tools_print(packages: list[Source]) -> None:
    quiet = [source for source in packages if source.path.parts[:2] != ("reconciler", "cli")]
    none_of([text for source in quiet for text in prints(source)])


def test_no_error_is_swallowed(sources: list[Source]) -> None:
    none_of([text for source in sources for text in swallowed(source)])


def test_no_module_is_longer_than_400_lines_and_half_of_them_have_at_most_150(sources: list[Source]) -> None:
    none_of([source.at(1, f"{source.lines} lines") for source in sources if source.lines > MODULE_MAX])
    assert statistics.median(source.lines for source in sources) <= MODULE_MEDIAN


def test_no_function_is_longer_than_70_lines(sources: list[Source]) -> None:
    lengths = [
        (source, node, (node.end_lineno or node.lineno) - node.lineno + 1)
        for source in [*sources, *read_sources("tests")]
        for node in source.functions()
    ]
    assert [
        s.at(node.lineno, f"{node.name}: {length} lines") for s, node, length in lengths if length > FUNCTION_MAX
    ] == []


def test_every_module_says_in_a_docstring_what_it_owns(sources: list[Source]) -> None:
    silent = [str(source.path) for source in sources if len((ast.get_docstring(source.tree) or "").split()) < 5]
    none_of(silent)


def test_no_comment_puts_work_off(sources: list[Source]) -> None:
    found = []
    for source in [*sources, *read_sources("tests")]:
        with tokenize.open(ROOT / source.path) as file:
            for token in tokenize.generate_tokens(file.readline):
                if token.type == tokenize.COMMENT and any(
                    word in token.string for word in ("TODO", "FIXME", "XXX", "HACK")
                ):
                    found.append(source.at(token.start[0], token.string))
    none_of(found)


def has_logic(source: Source) -> bool:
    """Whether there is something to test: any function that is not the constructor of an exception or the like."""
    return any(not (node.name.startswith("__") and node.name.endswith("__")) for node in source.functions())


def test_every_module_with_logic_has_its_own_test_file(packages: list[Source]) -> None:
    """``a/b/c.py`` is tested by ``tests/a/b/test_c.py`` or ``tests/a/test_b_c.py``; what needs Spark, in its folder."""
    missing = []
    for source in packages:
        parts = source.path.with_suffix("").parts
        if source.path.name == "__init__.py" or not has_logic(source):
            continue
        places = [Path("tests", *parts[:cut], f"test_{'_'.join(parts[cut:])}.py") for cut in range(1, len(parts))]
        places += [Path("tests", "spark", f"test_spark_{parts[-1]}.py")] * ("spark" in parts)
        if not any((ROOT / place).is_file() for place in places):
            missing.append(f"{source.path} has no {places[-1]}")
    none_of(missing)


def test_the_names_of_test_files_are_unique() -> None:
    paths: dict[str, list[str]] = {}
    for path in (ROOT / "tests").rglob("test_*.py"):
        paths.setdefault(path.name, []).append(str(path.relative_to(ROOT)))
    assert [same for same in paths.values() if len(same) > 1] == []
    assert list((ROOT / "tests").rglob("__init__.py")) == []


def test_the_top_level_is_closed() -> None:
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listing.returncode == 0:
        names = {line.split("/")[0] for line in listing.stdout.splitlines()}
    else:
        names = {path.name for path in ROOT.iterdir()}
    assert {name for name in names if not name.startswith(".")} == TOP_LEVEL


@pytest.mark.parametrize(
    ("rule", "path", "text"),
    [
        (against_the_arrow, "layout/a.py", "import logstore.scan.scanner"),
        (against_the_arrow, "logstore/a.py", "def f():\n    from reconciler import desired"),
        (against_the_arrow, "reconciler/a.py", "from tools import machine"),
        (impure, "layout/a.py", "import os"),
        (impure, "layout/a.py", "data = open('x').read()"),
        (changes_to_a_disk, "logstore/a.py", "import os\nos.rename('a', 'b')"),
        (changes_to_a_disk, "reconciler/a.py", "import shutil\nshutil.rmtree('a')"),
        (changes_to_a_disk, "logstore/a.py", "from os import unlink"),
        (changes_to_a_disk, "logstore/a.py", "path.unlink()"),
        (changes_to_a_disk, "logstore/a.py", "disk.path.unlink()"),
        (prints, "logstore/a.py", "print('x')"),
        (swallowed, "logstore/a.py", "try:\n    f()\nexcept Exception:\n    pass"),
        (swallowed, "logstore/a.py", "try:\n    f()\nexcept:\n    g()"),
    ],
)
def test_each_rule_catches_what_it_is_there_for(rule, path: str, text: str) -> None:
    assert len(rule(Source(Path(path), text))) == 1


@pytest.mark.parametrize(
    ("rule", "path", "text"),
    [
        (against_the_arrow, "tools/a.py", "import layout, logstore, reconciler"),
        (impure, "layout/a.py", "import struct\nfile.open()"),
        (changes_to_a_disk, "reconciler/a.py", "text.replace('a', 'b')\nrows.remove(1)"),
        (changes_to_a_disk, "logstore/a.py", "self._disk.unlink(parent, name)\nlog_dir.disk.rmdir(parent, name)"),
        (prints, "logstore/a.py", '"""print(1)"""'),
        (swallowed, "logstore/a.py", "try:\n    f()\nexcept OSError:\n    pass"),
    ],
)
def test_no_rule_takes_offence_at_what_is_right(rule, path: str, text: str) -> None:
    assert rule(Source(Path(path), text)) == []

"""The rules of the house as tests: who may import what, through which door, who may touch a disk, sizes and words.

Each test gathers all offenders before it fails, so that one run shows the whole list. The checks read the syntax tree,
not the text, so a word in a docstring never counts; the rules themselves are tested at
the end, on sources that break them.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
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
THE_CRASH_DISK = Path("logstore/fs/crash_disk")
"""It is a ``Disk`` itself, and changes what lies on one by its parent class and by ``PLAIN``."""

MODULE_MAX, FUNCTION_MAX, FOLDER_MAX = 450, 70, 12
LISTS = {
    "layout": 16,  # one format to a file
    "reconciler/cli/commands": 16,  # one verb to a file
    "reconciler/cli/parameters": 15,  # the parameters of one verb to a file
    "reconciler/simulator/controller": 15,  # one duty of Kafka's controller to a file
}
"""Folders that are a list, and may be longer for it."""

FLOORS: Mapping[str, tuple[str, ...]] = {
    "logstore": (
        *("errors", "arguments", "clock", "settings", "tunables", "parallel", "fs", "rows", "log_dir", "scan"),
        *("staging", "journal", "purge", "store", "namespaces", "repair", "watch"),
    ),
    "reconciler": (
        *("errors", "text", "policy", "desired", "verdicts", "next_steps", "protocol", "sources", "plan", "preflight"),
        *("audit", "history", "whereabouts", "watch", "metrics", "broker", "topic_ids", "namespaces"),
        *("simulator", "cli"),
    ),
    "reconciler.simulator": (
        *("kernel", "zookeeper", "placement", "controller", "machine", "admin", "cluster", "checks", "drills", "runs"),
    ),
}
"""What lies in a package, from the ground up: each imports only what stands before it."""

PRIVATE_WORDS = re.compile(r"(?<![.\w])(lots?|aside|ahead|told|rehears\w*)\b", re.IGNORECASE)
"""Words of ours for things that have a name: batch, staging, prefetch, given, dry run."""


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

    @property
    def module(self) -> str:
        name = ".".join(self.path.with_suffix("").parts)
        return name.removesuffix(".__init__")

    @property
    def home(self) -> str:
        """The package that the module lies in; of a package itself, the package."""
        return self.module if self.path.name == "__init__.py" else self.module.rpartition(".")[0]

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

    def names_imported(self) -> Iterator[tuple[int, str, str]]:
        """Line, module and name of everything that is imported from a module of ours, for types alone too."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in ARROW:
                for name in node.names:
                    yield node.lineno, node.module or "", name.name

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
        by_seam |= source.path.parent == THE_CRASH_DISK and owner in ("PLAIN", "super()")
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


def test_no_module_is_longer_than_450_lines(sources: list[Source]) -> None:
    none_of([source.at(1, f"{source.lines} lines") for source in sources if source.lines > MODULE_MAX])


def test_no_folder_holds_more_modules_than_a_reader_takes_in(sources: list[Source]) -> None:
    counts = Counter(str(source.path.parent) for source in sources if source.path.name != "__init__.py")
    none_of([f"{name}: {count} modules" for name, count in counts.items() if count > LISTS.get(name, FOLDER_MAX)])


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


def package_of(module: str, modules: Mapping[str, Source]) -> str:
    return modules[module].home


def imported_modules(source: Source, modules: Mapping[str, Source]) -> Iterator[tuple[int, str]]:
    """Line and name of every module of ours that is imported; of a name that a package exports, the package."""
    for line, module, name in source.names_imported():
        if f"{module}.{name}" in modules:
            yield line, f"{module}.{name}"
        elif module in modules:
            yield line, module


def past_a_door(source: Source, modules: Mapping[str, Source]) -> list[str]:
    """Imports of a module that lies in another package, which is entered by its door alone."""
    found = []
    for line, module in imported_modules(source, modules):
        home = package_of(module, modules)
        is_door = module == home
        if not is_door and home != "layout" and home != source.home and not source.home.startswith(f"{home}."):
            found.append(source.at(line, f"imports {module}, which lies behind the door of {home}"))
    return found


def upwards(source: Source, modules: Mapping[str, Source]) -> list[str]:
    """Imports of a package that stands above the importing module, by :data:`FLOORS`."""
    found = []
    for house, floors in FLOORS.items():
        if not source.module.startswith(f"{house}."):
            continue
        mine = floors.index(source.module.removeprefix(f"{house}.").split(".")[0])
        for line, module in imported_modules(source, modules):
            if module.startswith(f"{house}."):
                other = module.removeprefix(f"{house}.").split(".")[0]
                if other not in floors or floors.index(other) > mine:
                    found.append(source.at(line, f"imports {module}, which stands above it"))
    return found


def circles(arrows: Mapping[str, set[str]]) -> list[str]:
    """Every module that can be reached from itself; none: there is no circle."""
    found = []
    for start in arrows:
        seen, waiting = set[str](), set(arrows[start])
        while waiting:
            module = waiting.pop()
            seen.add(module)
            waiting |= arrows.get(module, set()) - seen
        if start in seen:
            found.append(start)
    return found


@pytest.fixture(scope="module")
def modules(sources: list[Source]) -> dict[str, Source]:
    return {source.module: source for source in sources}


def test_a_package_is_entered_by_its_door(sources: list[Source], modules: dict[str, Source]) -> None:
    none_of([text for source in sources for text in past_a_door(source, modules)])


def test_no_import_runs_upwards(sources: list[Source], modules: dict[str, Source]) -> None:
    none_of([text for source in sources for text in upwards(source, modules)])


CHOSEN_FOR_SPEED = re.compile(r"AT_ONCE|BATCH|PIECE|CHUNK|SLICE|READ|PROCESSES|PIPE|UNIT|FEW|FEWEST|PAYS?_|PER_")
"""Words in the names of numbers that change how fast something is and not what comes of it."""


_ARITHMETIC = (ast.Constant, ast.BinOp, ast.operator, ast.UnaryOp, ast.unaryop, ast.Tuple, ast.expr_context)


def numbers(source: Source) -> Iterator[tuple[int, str]]:
    """Line and name of every number that a module names at its top, alone or with others on one line."""
    for node in source.tree.body:
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        parts = list(ast.walk(node.value))
        constants = [part.value for part in parts if isinstance(part, ast.Constant)]
        if all(isinstance(part, _ARITHMETIC) for part in parts) and all(type(each) is int for each in constants):
            (target,) = node.targets if isinstance(node, ast.Assign) else (node.target,)
            yield from ((node.lineno, name.id) for name in ast.walk(target) if isinstance(name, ast.Name))


def test_numbers_that_were_chosen_for_speed_stand_in_one_table(packages: list[Source]) -> None:
    apart = ("logstore.tunables", "logstore.fs.crash_disk")
    engine = [source for source in packages if source.package == "logstore" and not source.module.startswith(apart)]
    strays = [source.at(line, name) for source in engine for line, name in numbers(source)]
    none_of([stray for stray in strays if CHOSEN_FOR_SPEED.search(stray.rpartition(": ")[2])])
    (table,) = [source for source in packages if source.module == "logstore.tunables"]
    names = [name for _, name in numbers(table)]
    assert len(names) > 10
    used = {name for source in engine for _, module, name in source.names_imported() if module == table.module}
    assert set(names) == used


def test_there_is_no_circle_of_imports_not_even_for_types(sources: list[Source], modules: dict[str, Source]) -> None:
    doors = {module for module, source in modules.items() if source.path.name == "__init__.py"}
    arrows = {
        source.module: {module for _, module in imported_modules(source, modules) if module not in doors}
        for source in sources
    }
    none_of(circles(arrows))


def test_there_is_no_circle_of_packages(sources: list[Source], modules: dict[str, Source]) -> None:
    arrows = defaultdict[str, set[str]](set)
    for source in sources:
        for _, module in imported_modules(source, modules):
            home = package_of(module, modules)
            # A package and those within it are one here; what they may take from each other is said by FLOORS.
            if not f"{home}.".startswith(f"{source.home}.") and not f"{source.home}.".startswith(f"{home}."):
                arrows[source.home].add(home)
    none_of(circles(arrows))


def exported(source: Source) -> set[str]:
    """The names in a door's ``__all__``."""
    for node in source.tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return set(ast.literal_eval(node.value))
    return set()


def offered(source: Source) -> set[str]:
    """The names that a door imports in order to export them: of its package, and numbers of the one table."""
    return {
        alias.asname or alias.name
        for node in ast.walk(source.tree)
        if isinstance(node, ast.ImportFrom)
        and (node.module or "").startswith((f"{source.module}.", "logstore.tunables"))
        for alias in node.names
    }


def lazily_offered(source: Source) -> set[str] | None:
    """The names in a door's ``lazy_exports``; None: it imports all of them at once."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "lazy_exports":
            modules: dict[str, tuple[str, ...]] = ast.literal_eval(node.args[1])
            return {name for names in modules.values() for name in names}
    return None


def doors_of(sources: list[Source]) -> list[Source]:
    return [source for source in sources if source.path.name == "__init__.py" and exported(source)]


def test_a_door_offers_what_it_says_lazily_or_not(packages: list[Source]) -> None:
    doors = doors_of(packages)
    assert doors
    for door in doors:
        names, lazy = exported(door), lazily_offered(door)
        assert names - {"lazy_exports"} <= offered(door), door.path
        assert lazy is None or lazy == names - {"lazy_exports"}, door.path


def test_no_door_exports_a_name_that_one_of_its_modules_has(packages: list[Source], modules: dict[str, Source]) -> None:
    """Whether the module or the name was meant would depend on what was imported before."""
    below = {"logstore": {"scan"}, "reconciler": {"audit"}}  # bound before the name, see there
    none_of(
        [
            f"{door.path}: {name}"
            for door in doors_of(packages)
            for name in exported(door) - below.get(door.module, set())
            if f"{door.module}.{name}" in modules
        ]
    )


def test_every_name_of_a_door_is_used_in_a_test(packages: list[Source]) -> None:
    used = set[str]()
    for source in read_sources("tests"):
        for node in ast.walk(source.tree):
            if isinstance(node, ast.alias):
                used.add(node.name.rpartition(".")[2])
            elif isinstance(node, ast.Attribute):
                used.add(node.attr)
            elif isinstance(node, ast.Name):
                used.add(node.id)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "import" in node.value:
                used |= set(re.findall(r"\w+", node.value))  # a program that the test runs
    none_of([f"{door.path}: {name}" for door in doors_of(packages) for name in sorted(exported(door) - used)])


def test_every_package_has_a_folder_of_tests(packages: list[Source]) -> None:
    """``a/b`` is tested in ``tests/a/b``; what needs Spark, in its own folder."""
    homes = {source.home for source in packages if source.path.name != "__init__.py"} - {"reconciler"}  # its errors
    folders = {home: Path("tests", *home.split(".")) for home in homes} | {
        "reconciler.audit.spark": Path("tests/spark")
    }
    none_of(
        [f"{home} has no {folder}" for home, folder in folders.items() if not list((ROOT / folder).glob("test_*.py"))]
    )


def test_no_public_class_name_stands_twice_in_a_package(packages: list[Source]) -> None:
    places = defaultdict[tuple[str, str], list[str]](list)
    for source in packages:
        package = "/".join(source.path.parts[:2]) if len(source.path.parts) > 2 else source.package
        for node in source.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[package, node.name].append(str(source.path))
    none_of([f"{package}: class {name} in {found}" for (package, name), found in places.items() if len(found) > 1])


def private_words(source: Source) -> list[str]:
    """Words of ours in names, docstrings and comments; what users read in messages is not looked at here."""
    found = []
    # The docstring of a command is what its --help prints.
    commands = [node for node in source.functions() if node.name == "command"]
    help_texts = {id(node.body[0]) for node in commands if source.path.parts[:2] == ("reconciler", "cli")}
    for node in ast.walk(source.tree):
        names = [getattr(node, field, None) for field in ("id", "name", "attr", "arg")]
        words = [word for name in names if isinstance(name, str) for word in name.split("_")]
        if any(PRIVATE_WORDS.fullmatch(word) for word in words):
            found.append(source.at(getattr(node, "lineno", 0), f"a name: {' '.join(words)}"))
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and id(node) not in help_texts
        if is_text and isinstance(node.value.value, str):
            found += [source.at(node.lineno, match.group()) for match in PRIVATE_WORDS.finditer(node.value.value)]
    for number, line in enumerate(source.text.splitlines(), 1):
        comment = re.search(r"(?:^|\s)#\s(.*)$", line)
        found += [
            source.at(number, match.group()) for match in PRIVATE_WORDS.finditer(comment.group(1) if comment else "")
        ]
    return found


VERB = r"(audit|scan|explain|plan|apply|staged|restore|purge|repair|preflight|reconcile|watch|doctor|convert|namespace)"
A_COMMAND = re.compile(rf"(?<![\w'`/])logstore {VERB}\b|kafka-[a-z-]+\.sh")
"""A verb that is named in quotes refers to it; without quotes it begins a command to paste."""
HELP_TEXTS = {"help", "epilog", "short_help", "appName"}


def printed_commands(source: Source) -> list[str]:
    """Commands in the texts that a program prints; docstrings, ``--help`` and its examples are not looked at."""
    spared = set[int]()
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            spared.add(id(node.value))
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_EPILOG":
            spared |= {id(each) for each in ast.walk(node)}
        if isinstance(node, ast.keyword) and node.arg in HELP_TEXTS:
            spared |= {id(each) for each in ast.walk(node.value)}
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".appName"):
            spared |= {id(each) for each in ast.walk(node)}
    return [
        source.at(node.lineno, f"prints {found[0]!r}")
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in spared
        and (found := A_COMMAND.search(node.value)) is not None
    ]  # fmt: skip


def test_one_place_makes_the_commands_that_are_printed(packages: list[Source]) -> None:
    others = [source for source in packages if source.path.parts[:2] != ("reconciler", "next_steps")]
    none_of([text for source in others for text in printed_commands(source)])


def test_no_word_of_our_own_stands_for_what_has_a_name(packages: list[Source]) -> None:
    none_of([text for source in packages for text in private_words(source)])


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
        (printed_commands, "reconciler/a.py", "say(f'Next: logstore purge {path}')"),
        (printed_commands, "reconciler/a.py", "NEXT = 'kafka-topics.sh --describe'"),
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
        (
            printed_commands,
            "reconciler/a.py",
            "say(\"'logstore staged' lists them\")\noption(help='as logstore audit')",
        ),
    ],
)
def test_no_rule_takes_offence_at_what_is_right(rule, path: str, text: str) -> None:
    assert rule(Source(Path(path), text)) == []

"""The list of incidents: each has a test that is named after it, and each such test is in the list."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"^\| [^|]+ \| [^|]+ \| `(test_\w+)` \|$", re.MULTILINE)
# A row without a test does not look like one; so they are counted too.
ANY_ROW = re.compile(r"^\| (?!what happened)", re.MULTILINE)


def test_every_incident_has_its_test_and_every_test_says_what_happened() -> None:
    # The table before the first heading: what stands below are others.
    document, _, _ = (ROOT / "docs/security.md").read_text().partition("\n## ")
    listed = ROW.findall(document)
    tree = ast.parse((ROOT / "tests/runtime/gateway/test_previews_security.py").read_text())
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    tests = [node for node in tree.body if isinstance(node, functions) and node.name.startswith("test_")]

    assert listed == [test.name for test in tests]
    assert len(listed) == len(ANY_ROW.findall(document)) == 15
    assert [test.name for test in tests if not ast.get_docstring(test)] == []

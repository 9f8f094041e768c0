"""The documents: what they point to is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
LINK = re.compile(r"\]\((?!https?://)([^)#]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_somewhere(document: Path) -> None:
    targets: list[str] = LINK.findall(document.read_text())
    assert [target for target in targets if not (document.parent / target).exists()] == []


def test_every_decision_is_in_the_index() -> None:
    index = (ROOT / "docs/decisions/README.md").read_text()
    pages = sorted(path.name for path in (ROOT / "docs/decisions").glob("[0-9]*.md"))
    assert [page for page in pages if f"({page})" not in index] == []

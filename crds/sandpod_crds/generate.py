"""`python -m sandpod_crds.generate`: write what follows from the models, so that it never has to be written
by hand: the CRDs, the chart's copies of them, and the reference page.
"""

import sys
from pathlib import Path

import yaml

from . import reference
from .crd import definitions

HEADER = "# Generated from the models in crds/sandpod_crds by `make generate`. Do not edit.\n"


def files() -> dict[str, str]:
    """What should be in the repository: text by path."""
    crds = {plural: HEADER + _to_yaml(crd) for plural, crd in definitions().items()}
    return {
        **{f"crds/{plural}.yaml": text for plural, text in crds.items()},
        **{f"charts/sandpod/files/crds/{plural}.yaml": text for plural, text in crds.items()},
        "docs/reference/sandbox.md": reference.page(definitions()),
    }


def main() -> int:
    root = Path.cwd()
    if not (root / "pyproject.toml").is_file():
        sys.stderr.write("run this in the root of the repository\n")
        return 2
    for name, text in files().items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return 0


class _Dumper(yaml.SafeDumper):
    """Indents lists under their key, and knows no aliases: kubectl does, people don't."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: object) -> bool:
        return True


def _to_yaml(value: object) -> str:
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, width=110, allow_unicode=True)


if __name__ == "__main__":
    raise SystemExit(main())

"""`SandboxTemplate`: a blueprint that sandboxes and pools refer to."""

from typing import ClassVar

from ..markers import Model
from ..names import API_VERSION, TEMPLATE_KIND
from . import sandbox_rules
from .meta import Metadata
from .sandbox import SandboxFields


class SandboxTemplateSpec(SandboxFields):
    rules: ClassVar = sandbox_rules.TEMPLATE


class SandboxTemplate(Model):
    """A blueprint for sandboxes: a Sandbox that names it in templateRef takes every field from it that it
    does not set itself.
    """

    api_version: str = API_VERSION
    kind: str = TEMPLATE_KIND
    metadata: Metadata
    spec: SandboxTemplateSpec = SandboxTemplateSpec()
    """What the sandboxes of this template take from it, unless they set it themselves."""

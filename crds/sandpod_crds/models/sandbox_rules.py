"""What has to hold between the fields of a Sandbox or a SandboxTemplate, and between an old and a new
Sandbox."""

from ..markers import Rule

_ROOT = "(has(self.user) && self.user == 'root')"
_STRICT = "(has(self.isolation) && self.isolation == 'Strict')"
ROOT_SENTENCE = "user: root is possible with isolation: Strict only; add that, or choose a UID such as 1000"
_ALLOW = "(has(self.network) && has(self.network.allow) && self.network.allow.size() > 0)"
_RESTRICTED = "(has(self.network.egress) && self.network.egress == 'Restricted')"
ALLOW_SENTENCE = "network.allow works with network.egress: Restricted only; set that, or remove allow"
_SIZED = "(has(self.workspace.size) || has(self.workspace.claimName))"
SIZED_SENTENCE = (
    "workspace needs a size, such as 10Gi, or the claimName of an existing PersistentVolumeClaim; add one"
)

# What the template may bring can only be checked when the sandbox starts and the two are merged.
_FROM_ELSEWHERE = "(has(self.templateRef) || has(self.poolRef))"

_BOTH = "!has(self.workspace) || !has(oldSelf.workspace)"


def _fixed(field: str, why: str) -> Rule:
    now, before = f"self.workspace.{field}", f"oldSelf.workspace.{field}"
    return Rule(
        f"{_BOTH} || (has({now}) == has({before}) && (!has({now}) || {now} == {before}))",
        f"{field} cannot be changed, added or removed later, because {why}",
        field=f".workspace.{field}",
    )


SPEC = (
    Rule(
        "!(has(self.templateRef) && has(self.poolRef))",
        "set templateRef or poolRef, not both; a pool brings its own template",
    ),
    Rule(
        f"!{_ROOT} || {_STRICT} || (!has(self.isolation) && {_FROM_ELSEWHERE})",
        ROOT_SENTENCE,
        field=".user",
    ),
    Rule(
        f"!{_ALLOW} || {_RESTRICTED} || (!has(self.network.egress) && {_FROM_ELSEWHERE})",
        ALLOW_SENTENCE,
        field=".network.allow",
    ),
    Rule(f"!has(self.workspace) || {_SIZED} || {_FROM_ELSEWHERE}", SIZED_SENTENCE, field=".workspace"),
    # On the sandbox and not on the workspace itself, because a template may be changed as one likes.
    _fixed("storageClassName", "a volume does not move between classes; copy the files to a new sandbox"),
    _fixed("claimName", "the files would stay behind in the old claim; create a new sandbox"),
    Rule(
        f"""{_BOTH} || !has(self.workspace.size) || !has(oldSelf.workspace.size)
        || !isQuantity(string(self.workspace.size)) || !isQuantity(string(oldSelf.workspace.size))
        || quantity(string(self.workspace.size)).compareTo(quantity(string(oldSelf.workspace.size))) >= 0""",
        "a volume can grow but not shrink; write the old size or a larger one",
        field=".workspace.size",
    ),
)

OBJECT = (
    Rule(
        "self.metadata.name.size() <= 63 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",
        "the name becomes the name of a pod and part of a host name; use at most 63 lower-case letters, "
        "digits and hyphens, no dots",
        field=".metadata.name",
    ),
    # On the whole object: a rule on spec is not asked when spec itself is gone.
    Rule(
        """!has(oldSelf.spec) || !has(oldSelf.spec.workspace)
        || (has(self.spec) && has(self.spec.workspace))""",
        "the workspace cannot be removed from a sandbox, as its files would be lost; keep it, or delete the "
        "sandbox",
        field=".spec",
    ),
)

TEMPLATE = (
    Rule(f"!{_ROOT} || {_STRICT}", ROOT_SENTENCE, field=".user"),
    Rule(f"!{_ALLOW} || {_RESTRICTED}", ALLOW_SENTENCE, field=".network.allow"),
    Rule(
        "!has(self.workspace) || !has(self.workspace.claimName)",
        "claimName in a template would give one volume to all of its sandboxes; write a size, and each gets "
        "its own",
        field=".workspace.claimName",
    ),
    Rule(f"!has(self.workspace) || {_SIZED}", SIZED_SENTENCE, field=".workspace"),
)

"""All that is known about one sandbox at one moment: what decide decides by."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from sandpod_crds.models import Sandbox
from sandpod_crds.names import LABEL_SANDBOX_NAMESPACE, LABEL_SANDBOX_UID

from .claimants import holder_of_claim, kept_claim, other_in_claim
from .claims import ClaimFacts, claim_facts
from .effective import Source
from .isolation import Enforcement
from .objects import Json, controller, key_of, owner_uid, section, uid_of
from .observations import Answer, Errand, Key, Refusal
from .permission import Rules, find_rules
from .pods import PodFacts, facts
from .pool.claim import Offer
from .pool.environment import Environment
from .pool.pools import Pools
from .resources.claim import workspace_name
from .resources.network_policy import network_behind, policy_name, pool_policy_name
from .store import Store


@dataclass(frozen=True, kw_only=True)
class Situation:
    """What is known about one key. `pod` is the sandbox's own; `namesake` has its name and another owner."""

    key: Key
    sandbox: Sandbox | None = None
    source: Source = field(default_factory=Source)
    rules: Rules = field(default_factory=Rules)
    # The UID of a sandbox of this name whose deletion was seen.
    departed: str | None = None
    pod: PodFacts | None = None
    namesake: PodFacts | None = None
    # More pods of the sandbox than it should have.
    surplus: tuple[PodFacts, ...] = ()
    # Pods of earlier sandboxes of this name that the garbage collector has left without an owner.
    orphans: tuple[PodFacts, ...] = ()
    # By name
    claims: Mapping[str, ClaimFacts] = field(default_factory=dict[str, ClaimFacts])
    # The claim that an earlier sandbox of this name has left
    kept: str | None = None
    # Who has the claim that the sandbox names, or has still a pod at work in the one that it takes up.
    holder: str | None = None
    # Who has to give way to its pod in its claim, and is not gone yet.
    other_in_claim: str | None = None
    network_policy: Json | None = None
    # A pod of an earlier sandbox of this name is still behind it.
    others_behind: bool = False
    # Of its exposed ports, and of earlier sandboxes of this name.
    ingresses: tuple[Json, ...] = ()
    answers: Mapping[Errand, Answer] = field(default_factory=dict[Errand, Answer])
    # By the plural of what was refused
    refusals: Mapping[str, Refusal] = field(default_factory=dict[str, Refusal])
    # What its pool has for it, if it has one
    offer: Offer | None = None
    # What was read of Secrets and ConfigMaps for a warm pod
    environment: Environment | None = None
    # What its pod has yet to be told
    unwritten: Json | None = None
    # For how long this operator has asked the pod's runtime, by a clock that nobody puts
    asked_for: timedelta | None = None
    # Of the pool that its pod comes from, if the pod is behind it
    wall: Json | None = None
    enforcement: Enforcement = Enforcement.UNKNOWN
    # A drain of its pod's node has waited long enough.
    drain_overdue: bool = False


def look(
    store: Store, key: Key, *, pools: Pools, system_namespace: str, enforcement: Enforcement
) -> Situation:
    obj = store.sandboxes.get(key)
    departed = store.departed(key)
    uid = uid_of(obj) if obj is not None else departed
    pod, surplus = _own_pods(store, key.namespace, uid, sandbox=obj)
    namesake = store.pods.get(key)
    if namesake is not None and (owner_uid(namesake) == uid or _is(pod, namesake)):
        namesake = None
    sandbox = Sandbox.model_validate(obj) if obj is not None else None
    network_policy = store.network_policies.get(Key(key.namespace, policy_name(key.name)))
    return Situation(
        key=key,
        sandbox=sandbox,
        source=_source(store, key, obj) if obj is not None else Source(),
        rules=find_rules(store, obj) if obj is not None else Rules(),
        departed=departed,
        pod=pod,
        namesake=facts(namesake) if namesake is not None else None,
        surplus=surplus,
        orphans=tuple(_orphans(store, key, obj)),
        claims={each.name: each for each in _claims(store, key, sandbox, pod)},
        kept=kept_claim(store, sandbox) if sandbox is not None else None,
        holder=holder_of_claim(store, sandbox) if sandbox is not None else None,
        other_in_claim=other_in_claim(store, namespace=key.namespace, pod=pod) if pod is not None else None,
        network_policy=network_policy,
        others_behind=network_policy is not None and _is_another_behind(network_policy, store, uid=uid),
        ingresses=tuple(_ingresses(store, key, system_namespace)),
        answers=store.answers(pod.uid) if pod is not None else {},
        refusals=store.refusals(key),
        offer=_offer(store, sandbox, pools, wanted=pod is None) if sandbox is not None else None,
        asked_for=store.asked_for(pod.uid) if pod is not None else None,
        environment=pools.environment(key),
        unwritten=store.pods.unwritten.get(pod.uid) if pod is not None else None,
        enforcement=enforcement,
        wall=_wall(store, key.namespace, pod) if pod is not None else None,
        drain_overdue=pod is not None and pod.node in store.released_nodes,
    )


def _own_pods(
    store: Store, namespace: str, uid: str | None, *, sandbox: Json | None
) -> tuple[PodFacts | None, tuple[PodFacts, ...]]:
    found = store.pods.owned_by(namespace=namespace, uid=uid) if uid is not None else []
    named = store.named_pod(sandbox) if sandbox is not None else None
    # Somebody has made it nobody's.
    disowned = [named] if named is not None and not controller(named["metadata"]) else []
    owned = [facts(pod) for pod in (*found, *disowned)]
    known = uid_of(named) if named is not None else None
    # The one that the status speaks of first, then one that lives, then the oldest.
    owned.sort(key=lambda pod: (pod.uid != known, pod.deleted_at is not None, pod.under_way_since, pod.uid))
    return (owned[0] if owned else None), tuple(owned[1:])


def _is(pod: PodFacts | None, found: Json) -> bool:
    return pod is not None and pod.uid == uid_of(found)


def _orphans(store: Store, key: Key, sandbox: Json | None) -> Iterator[PodFacts]:
    """What has no owner and our labels is nobody's, unless it says that it is the present sandbox's: then it
    is somebody else's copy.
    """
    stays = sandbox is not None and "deletionTimestamp" not in sandbox["metadata"]
    for pod in store.pods.left_for(namespace=key.namespace, sandbox=key.name):
        made_for = section(pod["metadata"], "labels").get(LABEL_SANDBOX_UID)
        if made_for is not None and not (stays and made_for == uid_of(sandbox or {})):
            yield facts(pod)


def _is_another_behind(network_policy: Json, store: Store, *, uid: str | None) -> bool:
    """Whoever owns it, if anybody does: what lets it out is that no policy selects it any more."""
    behind = network_behind(network_policy)
    made_for = section(network_policy["metadata"], "labels").get(LABEL_SANDBOX_UID)
    # What is ours and selects others, somebody has changed.
    if behind is None or (uid is not None and uid in (behind, made_for)):
        return False
    return store.pods.is_any_behind(behind, namespace=key_of(network_policy).namespace)


def _offer(store: Store, sandbox: Sandbox, pools: Pools, *, wanted: bool) -> Offer | None:
    reference = sandbox.spec.pool_ref
    pool = store.pools.get(Key(sandbox.metadata.namespace, reference.name)) if reference is not None else None
    if pool is None:
        return None
    return pools.offer(pool, sandbox_uid=sandbox.metadata.uid, wanted=wanted)


def _wall(store: Store, namespace: str, pod: PodFacts) -> Json | None:
    return store.network_policies.get(Key(namespace, pool_policy_name(pod.network_uid)))


def _ingresses(store: Store, key: Key, system_namespace: str) -> Iterator[Json]:
    """What somebody has labelled so in another namespace is none of ours."""
    for found in store.ingresses.left_for(namespace=system_namespace, sandbox=key.name):
        if section(found["metadata"], "labels").get(LABEL_SANDBOX_NAMESPACE) == key.namespace:
            yield found


def _claims(store: Store, key: Key, sandbox: Sandbox | None, pod: PodFacts | None) -> Iterator[ClaimFacts]:
    if sandbox is None:
        return
    held = pod.workspace_claim if pod is not None else None
    names = {workspace_name(key.name), sandbox.status.workspace_claim, held, kept_claim(store, sandbox)}
    found = [store.claims.get(Key(key.namespace, name)) for name in names if name]
    owned = store.claims.owned_by(namespace=key.namespace, uid=sandbox.metadata.uid)
    for claim in [*found, *owned]:
        if claim is not None:
            yield claim_facts(claim)


def _source(store: Store, key: Key, obj: Json) -> Source:
    own = section(obj, "spec")
    reference = section(own, "templateRef").get("name")
    if (pool_name := section(own, "poolRef").get("name")) is not None:
        pool = store.pools.get(Key(key.namespace, pool_name))
        if pool is None:
            return Source(own=own, missing=f"SandboxPool {pool_name}")
        reference = section(section(pool, "spec"), "templateRef").get("name")
    if reference is None:
        return Source(own=own)
    template = store.templates.get(Key(key.namespace, reference))
    if template is None:
        return Source(own=own, missing=f"SandboxTemplate {reference}")
    return Source(own=own, template=section(template, "spec"))

"""All that is known about a pool, from the Store and what is remembered beside; and which pools an event of
the watch is about.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime

from sandpod_crds.models import Sandbox, SandboxPool
from sandpod_crds.names import LABEL_NETWORK, LABEL_POOL_UID, LABEL_SANDBOX_UID, Phase

from ..effective import Source, effective_spec
from ..errors import BadPodTemplate
from ..kinds import NAMESPACE, POLICY, POOL, SANDBOX, TEMPLATE, Kind
from ..objects import Json, key_of, section, uid_of
from ..observations import Key, Refusal
from ..permission import policies_in
from ..pods import ANNOTATION_POOL
from ..policy import judge
from ..reasons import Reason
from ..resources.claim import workspace_name
from ..resources.network_policy import is_as_wanted
from ..settings import Installation
from ..store import Store
from .claims import Claims
from .decide import PoolSituation, Volume
from .environment import may_read, references
from .lending import Lending
from .memory import PoolMemory
from .pod import Blueprint, blueprint
from .share import Share, share_of
from .status import PoolReason
from .wall import Wall
from .warm import WarmPod, WarmPods, warm_pod

AWAKE = (Phase.RUNNING, Phase.DRAINING)


def look(
    key: Key,
    *,
    store: Store,
    warm: WarmPods,
    claims: Claims,
    lending: Lending,
    memory: PoolMemory,
    installation: Installation,
    now: datetime,
) -> PoolSituation:
    obj = store.pools.get(key)
    if obj is None:
        return PoolSituation(
            key=key,
            strays=_to_remove(key, store, lending),
            volumes=tuple(_volumes(key, store=store, expected=memory.expected)),
            walls=tuple(_walls(key, store)),
        )
    pool = SandboxPool.model_validate(obj)
    plan, problem = make_blueprint(pool, store=store, memory=memory, installation=installation)
    for name in [name for name in memory.expected if store.pods.get(Key(key.namespace, name)) is not None]:
        memory.settle(name)
    fenced = plan is not None and _stands(plan, key, store)
    pods = tuple(pod for pod in warm.of(pool) if not claims.taken(pod))
    return PoolSituation(
        key=key,
        pool=pool,
        blueprint=plan,
        problem=problem,
        pods=pods,
        bereft=frozenset(pod.uid for pod in pods if _waits_in_vain(pod, store)),
        suspects=frozenset(pod.uid for pod in pods if lending.suspects(pod.uid)),
        strays=_to_remove(key, store, lending),
        awaited=len(memory.expected),
        awaited_until=_next(memory, claims),
        kept_places=tuple(
            memory.kept_places(
                pool.metadata.uid,
                waiting={pod.key.name for pod in pods},
                at=lambda name: store.pods.get(Key(key.namespace, name)),
                now=now,
            )
        ),
        volumes=tuple(_volumes(key, store=store, expected=memory.expected)),
        walls=tuple(_walls(key, store)),
        fenced=fenced,
        claimed=_claimed(key, store),
        claimed_lately=claims.lately(key),
        started_at=memory.started_at,
        share=_share(obj, store),
        refusal=_refusal(memory, plan, fenced=fenced),
        readable=_readable(plan, key, installation),
        status_written_at=memory.status_written_at,
    )


def _waits_in_vain(pod: WarmPod, store: Store) -> bool:
    """For a claim that somebody has deleted: without it, no node takes the pod."""
    claim = pod.facts.workspace_claim
    gone = claim is not None and store.claims.get(Key(pod.key.namespace, claim)) is None
    return gone and pod.facts.node is None


def _refusal(memory: PoolMemory, plan: Blueprint | None, *, fenced: bool) -> Refusal | None:
    """What still holds of it."""
    refused = memory.refusal
    if refused is None or (plan is not None and memory.refused_shape != plan.shape):
        return None
    return None if fenced and refused.reason in (Reason.POLICY_TAKEN, Reason.UNDONE) else refused


def _next(memory: PoolMemory, claims: Claims) -> datetime | None:
    times = [*memory.expected.values(), claims.given_up_at()]
    return min((each for each in times if each is not None), default=None)


def make_blueprint(
    pool: SandboxPool, *, store: Store, memory: PoolMemory, installation: Installation
) -> tuple[Blueprint | None, tuple[PoolReason, str] | None]:
    """The blueprint, or why there is none."""
    template = store.templates.get(Key(pool.metadata.namespace, pool.spec.template_ref.name))
    if template is None:
        return None, (PoolReason.NOT_FOUND, "")
    version = (pool.metadata.uid, uid_of(template), template["metadata"]["resourceVersion"])
    if memory.blueprint is None or memory.blueprint_of != version:
        nobody = Sandbox.model_validate({"metadata": {"name": pool.metadata.name}})
        effective = effective_spec(nobody, Source(own={}, template=section(template, "spec")), recorded=None)
        if effective.trouble is not None:
            return None, (PoolReason.INVALID_TEMPLATE, effective.trouble[1])
        try:
            memory.blueprint = blueprint(pool, spec=effective.spec, installation=installation)
        except BadPodTemplate as error:
            return None, (PoolReason.INVALID_TEMPLATE, str(error))
        memory.blueprint_of = version
    denial = _denial(memory.blueprint, store=store)
    return (memory.blueprint, None) if denial is None else (None, (PoolReason.POLICY_EXCEEDED, denial))


def _denial(plan: Blueprint, *, store: Store) -> str | None:
    """A warm pod runs the template's containers long before any sandbox asks for it."""
    policies = policies_in(plan.pool.metadata.namespace, store=store)
    if policies is None:
        return "which policies hold here is not known before the namespace's labels are."
    if not policies:
        return None
    denial = judge(
        plan.spec,
        pod=plan.start("any").pod,
        policies=policies,
        standing=None,
        installation=plan.installation,
    )
    return denial.message if denial is not None else None


def _share(pool: Json, store: Store) -> Share | None:
    namespace = pool["metadata"]["namespace"]
    policies = policies_in(namespace, store=store)
    if not policies:
        return None
    return share_of(
        pool,
        pools=_pools_in(namespace, store),
        policies=policies,
        waiting=lambda each: len(_staying_pods(each, store)),
    )


def _staying_pods(pool: Json, store: Store) -> list[Json]:
    owned = store.pods.owned_by(namespace=pool["metadata"]["namespace"], uid=uid_of(pool))
    return [pod for pod in owned if "deletionTimestamp" not in pod["metadata"]]


def _pools_in(namespace: str, store: Store) -> Iterator[Json]:
    return iter(store.pools.inside(namespace))


def concerned(kind: Kind, obj: Json, store: Store) -> Iterable[Key]:
    """The pools that have to be looked at when the object changes."""
    key = key_of(obj)
    if kind is POOL:
        return _sharing(key, store)
    if kind is TEMPLATE:
        return [each for each in store.pools if _made_from(store.pools.get(each), key, pool_key=each)]
    if kind is POLICY:
        return store.pools
    if kind is NAMESPACE:
        return [each for each in store.pools if each.namespace == key.name]
    if kind is SANDBOX:
        status = section(obj, "status")
        brought = store.claims.get(Key(key.namespace, status.get("workspaceClaim", "")))
        names = (status.get("pool"), _pool_name(brought) if brought is not None else None)
        return {Key(key.namespace, name) for name in names if name}
    # Claimed pods count in the pool's status, and keep its wall standing.
    name = _pool_name(obj)
    pool = Key(key.namespace, name) if name else _pool_of(obj, store)
    if pool is None:
        return ()
    going = "deletionTimestamp" in section(store.pools.get(pool) or {}, "metadata")
    return _sharing(pool, store) if going else (pool,)


def _pool_name(obj: Json) -> str | None:
    return section(obj["metadata"], "annotations").get(ANNOTATION_POOL)


def _pool_of(obj: Json, store: Store) -> Key | None:
    """By its label, when somebody has taken off its annotation."""
    namespace, uid = key_of(obj).namespace, section(obj["metadata"], "labels").get(LABEL_POOL_UID)
    here = (key for key in store.pools if uid and key.namespace == namespace)
    return next((key for key in here if _uid_at(key, store) == uid), None)


def _uid_at(pool: Key, store: Store) -> str | None:
    return section(store.pools.get(pool) or {}, "metadata").get("uid")


def _sharing(pool: Key, store: Store) -> Iterable[Key]:
    """What one asks for, the others may have to go without; and what one that goes still has."""
    policies = policies_in(pool.namespace, store=store) or ()
    if all(policy.spec.max_warm_pods is None for policy in policies):
        return (pool,)
    return {pool, *(each for each in store.pools if each.namespace == pool.namespace)}


def _made_from(pool: Json | None, template: Key, *, pool_key: Key) -> bool:
    named = section(section(pool or {}, "spec"), "templateRef").get("name")
    return pool_key.namespace == template.namespace and named == template.name


def _volumes(pool: Key, *, store: Store, expected: Iterable[str]) -> Iterator[Volume]:
    """Made for warm pods of this pool or of an earlier one of its name, and not given to a sandbox yet."""
    namespace, pods = pool.namespace, {workspace_name(name) for name in expected}
    for claim in store.claims.left_by_pools(namespace):
        metadata = claim["metadata"]
        if "deletionTimestamp" in metadata or not _is_made_for(claim, pool, store):
            continue
        name = metadata["name"]
        used = (
            name in pods
            or bool(store.pods.mounting(namespace=namespace, claim=name))
            # Also when its pod is gone: its files are there.
            or bool(store.sandboxes.keeping(namespace=namespace, claim=name))
        )
        yield Volume(name=name, uid=uid_of(claim), used=used)


def _is_made_for(obj: Json, pool: Key, store: Store) -> bool:
    """By its annotation, or by its label, when somebody has taken off that."""
    if _pool_name(obj) == pool.name:
        return True
    uid = _uid_at(pool, store)
    return uid is not None and section(obj["metadata"], "labels").get(LABEL_POOL_UID) == uid


def _to_remove(pool: Key, store: Store, lending: Lending) -> tuple[WarmPod, ...]:
    """Whatever else becomes of the pool."""
    return (*_strays(pool, store), *(warm_pod(pod) for pod in lending.abandoned(pool)))


def _strays(pool: Key, store: Store) -> Iterator[WarmPod]:
    """Waiting pods whose owner the garbage collector has taken away. Claimed ones are their sandboxes'."""
    for pod in store.pods.left_by_pools(pool.namespace):
        metadata = pod["metadata"]
        ours = _pool_name(pod) == pool.name
        claimed = LABEL_SANDBOX_UID in section(metadata, "labels")
        if ours and not claimed and "deletionTimestamp" not in metadata:
            yield warm_pod(pod)


def _walls(pool: Key, store: Store) -> Iterator[Wall]:
    for policy in store.network_policies.left_by_pools(pool.namespace):
        metadata = policy["metadata"]
        if "deletionTimestamp" in metadata or not _is_made_for(policy, pool, store):
            continue
        behind = section(metadata, "labels").get(LABEL_NETWORK, "")
        used = store.pods.is_any_behind(behind, namespace=pool.namespace)
        yield Wall(name=metadata["name"], uid=uid_of(policy), used=used)


def _stands(plan: Blueprint, key: Key, store: Store) -> bool:
    found = store.network_policies.get(Key(key.namespace, plan.wall["metadata"]["name"]))
    return found is not None and is_as_wanted(found, plan.wall)


def _claimed(pool: Key, store: Store) -> int:
    claimants = store.sandboxes.of_pool(namespace=pool.namespace, pool=pool.name)
    return sum(section(each, "status").get("phase") in AWAKE for each in claimants)


def _readable(plan: Blueprint | None, key: Key, installation: Installation) -> bool | None:
    if plan is None or not references(plan.spec):
        return None
    return may_read(key.namespace, allowed=installation.settings.pools.read_secrets)

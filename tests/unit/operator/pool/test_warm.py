"""Of a pool's pods each version is read once, and forgotten with the pool."""

from sandpod_operator.objects import key_of, uid_of
from sandpod_operator.pool.warm import WarmPods
from sandpod_operator.store import Store

from tests.support.pool_objects import POOL_KEY, pool, waiting_pod


def test_a_pod_is_read_again_when_it_has_changed() -> None:
    store = Store()
    warm = WarmPods(store)
    for name in ("python-aaaaa", "python-bbbbb"):
        store.pods.observe(waiting_pod(name))
    first, second = warm.of(pool())

    store.pods.observe(waiting_pod("python-bbbbb", resourceVersion="21"))
    again, changed = warm.of(pool())

    assert again is first
    assert changed is not second
    assert changed.version == "21"


def test_a_pod_that_is_gone_is_no_pod_of_the_pool() -> None:
    store = Store()
    warm = WarmPods(store)
    pod = waiting_pod()
    store.pods.observe(pod)
    assert len(warm.of(pool())) == 1

    store.pods.remove(key_of(pod), uid=uid_of(pod))
    assert warm.of(pool()) == []


def test_of_a_pool_that_is_gone_nothing_is_remembered() -> None:
    store = Store()
    warm = WarmPods(store)
    store.pods.observe(waiting_pod())
    (before,) = warm.of(pool())

    warm.forget(POOL_KEY)

    (after,) = warm.of(pool())
    assert after is not before
    assert after == before

"""What people have to fix in Redis or Postgres is answered as 503, which names it, until they have."""

from __future__ import annotations

import psycopg
import pytest
import redis
import requests

from rsched.core.ids import JobId, partition_of
from rsched.store.keys import Keys
from tests.api.served import Served
from tests.api.world import job

pytestmark = pytest.mark.usefixtures("anyio_backend")


def refused(answer: requests.Response, *, with_words: str) -> None:
    assert answer.status_code == 503, answer.text
    assert answer.json()["code"] in ("unavailable", "durability_unknown")
    assert with_words in answer.json()["detail"]
    assert int(answer.headers["Retry-After"]) >= 1


def test_a_key_of_another_type_and_a_table_that_is_gone_are_503_until_they_are_fixed(
    served: Served,
    redis_url: str,
    redis_prefix: str,
    database_url: str,
) -> None:
    found = served("POST", "/v1/jobs", job(name="a", schedule={"every": "1h"})).json()["job_id"]
    keys = Keys(redis_prefix, "s0")
    with redis.Redis.from_url(redis_url) as by_hand:
        calls = [
            (keys.triggers, "POST", f"/v1/jobs/{found}/trigger", 202),
            (keys.due(partition_of(JobId(found))), "POST", f"/v1/jobs/{found}/pause", 200),
            (keys.jobs(partition_of(JobId(found))), "POST", f"/v1/jobs/{found}/resume", 200),
        ]
        for key, method, path, status in calls:
            kept = by_hand.dump(key)
            by_hand.set(key, "by hand")
            refused(served(method, path, Idempotency_Key="k"), with_words="of another type")
            by_hand.delete(key)
            if kept is not None:
                by_hand.restore(key, 0, kept)
            assert served(method, path, Idempotency_Key="k").status_code == status
    with psycopg.connect(database_url, autocommit=True) as c:
        c.execute("ALTER TABLE jobs RENAME TO kept_away")
        refused(served("GET", "/v1/jobs?q=a"), with_words="run `rsched migrate`")
        c.execute("ALTER TABLE kept_away RENAME TO jobs")
    assert [j["job_id"] for j in served("GET", "/v1/jobs?q=a").json()["items"]] == [found]

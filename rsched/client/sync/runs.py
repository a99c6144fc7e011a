# Generated from rsched/client/aio/runs.py by tools/sync_client.py (`make docs`); do not edit.
"""Runs of jobs, and the occurrences that made none."""

from __future__ import annotations

from collections.abc import Iterator

from rsched.client.request import get, job_path, post, run_path
from rsched.client.sync.connection import Connection
from rsched.client.views import Page, SkipView
from rsched.core.answers import RunView
from rsched.core.jobs.model import Ack


class Runs:
    """The part of a client that is about runs."""

    _connection: Connection

    def get_run(self, run_id: str) -> RunView:
        """Reads one run, with its attempts.

        Args:
            run_id: The run's id, such as `j_...:1793000000000`.

        Raises:
            NotFound: There is no such run.
        """
        return self._connection.call(get(run_path(run_id)), RunView)

    def cancel_run(self, run_id: str, *, ack: Ack | None = None) -> RunView:
        """Cancels a run that has not started; one that is running is asked to stop.

        Args:
            run_id: The run's id.
            ack: Where the change has to be before the call returns; by default in Postgres.

        Raises:
            NotFound: There is no such run.
            Conflict: The run has ended.
        """
        return self._connection.call(post(run_path(run_id, "/cancel"), query={"ack": ack}), RunView)

    def list_runs(self, job: str, *, team: str | None = None, status: str | None = None) -> Iterator[RunView]:
        """Reads the runs of a job, the latest first, page by page as you go on.

        Args:
            job: A job_id, or a name in `team`.
            team: Whose name it is, by default the team `default`.
            status: Only runs in this state, such as DEAD.

        Raises:
            NotFound: There is no such job.
        """
        cursor: str | None = None
        while True:
            page = self.list_runs_page(job, team=team, status=status, cursor=cursor)
            yield from page.items
            cursor = page.next_cursor
            if cursor is None:
                return

    def list_runs_page(
        self,
        job: str,
        *,
        team: str | None = None,
        status: str | None = None,
        cursor: str | None = None,
        limit: int = 100,
    ) -> Page[RunView]:
        """Reads one page of the runs of a job, the latest first.

        Args:
            job: A job_id, or a name in `team`.
            team: Whose name it is, by default the team `default`.
            status: Only runs in this state, such as DEAD.
            cursor: next_cursor of the page before; None for the first page.
            limit: At most so many runs, 1 to 1000.

        Raises:
            NotFound: There is no such job.
        """
        query = {"team": team, "status": status, "cursor": cursor, "limit": limit}
        return self._connection.call(get(job_path(job, "/runs"), query), Page[RunView])

    def list_skips(self, job: str, *, team: str | None = None) -> Iterator[SkipView]:
        """Reads the occurrences of a job that made no run and why, the latest first, page by page as you go on.

        Args:
            job: A job_id, or a name in `team`.
            team: Whose name it is, by default the team `default`.

        Raises:
            NotFound: There is no such job.
        """
        cursor: str | None = None
        while True:
            page = self.list_skips_page(job, team=team, cursor=cursor)
            yield from page.items
            cursor = page.next_cursor
            if cursor is None:
                return

    def list_skips_page(
        self, job: str, *, team: str | None = None, cursor: str | None = None, limit: int = 100
    ) -> Page[SkipView]:
        """Reads one page of the occurrences of a job that made no run.

        Args:
            job: A job_id, or a name in `team`.
            team: Whose name it is, by default the team `default`.
            cursor: next_cursor of the page before; None for the first page.
            limit: At most so many entries, 1 to 1000.

        Raises:
            NotFound: There is no such job.
        """
        query = {"team": team, "cursor": cursor, "limit": limit}
        return self._connection.call(get(job_path(job, "/skips"), query), Page[SkipView])

    def list_dead_letters(self, *, team: str | None = None) -> Iterator[RunView]:
        """Reads the runs that used up their attempts, page by page as you go on.

        Args:
            team: Of this team only.
        """
        cursor: str | None = None
        while True:
            page = self.list_dead_letters_page(team=team, cursor=cursor)
            yield from page.items
            cursor = page.next_cursor
            if cursor is None:
                return

    def list_dead_letters_page(
        self, *, team: str | None = None, cursor: str | None = None, limit: int = 100
    ) -> Page[RunView]:
        """Reads one page of the runs that used up their attempts.

        Args:
            team: Of this team only.
            cursor: next_cursor of the page before; None for the first page.
            limit: At most so many runs, 1 to 1000.
        """
        query = {"team": team, "cursor": cursor, "limit": limit}
        return self._connection.call(get("/v1/dead-letters", query), Page[RunView])

"""Files of the archive: Parquet with a manifest beside it, each complete or not there."""

from __future__ import annotations

import hashlib
import io
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

import msgspec

from rsched.core.errors import Misconfigured, Unavailable

if TYPE_CHECKING:
    import pyarrow

_READ = 1 << 20


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What is said of a file.

    Attributes:
        name: The day, or the sweep.
        day: The partition's day (UTC), null for a sweep.
        table: `runs`, `attempts`, `skips` or `jobs`.
        file: The file's path in the archive.
        rows: How many rows it has.
        bytes: Its size.
        sha256: Its digest.
        schema_version: The ledger's schema.
        min_at: The least claimed_at of runs, skipped_at of skips, ended_at of attempts and jobs (ms).
        max_at: The greatest one.
        written_at: When it was written, by the recorder's clock (ms).
    """

    name: str
    day: str | None
    table: str
    file: str
    rows: int
    bytes: int
    sha256: str
    schema_version: int
    min_at: int | None
    max_at: int | None
    written_at: int


def check_archive(folder: str) -> Path:
    """Returns the archive's folder, made where it is not there.

    Raises:
        Misconfigured: The folder or the Parquet library can't be used.
    """
    if find_spec("pyarrow") is None:
        raise Misconfigured(
            "archive_dir is set and the Parquet library is not installed: pip install 'rsched[archive]',"
            " or unset RSCHED_RECORDER_ARCHIVE_DIR to keep all history in Postgres"
        )
    path = Path(folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Misconfigured(
            f"archive_dir: {folder} can't be made or is not a folder ({error.strerror}); name one that can be written to"
        ) from error
    if not path.is_absolute() or not os.access(path, os.W_OK | os.X_OK):
        raise Misconfigured(f"archive_dir: {folder} is not the absolute path of a folder that can be written to")
    return path


@contextmanager
def written(path: Path) -> Iterator[IO[bytes]]:
    """Writes a file that is at its place with all its bytes on disk, or not at all.

    Yields:
        The file, to write to.

    Raises:
        Unavailable: The disk refuses.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _remove_left(path)
        with temporary.open("xb") as file:
            yield file
            to_disk(file)
        temporary.replace(path)
        _fsync_folder(path.parent)
        _fsync_folder(path.parent.parent)
    except OSError as error:
        raise Unavailable(f"the archive can't be written: {error}") from error
    finally:
        # In a folder that is not there, too, there is nothing left.
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def _remove_left(path: Path) -> None:
    # Of a process that died; no other one writes this name, by the retention lock.
    for left in path.parent.glob(f".{path.name}.*.tmp"):
        left.unlink(missing_ok=True)


def to_disk(file: IO[bytes]) -> None:
    """Waits until all that was written is on disk."""
    file.flush()
    os.fsync(file.fileno())


def _fsync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class ParquetSink:
    """A Parquet file that takes CSV as COPY writes it."""

    def __init__(self, file: IO[bytes], columns: list[tuple[str, str]]) -> None:
        """Begins the file. columns: name and Postgres type, in order."""
        import pyarrow
        import pyarrow.parquet

        self._names = [name for name, _ in columns]
        self._schema = pyarrow.schema([(name, _types().get(kind, pyarrow.string())) for name, kind in columns])
        self._writer = pyarrow.parquet.ParquetWriter(file, self._schema, compression="zstd", version="2.6")

    def write(self, csv: bytes) -> None:
        """Writes one row group."""
        import pyarrow.csv

        table = pyarrow.csv.read_csv(
            io.BytesIO(csv),
            read_options=pyarrow.csv.ReadOptions(column_names=self._names, use_threads=False, block_size=len(csv) + 1),
            parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True),
            # COPY writes NULL bare and an empty text in quotes.
            convert_options=pyarrow.csv.ConvertOptions(
                column_types=self._schema, null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False
            ),
        )
        self._writer.write_table(table, row_group_size=table.num_rows or 1)

    def close(self) -> None:
        """Writes the footer."""
        self._writer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Of a sink that was not closed, the library would complain later."""
        if kind is not None:
            import pyarrow

            # What went wrong is on its way already; a file that cannot be ended is thrown away all the same.
            with suppress(pyarrow.ArrowException, OSError, ValueError):
                self._writer.close()


def _types() -> dict[str, pyarrow.DataType]:
    import pyarrow

    return {"date": pyarrow.date32(), "text": pyarrow.string(), "bigint": pyarrow.int64(), "integer": pyarrow.int32()}


def rows_in(path: Path) -> int:
    """Returns how many rows a file has by its own footer. Raises Unavailable where it can't be read."""
    import pyarrow
    import pyarrow.parquet

    try:
        metadata: Any = pyarrow.parquet.read_metadata(path)
    except (OSError, pyarrow.ArrowException) as error:
        raise Unavailable(f"the archive's {path.name} can't be read again: {error}") from error
    return int(metadata.num_rows)


def digest(path: Path) -> tuple[int, str]:
    """Returns a file's (bytes, sha256). Raises Unavailable where it can't be read."""
    found, size = hashlib.sha256(), 0
    try:
        with path.open("rb") as file:
            while piece := file.read(_READ):
                found.update(piece)
                size += len(piece)
    except OSError as error:
        raise Unavailable(f"the archive's {path.name} can't be read again: {error}") from error
    return size, found.hexdigest()


def write_manifest(path: Path, manifest: Manifest) -> None:
    """Writes a file's manifest. Raises Unavailable where the disk refuses."""
    with written(path) as file:
        file.write(msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n")

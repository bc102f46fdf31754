"""The store: one SQLite file. Intent is durable before a tool runs, its outcome before the response."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

SCHEMA = """
CREATE TABLE IF NOT EXISTS calls (
  tenant TEXT, run_id TEXT, agent_instance TEXT, call_id TEXT, agent_name TEXT, step INTEGER,
  tool TEXT, side_effect TEXT, args_sha256 TEXT, args_hash TEXT, counts_tool INTEGER,
  counts_signature INTEGER, writ_id TEXT, definition_digest TEXT, registry_version TEXT,
  result_fields TEXT, state TEXT, started_at REAL, ended_at REAL, duration_s REAL,
  stop_reason TEXT, message TEXT, repetition BLOB, result BLOB, receipt TEXT, revision INTEGER,
  resolve_request_id TEXT, resolve_digest TEXT, resolved_by TEXT, resolved_at REAL,
  PRIMARY KEY (tenant, run_id, agent_instance, call_id)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS epochs (
  tenant TEXT, run_id TEXT, agent_instance TEXT, epoch INTEGER,
  PRIMARY KEY (tenant, run_id, agent_instance)
);
CREATE TABLE IF NOT EXISTS freezes (
  order_id TEXT PRIMARY KEY, scope TEXT, cause TEXT, reason TEXT, ordered_by TEXT,
  purges INTEGER, lifted INTEGER DEFAULT 0
);
CREATE TABLE IF NOT EXISTS reports (
  position INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE, kind TEXT, content BLOB, at REAL,
  acknowledged INTEGER DEFAULT 0
);
"""

#: State of a call: `intent` has no outcome yet, all others have a receipt.
STATES = ("intent", "ok", "error", "refused", "unknown", "burnt")


@dataclass(frozen=True)
class CallKey:
    """Identifies a call, which gets one outcome per key (TG-1). Only a call that is not destructive can be
    executed again after an interruption."""

    tenant: str
    run_id: str
    agent_instance: str
    call_id: str


@dataclass
class Call:
    """A recorded call."""

    tenant: str
    run_id: str
    agent_instance: str
    call_id: str
    agent_name: str = "-"
    step: int = 0
    tool: str = "-"
    side_effect: str = "destructive"
    args_sha256: str = ""
    args_hash: str = ""
    counts_tool: bool = False
    counts_signature: bool = False
    writ_id: str = ""
    definition_digest: str = ""
    registry_version: str = ""
    result_fields: str = "[]"
    state: str = "intent"
    started_at: float = field(default_factory=time.time)
    ended_at: float | None = None
    duration_s: float | None = None
    stop_reason: str = ""
    message: str = ""
    #: A serialized Repetition, for a call that was refused as a repeat.
    repetition: bytes = b""
    #: A serialized ToolResult.
    result: bytes | None = None
    receipt: str = ""
    revision: int = 0
    resolve_request_id: str = ""
    resolve_digest: str = ""
    resolved_by: str = ""
    resolved_at: float | None = None

    @property
    def key(self) -> CallKey:
        """Returns the key of the call."""
        return CallKey(self.tenant, self.run_id, self.agent_instance, self.call_id)


@dataclass(frozen=True)
class Freeze:
    """An order that freezes a scope until it is lifted (SV-9)."""

    order_id: str
    scope: str
    cause: str
    reason: str
    ordered_by: str
    purges: bool


_COLUMNS = [column.name for column in fields(Call)]
_AGENT = "tenant = ? AND run_id = ? AND agent_instance = ?"


def scopes_over(key: CallKey) -> tuple[str, str, str, str]:
    """The keys of the scopes that cover a call."""
    run = f"{key.tenant}/{key.run_id}"
    return ("*", key.tenant, run, f"{run}/{key.agent_instance}")


class Store:
    """Queries. Changes require `transaction()`, which is durable when it ends.

    There is one connection and one thread, and nothing awaits inside a transaction, so transactions are
    serial.
    """

    def __init__(self, file: Path) -> None:
        """Opens the file and creates it on the first start."""
        self._db = sqlite3.connect(file, isolation_level=None)
        self._db.row_factory = sqlite3.Row
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.executescript(SCHEMA)

    def close(self) -> None:
        """Closes the file."""
        self._db.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Runs the block in a transaction."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            self._db.execute("ROLLBACK")
            raise

    def find_call(self, key: CallKey) -> Call | None:
        """The call, or None."""
        rows = self._calls(f"{_AGENT} AND call_id = ?", *asdict(key).values())
        return rows[0] if rows else None

    def calls_without_outcome(self) -> list[Call]:
        """The calls without an outcome."""
        return self._calls("state = 'intent'")

    def write_call(self, call: Call) -> None:
        """Writes a call."""
        marks = ", ".join("?" * len(_COLUMNS))
        self._db.execute(
            f"REPLACE INTO calls ({', '.join(_COLUMNS)}) VALUES ({marks})",
            [getattr(call, name) for name in _COLUMNS],
        )

    def count_run(self, key: CallKey) -> int:
        """Number of calls of the run, including refused calls and without voided calls (TG-2)."""
        return self._one(
            "SELECT count(*) FROM calls WHERE tenant = ? AND run_id = ? AND state <> 'burnt'",
            key.tenant,
            key.run_id,
        )

    def counted(self, key: CallKey, tool: str, args_hash: str | None = None) -> list[tuple[str, str]]:
        """Returns id and state of the agent's calls that count toward the limit of the tool.

        With `args_hash`, returns the calls that count toward the limit for these arguments."""
        which = "counts_tool" if args_hash is None else "counts_signature AND args_hash = ?"
        rows = self._db.execute(
            f"SELECT call_id, state FROM calls WHERE {_AGENT} AND tool = ? AND {which} ORDER BY started_at",
            [*asdict(key).values()][:3] + [tool] + ([] if args_hash is None else [args_hash]),
        )
        return [(row[0], row[1]) for row in rows]

    def epoch(self, key: CallKey) -> int:
        """The highest lease epoch seen for the agent (RT-2)."""
        return self._one(f"SELECT max(epoch) FROM epochs WHERE {_AGENT}", *_agent(key)) or 0

    def remember_epoch(self, key: CallKey, epoch: int) -> None:
        """Stores the epoch; workers with a lower epoch are rejected."""
        self._db.execute("REPLACE INTO epochs VALUES (?, ?, ?, ?)", [*_agent(key), epoch])

    def freezes_over(self, key: CallKey) -> list[Freeze]:
        """The orders in force that cover a call."""
        rows = self._db.execute(
            "SELECT * FROM freezes WHERE NOT lifted AND scope IN (?, ?, ?, ?) ORDER BY rowid",
            scopes_over(key),
        )
        return [_freeze(row) for row in rows]

    def find_freeze(self, order_id: str) -> tuple[Freeze, bool] | None:
        """An order, and whether it was lifted."""
        row = self._db.execute("SELECT * FROM freezes WHERE order_id = ?", [order_id]).fetchone()
        return (_freeze(row), bool(row["lifted"])) if row else None

    def write_freeze(self, freeze: Freeze) -> None:
        """Puts an order in force."""
        self._db.execute("INSERT INTO freezes VALUES (?, ?, ?, ?, ?, ?, 0)", [*asdict(freeze).values()])

    def lift_freeze(self, order_id: str) -> bool:
        """Lifts one order; returns whether it was in force."""
        return (
            self._db.execute(
                "UPDATE freezes SET lifted = 1 WHERE order_id = ? AND NOT lifted", [order_id]
            ).rowcount
            > 0
        )

    def purge_results(self, tenant: str, run_id: str, agent_instance: str) -> None:
        """Deletes recorded results and messages; receipts stay (SUP-4)."""
        self._db.execute(
            "UPDATE calls SET result = NULL, message = '' WHERE tenant = ? AND run_id = ?"
            " AND ? IN ('', agent_instance)",
            [tenant, run_id, agent_instance],
        )

    def add_report(self, report_id: str, kind: str, content: bytes) -> None:
        """Queues a receipt or a refusal for the supervisor, once."""
        self._db.execute(
            "INSERT OR IGNORE INTO reports (id, kind, content, at) VALUES (?, ?, ?, ?)",
            [report_id, kind, content, time.time()],
        )

    def open_reports(self, before: float, limit: int) -> list[tuple[str, str, bytes]]:
        """Id, kind and content of unacknowledged items, oldest first."""
        rows = self._db.execute(
            "SELECT id, kind, content FROM reports WHERE NOT acknowledged AND at <= ?"
            " ORDER BY position LIMIT ?",
            [before, limit],
        )
        return [tuple(row) for row in rows]

    def acknowledge(self, ids: list[str]) -> None:
        """Marks items as acknowledged, so that they are not delivered again."""
        self._db.executemany("UPDATE reports SET acknowledged = 1 WHERE id = ?", [[one] for one in ids])

    def _calls(self, where: str, *values: str) -> list[Call]:
        rows = self._db.execute(f"SELECT * FROM calls WHERE {where}", values)
        return [Call(**{name: row[name] for name in _COLUMNS}) for row in rows]

    def _one(self, query: str, *values: str) -> int:
        row = self._db.execute(query, values).fetchone()
        return int(row[0] or 0)


def _agent(key: CallKey) -> tuple[str, str, str]:
    return (key.tenant, key.run_id, key.agent_instance)


def _freeze(row: sqlite3.Row) -> Freeze:
    return Freeze(**{column.name: row[column.name] for column in fields(Freeze)})

"""Events and spans of USDT probes, from traces of usdtrec and perf.

>>> import usdtrec
>>> trace = usdtrec.open("usdtrec.data")                              # doctest: +SKIP
>>> trace.events("postgresql:query*").to_pandas()                     # doctest: +SKIP
>>> for span in trace.spans("query", filter='query ~ "UPDATE *"'):    # doctest: +SKIP
...     print(span["duration_ns"], span["begin"]["args"]["query"])
>>> trace.report(span="query", by="query:shape").to_pandas()          # doctest: +SKIP

Selection, values and spans are those of the command ``usdtrec``. A trace alone does not show what it lacks: see
:meth:`Trace.losses` and :attr:`Table.notices`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypedDict

from . import _native
from ._native import Error

if TYPE_CHECKING:
    import pandas
    import pyarrow

__all__ = ["Error", "Losses", "ProbeLosses", "Report", "Rows", "Table", "Trace", "open"]


class ProbeLosses(TypedDict):
    """Events of a probe that were lost."""

    event: str | None
    """Name of the event; ``None``: of no probe that is known."""
    lost: int | None
    """Their number; ``None`` if it is not known."""


class Losses(TypedDict):
    """Events that were lost while recording, of the whole trace."""

    lost: int | None
    """The losses of all probes; ``None`` if they are not known."""
    exact: bool
    """Whether these are all; else at least so many were lost."""
    counted: str
    """``at the end``, ``at the last flush``, ``as the kernel said``, or ``not counted``."""
    doubt: str | None
    """Why more may be lost."""
    probes: list[ProbeLosses]


_reader: int | None = None
"""The process that read a trace first. Its threads decode, and a fork has none of them."""


def _check_process() -> None:
    """Refuses what would wait for ever."""
    global _reader
    if _reader is None:
        _reader = os.getpid()
    elif _reader != os.getpid():
        raise Error(
            f"process {os.getpid()} is a fork of {_reader}, which read a trace before: "
            "start processes by the method 'spawn' or 'forkserver' of multiprocessing"
        )


def open(
    path: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    schema: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] = (),
    buildid_dir: str | os.PathLike[str] | None = None,
    inline: bool = True,
    with_spans: str | Iterable[str] = (),
    holders: bool = False,
) -> Trace:
    """Opens a trace and reads its metadata.

    :param path: a trace file; several, or a directory or a glob of them, are one trace, in the order of their times.
    :param schema: schema files (``.toml``, ``.d``) with names and types of arguments in place of those in the trace; later ones take precedence.
    :param buildid_dir: build-id cache to take symbols of stacks from, besides the trace and the files at their paths.
    :param inline: whether stacks have functions whose code was inlined.
    :param with_spans: spans whose arguments the events in them get, as those of ``--with``: with ``"query"``, ``args["query.query"]`` is the statement.
    :param holders: whether events that end a wait for a lock get who held it, as with ``--holders``: ``args["holder.comm"]``.
    :raises Error: if a file cannot be read at all, files do not belong together, a schema file has an error, or the trace has no such spans or locks. Damage of a part is among the notices.
    """
    _check_process()
    schemas = [schema] if isinstance(schema, (str, os.PathLike)) else schema
    schemas = [os.fspath(file) for file in schemas]
    buildid_dir = None if buildid_dir is None else os.fspath(buildid_dir)
    paths = [path] if isinstance(path, (str, os.PathLike)) else path
    paths = [os.fspath(file) for file in paths]
    return Trace(_native.NativeTrace(paths, schemas, buildid_dir, inline, _list(with_spans), holders))


def _list(value: Any) -> list[Any]:
    """A single value, or several of them, as a list."""
    if value is None:
        return []
    if isinstance(value, (str, int)):
        return [value]
    return list(value)


class Trace:
    """An open trace. Nothing in it changes; several threads may use it."""

    def __init__(self, native: _native.NativeTrace) -> None:
        self._native = native

    @property
    def event_names(self) -> list[str]:
        """Names of the events that were recorded (``sdt_PROVIDER:NAME``)."""
        return self._native.event_names()

    @property
    def span_names(self) -> list[str]:
        """Names of the kinds of spans that are found by the names of probes."""
        _check_process()
        return self._native.span_names()

    def losses(self) -> Losses:
        """How many events were lost while recording."""
        return self._native.losses()

    def events(
        self,
        *events: str,
        filter: str | None = None,
        time: str | None = None,
        pid: int | Iterable[int] | None = None,
        tid: int | Iterable[int] | None = None,
        comm: str | Iterable[str] | None = None,
        cpu: str | None = None,
        stacks: bool = False,
    ) -> Rows:
        """The selected events, in the order of time.

        :param events: patterns as those of ``-e``: ``postgresql:query*``. None: all events.
        :param filter: expression as that of ``--filter``: ``'status >= 400'``.
        :param time: as that of ``--time``: ``FROM,TO`` in seconds of the trace's clock, ``10%-20%``, ``-5m`` or ``02:37:07..02:37:09``.
        :param cpu: as that of ``--cpu``: ``0,2-3``.
        :param stacks: whether rows have stacks, where they were recorded.
        :raises Error: if the trace does not have what is requested.
        """
        asked = _asked("events", filter, time, pid, tid, comm, cpu, stacks)
        asked["events"] = list(events)
        return Rows(self._native, asked)

    def spans(
        self,
        *spans: str,
        events: str | Iterable[str] | None = None,
        key: str | Iterable[str] | None = None,
        filter: str | None = None,
        time: str | None = None,
        pid: int | Iterable[int] | None = None,
        tid: int | Iterable[int] | None = None,
        comm: str | Iterable[str] | None = None,
        cpu: str | None = None,
        stacks: bool = False,
    ) -> Rows:
        """The selected spans, in the order of their ends.

        :param spans: as those of ``--span``: names with globs, or ``START..DONE``. None: those that are found by the names of probes.
        :param key: what begin and end have in common, as that of ``--key``. None: what is known of them.

        The other parameters are those of :meth:`events`.
        """
        if key is not None and not spans:
            raise Error("key has no effect without the name of a span")
        if events is not None and spans:
            raise Error("events has no effect with the name of a span")
        asked = _asked("spans", filter, time, pid, tid, comm, cpu, stacks)
        asked["spans"] = list(spans)
        asked["events"] = _list(events)
        asked["key"] = _list(key)
        return Rows(self._native, asked)

    def report(
        self,
        *events: str,
        sort: str | Iterable[str] | None = None,
        value: str | None = None,
        span: str | Iterable[str] | None = None,
        key: str | Iterable[str] | None = None,
        by: str | Iterable[str] | None = None,
        min_ns: int = 0,
        top: int | None = None,
        order: str | None = None,
        filter: str | None = None,
        time: str | None = None,
        pid: int | Iterable[int] | None = None,
        tid: int | Iterable[int] | None = None,
        comm: str | Iterable[str] | None = None,
        cpu: str | None = None,
    ) -> Report:
        """The answer to a question about the selected events: that of ``report --format json``. The trace is read at once.

        Without ``sort``, ``by`` and ``span`` it is a summary: probes, spans, arguments, losses.

        :param sort: what events are counted by, as that of ``--sort``: ``"comm"``, ``"query:shape"``.
        :param value: an argument whose numbers are summed up in each group of ``sort``.
        :param span: names of spans with globs, or ``START..DONE``, as those of ``--span``.
        :param key: what begin and end have in common, as that of ``--key``.
        :param by: what spans are grouped by, as that of ``--by``; without ``span`` it is ``sort``.
        :param min_ns: shorter spans do not count.
        :param top: maximum number of groups, and of the slowest spans.
        :param order: figure by which groups are sorted, as that of ``--order``.

        The other parameters are those of :meth:`events`.

        :raises Error: if the trace does not have what is requested, or a parameter has no effect.
        """
        if span and sort:
            raise Error("sort has no effect with span: use by")
        if sort and by:
            raise Error("by and sort have the same meaning without span: use only one of them")
        if by and not span:
            sort, by = by, None
        for name, given, has_effect, where in [
            ("key", key, span, "without span"),
            ("min_ns", min_ns or None, span, "without span"),
            ("value", value, sort, "with span" if span else "without sort"),
            ("top", top, sort or span, "without sort or span"),
            ("order", order, value or span, "without value or span"),
        ]:
            if given is not None and not has_effect:
                raise Error(f"{name} has no effect {where}")
        selected = _asked("events", filter, time, pid, tid, comm, cpu, False)
        selected["events"] = list(events)
        asked = {
            "sort": _list(sort),
            "value": value,
            "span": _list(span),
            "key": _list(key),
            "by": _list(by),
            "min_ns": min_ns,
            "top": top,
            "order": order,
        }
        _check_process()
        text, notices = self._native.report(selected, asked)
        return Report(text, notices, asked)


class Report:
    """An answer about a trace."""

    def __init__(self, text: str, notices: list[str], asked: dict[str, Any]) -> None:
        self._asked = asked
        self.notices = notices
        """What is wrong with the trace, in sentences."""
        self.answer: Any = json.loads(text)
        """What ``report --format json`` prints: with ``sort`` a list with a dict for each group, else a dict."""

    def rows(self) -> list[dict[str, Any]]:
        """The table of the answer, a dict for each row: groups of ``sort`` or ``by``, kinds of spans, or probes."""
        if self._asked["sort"]:
            return self.answer
        if not self._asked["span"]:
            return self.answer["probes"]
        spans = self.answer["spans"]
        if self._asked["by"]:
            return [{"span": span["name"], **group} for span in spans for group in span["groups"]]
        return [{name: value for name, value in span.items() if name not in ("groups", "slowest")} for span in spans]

    def to_pandas(self) -> pandas.DataFrame:
        """:meth:`rows` as a data frame."""
        try:
            import pandas
        except ImportError as error:
            raise ImportError("to_pandas needs pandas: pip install 'usdtrec[pandas]'") from error
        return pandas.DataFrame(self.rows())


def _asked(
    table: str,
    filter: str | None,
    time: str | None,
    pid: int | Iterable[int] | None,
    tid: int | Iterable[int] | None,
    comm: str | Iterable[str] | None,
    cpu: str | None,
    stacks: bool,
) -> dict[str, Any]:
    return {
        "table": table,
        "events": [],
        "spans": [],
        "key": [],
        "filter": filter,
        "time": time,
        "comms": _list(comm),
        "pids": _list(pid),
        "tids": _list(tid),
        "cpus": cpu,
        "stacks": stacks,
    }


class Table:
    """A table of a trace, which is read when it is used. pyarrow, polars, DuckDB and others take it by the Arrow C data interface."""

    def __init__(self, trace: _native.NativeTrace, asked: dict[str, Any]) -> None:
        _check_process()
        self._trace = trace
        self._asked = asked
        self._native = trace.rows(asked)

    @property
    def notices(self) -> list[str]:
        """What is wrong with the trace, in sentences: damage, and samples that belong to no event. Complete once all rows were taken."""
        return self._native.notices()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows as a stream of record batches. Reading begins at once; a batch is made when the one before it is taken."""
        _check_process()
        return self._native.arrow_stream()

    def to_arrow(self) -> pyarrow.Table:
        """The rows as a table of pyarrow, in memory. The columns are those of ``export --to parquet``, after those with the names of probe or span."""
        try:
            import pyarrow
        except ImportError as error:
            raise ImportError("to_arrow needs pyarrow: pip install 'usdtrec[arrow]'") from error
        return pyarrow.table(self)

    def to_pandas(self, **options: Any) -> pandas.DataFrame:
        """The rows as a data frame. Options are those of pyarrow's ``Table.to_pandas``."""
        try:
            import pandas  # noqa: F401
            import pyarrow  # noqa: F401
        except ImportError as error:
            raise ImportError("to_pandas needs pandas and pyarrow: pip install 'usdtrec[pandas]'") from error
        return self.to_arrow().to_pandas(**options)


class Rows(Table):
    """Events or spans of a trace. Iterating gives a dict for each, in bounded memory; its members have the names of ``script --format json``."""

    def __iter__(self) -> Iterator[dict[str, Any]]:
        _check_process()
        return self._native.iterate()

    def stacks(self) -> Table:
        """The frames of the different stacks of these rows, a row for each; ``stack_id`` leads to them."""
        return Table(self._trace, {**self._asked, "table": "stacks", "stacks": True})

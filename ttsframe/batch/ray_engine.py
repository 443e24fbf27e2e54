"""The tasks of a job on Ray: one function over file paths per task, and Ray does the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Final, Self

from ttsframe._checks import check_positive
from ttsframe._files import TEMPORARY, remove_folder
from ttsframe.batch.ray_cluster import available_cores, cluster, require_ray
from ttsframe.batch.ray_worker import (
    Order,
    decisive_versions,
    folders_seen,
    inputs_of,
    run_order,
    wait_until_seen,
)
from ttsframe.batch.tasks import Task
from ttsframe.errors import EngineError, ParameterError, SourceError

__all__ = ["RayEngine"]

_MOST_IN_FLIGHT: Final = 1_000
_SECONDS_TO_STOP: Final = 10.0
_PATIENCE: Final = 30.0


class RayEngine:
    """Run the tasks of a job on a Ray cluster: on this machine, or on many that share their files.

    A task is one function over file paths. The plan has divided the rows by problem before, so that
    nothing but paths and errors goes through Ray, and the result is that of the local engine, row for
    row. All nodes must see the source and the folder of the output under the same paths, and have the
    same versions of ttsframe and its dependencies; both are checked, before a task is run.

    Parameters
    ----------
    address
        The cluster to join, and to leave running: "auto" on one of its nodes, "host:6379", or
        "ray://host:10001" from outside. None: the one that Ray is connected to in this process, else
        that of the environment variable RAY_ADDRESS, else a cluster is started on this machine, and
        ended with the job.
    n_workers
        Most tasks at a time. None: as many as the cores of the cluster allow.
    n_threads
        Cores of a task: what it asks Ray for, and the threads of Polars in it. One thread and many
        tasks use the cores best, as tasks do not wait for each other; but each holds a part in
        memory, so that fewer tasks of more threads need less of it.
    n_retries
        How often a task is given to another worker when its worker dies.
    log_to_driver
        Whether to show what workers print.

    Raises
    ------
    MissingExtraError
        When Ray is not installed.
    ParameterError
        When a number is not positive.

    Notes
    -----
    Used as a context manager it keeps its cluster from job to job. An error of a task is raised as
    the task raised it, with a note on the node and process; the tasks that have not begun are
    cancelled then, and those that have are interrupted and awaited.

    Examples
    --------
    >>> import ttsframe as tts
    >>> def on_a_cluster(source: str, sink: str) -> tts.batch.BatchResult:
    ...     engine = tts.batch.RayEngine("auto", n_threads=4)
    ...     return tts.batch.transform(source, sink, stages=tts.batch.Score(), engine=engine)
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        n_workers: int | None = None,
        n_threads: int = 1,
        n_retries: int = 3,
        log_to_driver: bool = False,
    ) -> None:
        require_ray()
        self.address = address
        self.n_workers = None if n_workers is None else check_positive(n_workers, "n_workers")
        self.n_threads = check_positive(n_threads, "n_threads")
        if n_retries < 0:
            raise ParameterError(f"n_retries == {n_retries}, must be at least 0.")
        self.n_retries = n_retries
        self.log_to_driver = log_to_driver
        self._depth = 0
        self._stack = ExitStack()
        self._is_own: bool | None = None

    def __enter__(self) -> Self:
        """Keep the cluster, once the first task needs one, until the block ends.

        Returns
        -------
        Self
            The engine.
        """
        self._depth += 1
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the cluster if it was started here."""
        self._depth -= 1
        if self._depth == 0:
            self._is_own = None
            self._stack.close()

    def run(self, tasks: Sequence[Task], on_done: Callable[[Task], None]) -> None:
        """Run tasks, none of which depends on another.

        Parameters
        ----------
        tasks
            What is to be done.
        on_done
            Called as each task ends, in the order in which they do.
        """
        if not tasks:
            return
        with self:
            self._connect()
            self._run(tasks, on_done)

    def _connect(self) -> None:
        """Join or start a cluster, unless that was done for an earlier phase."""
        if self._is_own is None:
            n_workers = self.n_workers or max(1, available_cores() // self.n_threads)
            self._is_own = self._stack.enter_context(
                cluster(
                    self.address,
                    n_cores=n_workers * self.n_threads,
                    log_to_driver=self.log_to_driver,
                )
            )
            self._check_nodes()

    def _check_nodes(self) -> None:
        """Raise where no node could ever run a task, for which Ray would wait for ever."""
        import ray

        cores = [node["Resources"].get("CPU", 0) for node in ray.nodes() if node["Alive"]]
        # A cluster that has no cores at all may be one that grows on demand.
        if 0 < max(cores, default=0) < self.n_threads:
            raise ParameterError(
                f"n_threads == {self.n_threads}, must be at most {max(cores):g}, the cores of the "
                "largest node of the cluster."
            )

    def _run(self, tasks: Sequence[Task], on_done: Callable[[Task], None]) -> None:
        """Hand tasks over, some at a time, and collect them as they end."""
        import ray

        most = _MOST_IN_FLIGHT if self._is_own else self.n_workers or _MOST_IN_FLIGHT
        waiting = self._orders(tasks)
        remote = ray.remote(run_order)
        pending: dict[Any, Task] = {}
        try:
            while True:
                while len(pending) < most and (order := next(waiting, None)) is not None:
                    pending[self._submit(remote, order)] = order.task
                if not pending:
                    break
                (reference,), _ = ray.wait(list(pending), num_returns=1)
                # Taken out after its error was raised: it is still there to be cancelled until then.
                _check_result(reference, pending[reference], self.n_retries)
                on_done(pending.pop(reference))
        finally:
            _stop(list(pending))
        _sweep(tasks)

    def _submit(self, remote: Any, order: Order) -> Any:  # noqa: ANN401 - types of Ray
        """Hand a task over to Ray."""
        n_threads = 1 if order.task.keeps_one_core else self.n_threads
        options: dict[str, Any] = {
            "num_cpus": n_threads,
            "max_retries": self.n_retries,
            "retry_exceptions": False,
            "scheduling_strategy": "SPREAD",
            "name": order.task.name,
            "runtime_env": {"env_vars": {"POLARS_MAX_THREADS": str(n_threads)}},
        }
        return remote.options(**options).remote(order)

    @staticmethod
    def _orders(tasks: Sequence[Task]) -> Iterator[Order]:
        """Yield tasks with what a worker must see to run them."""
        seen = folders_seen(tasks)
        for task in tasks:
            task.output.parent.mkdir(parents=True, exist_ok=True)
            needed = {path: seen[path] for path in inputs_of(task) if path in seen}
            yield Order(task, {**needed, task.output.parent: 0}, decisive_versions(), _PATIENCE)


def _check_result(reference: Any, task: Task, n_retries: int) -> None:  # noqa: ANN401 - as above
    """Raise what stopped a task, or what Ray says of it."""
    import ray

    try:
        failure = ray.get(reference)
    except ray.exceptions.OutOfMemoryError as error:
        raise EngineError(
            f"{task.name}: a node ran out of memory over it ({_reason(error)}). Hint: smaller "
            "rows_per_part or bytes_per_part, or fewer tasks at a time on a node by more n_threads."
        ) from error
    except (ray.exceptions.WorkerCrashedError, ray.exceptions.NodeDiedError) as error:
        raise EngineError(
            f"{task.name}: its worker died, {n_retries} retries included ({_reason(error)}). Hint: what "
            "is finished is kept, and the same call goes on from there."
        ) from error
    except ray.exceptions.RayError as error:
        raise EngineError(f"{task.name}: could not be run on Ray ({_reason(error)}).") from error
    if failure is not None:
        raise failure
    if wait_until_seen({task.output: 0}, _PATIENCE) is not None:
        raise SourceError(
            f"{task.output}: was made on another node, and is not there on this one. Hint: every node "
            "must see the folder of the output under the same path, on a file system that they share."
        )


def _reason(error: Exception) -> str:
    """Return the line of Ray's message that says something."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if "Error" in type(error).__name__ and len(lines) > 1 else "".join(lines[:1])


def _sweep(tasks: Sequence[Task]) -> None:
    """Remove what workers had begun to write when they died; others have made it since."""
    for folder in {task.output.parent for task in tasks}:
        for left in folder.glob(f".*{TEMPORARY}"):
            remove_folder(left)


def _stop(references: list[Any]) -> None:
    """Cancel tasks and wait for those that run; they leave nothing half-written."""
    import ray

    for force in (False, True):
        if not references:
            return
        for reference in references:
            ray.cancel(reference, force=force)
        _, references = ray.wait(references, num_returns=len(references), timeout=_SECONDS_TO_STOP)

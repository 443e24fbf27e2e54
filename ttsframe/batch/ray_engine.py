"""Run the tasks of a job on Ray."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Final, Self

from ttsframe._checks import check_not_negative, check_positive
from ttsframe._files import TEMPORARY, remove_folder
from ttsframe._settings import RERUN
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

    Rows go through files; only paths and errors go through Ray. The result is the same as that of the
    local engine. All nodes must see the source and the folder of the output under the same paths, and
    have the same versions of ttsframe and its dependencies; both are checked before a task runs.

    Parameters
    ----------
    address
        The cluster to join: "auto" on one of its nodes, "host:6379", or "ray://host:10001" from
        outside. None: the one to which Ray is connected in this process, else that of the environment
        variable RAY_ADDRESS, else a cluster on this machine that is started and ended with the job.
    n_workers
        Maximum number of tasks at a time. None: as many as the cores of the cluster allow.
    n_threads
        Cores of a task, which are the threads of Polars in it. Many tasks of one thread use the cores
        best; fewer tasks of more threads need less memory, since each task holds a part.
    n_retries
        How often a task is retried when its worker dies.
    log_to_driver
        Whether to show what workers print.

    Raises
    ------
    MissingExtraError
        If Ray is not installed.
    ParameterError
        If a number is not positive.

    Notes
    -----
    As a context manager it keeps its cluster from job to job. The error of a task is raised with a
    note on the node and process; the other tasks are then cancelled or interrupted.

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
        self.n_retries = check_not_negative(n_retries, "n_retries")
        self.log_to_driver = log_to_driver
        self._depth = 0
        self._stack = ExitStack()
        self._is_own: bool | None = None

    def __enter__(self) -> Self:
        """Keep the cluster until the block ends; it is started by the first task."""
        self._depth += 1
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave the cluster, and end it if it was started here."""
        self._depth -= 1
        if self._depth == 0:
            self._is_own = None
            self._stack.close()

    def run(self, tasks: Sequence[Task], on_done: Callable[[Task], None]) -> None:
        """Run independent tasks, as `Engine.run` documents."""
        if not tasks:
            return
        with self:
            self._connect()
            self._run(tasks, on_done)

    def _connect(self) -> None:
        """Join or start a cluster, unless an earlier phase has done so."""
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
        """Raise if no node can ever run a task, for which Ray would wait forever."""
        import ray

        cores = [node["Resources"].get("CPU", 0) for node in ray.nodes() if node["Alive"]]
        # A cluster without any cores may grow on demand.
        if 0 < max(cores, default=0) < self.n_threads:
            raise ParameterError(
                f"n_threads == {self.n_threads}, must be at most {max(cores):g}, the cores of the "
                "largest node of the cluster."
            )

    def _run(self, tasks: Sequence[Task], on_done: Callable[[Task], None]) -> None:
        """Submit tasks, a limited number at a time, and collect them as they end."""
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
                # Removed only after its result was checked, so that it is cancelled on an error.
                _check_result(reference, pending[reference], self.n_retries)
                on_done(pending.pop(reference))
        finally:
            _stop(list(pending))
        _sweep(tasks)

    def _submit(self, remote: Any, order: Order) -> Any:  # noqa: ANN401 - types of Ray
        """Submit a task to Ray."""
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
        """Yield the tasks with the files that a worker must see."""
        seen = folders_seen(tasks)
        for task in tasks:
            task.output.parent.mkdir(parents=True, exist_ok=True)
            needed = {path: seen[path] for path in inputs_of(task) if path in seen}
            yield Order(task, {**needed, task.output.parent: 0}, decisive_versions(), _PATIENCE)


def _check_result(reference: Any, task: Task, n_retries: int) -> None:  # noqa: ANN401 - as above
    """Raise the error of a task or of Ray."""
    import ray

    try:
        failure = ray.get(reference)
    except ray.exceptions.OutOfMemoryError as error:
        raise EngineError(
            f"{task.name}: a node ran out of memory ({_reason(error)}). Hint: a smaller rows_per_part "
            "or bytes_per_part, or a larger n_threads, which runs fewer tasks at a time."
        ) from error
    except (ray.exceptions.WorkerCrashedError, ray.exceptions.NodeDiedError) as error:
        raise EngineError(
            f"{task.name}: its worker died, also in {n_retries} retries ({_reason(error)}). Hint: "
            f"{RERUN}; completed parts are reused."
        ) from error
    except ray.exceptions.RayError as error:
        raise EngineError(f"{task.name}: could not run on Ray ({_reason(error)}).") from error
    if failure is not None:
        raise failure
    if wait_until_seen({task.output: 0}, _PATIENCE) is not None:
        raise SourceError(
            f"{task.output}: was made on another node and is missing on this one. Hint: every node must "
            "see the folder of the output under the same path, on a shared file system."
        )


def _reason(error: Exception) -> str:
    """Return the informative line of Ray's message."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if "Error" in type(error).__name__ and len(lines) > 1 else "".join(lines[:1])


def _sweep(tasks: Sequence[Task]) -> None:
    """Remove the unfinished files of workers that died."""
    for folder in {task.output.parent for task in tasks}:
        for left in folder.glob(f".*{TEMPORARY}"):
            remove_folder(left)


def _stop(references: list[Any]) -> None:
    """Cancel tasks and wait for those that run."""
    import ray

    for force in (False, True):
        # To cancel a task that has ended can end this process, by a failed check inside Ray.
        if references:
            _, references = ray.wait(references, num_returns=len(references), timeout=0)
        if not references:
            return
        for reference in references:
            ray.cancel(reference, force=force)
        _, references = ray.wait(references, num_returns=len(references), timeout=_SECONDS_TO_STOP)

"""Checks shared among processes, each with a CUDA context of its own, until they are done or the time is over."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import TypeVar

Job = TypeVar("Job")
Result = TypeVar("Result")


def share(do: Callable[[Job], Result], jobs: Sequence[Job], processes: int, seconds: float) -> Iterator[Result | str]:
    """Yield what `do` returns, as it comes; what is not done in time is left out. A string says that a process died."""
    # Every process computes and compiles for itself.
    os.environ["OMP_NUM_THREADS"] = os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    pool = ProcessPoolExecutor(processes, mp_context=get_context("spawn"))
    running = [pool.submit(do, job) for job in jobs]
    try:
        for done in as_completed(running, timeout=seconds):
            yield done.result()
    except TimeoutError:
        print(f"{sum(not one.done() for one in running)} left out after {seconds:.0f} s", flush=True)
    except BrokenProcessPool as error:
        yield f"a process died: {error}"
    finally:
        for process in list((pool._processes or {}).values()):
            process.terminate()
        pool.shutdown(wait=False, cancel_futures=True)

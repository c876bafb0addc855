"""A sweep on a real Ray cluster of two nodes (needs the extra `cluster`): python reliability/two_nodes.py

Nodes are processes of Ray with resources of their own, as two machines would be: each takes one run at a time. Node
two goes away while it works; its run must come back on node one, and every run must be done exactly once.
"""

import tempfile
import threading
import time
from pathlib import Path

import ray
from ray.cluster_utils import Cluster

from liespline.lab.sweep.plan import plan, sweep
from liespline.lab.sweep.study import Study
from table import Findings

RUNS = 4


FOUR = Study(
    task="digits",
    recipe={"group": "so2", "elements": 2, "widths": (2, 2, 2), "epochs": 2, "accelerator": "cpu"},
    networks={f"run {number}": {"lr": 0.01 * (number + 1)} for number in range(RUNS)},
)


def main() -> None:
    """Sweep on two nodes, one of which goes away, and write down what came of it."""
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    second = cluster.add_node(num_cpus=1)
    ray.init(address=cluster.address, log_to_driver=False)
    begun, said = time.monotonic(), []
    with tempfile.TemporaryDirectory() as folder:
        planned = plan(FOUR, Path(folder), 1, {})

        def lose_a_node() -> None:
            while sum(what == "done" for _, what in said) < 1:
                time.sleep(0.2)
            cluster.remove_node(second, allow_graceful=False)

        thread = threading.Thread(target=lose_a_node)
        thread.start()
        failed = sweep(planned, lambda name, what: said.append((name, what)), None, "ray")
        thread.join()
        complete = [entry.name for entry in planned if entry.run.complete]
        once = all(len(entry.run.read_metrics()) == 2 for entry in planned)
    ray.shutdown()
    cluster.shutdown()
    findings = Findings(
        "a sweep on a Ray cluster of two nodes, one of which goes away",
        "python reliability/two_nodes.py",
        cases=RUNS,
        faults=1,
        crashes=len(failed),
        lost_results=RUNS - len(complete) + (not once),
        remarks=f"{len(complete)} of {RUNS} runs complete, each epoch once",
        seconds=round(time.monotonic() - begun, 1),
    )
    findings.write("two_nodes")
    print(findings)
    if not findings.clean:
        raise SystemExit(1)


if __name__ == "__main__":
    main()

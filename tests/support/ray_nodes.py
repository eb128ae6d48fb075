"""Machines of a Ray cluster, imitated here, and their workers."""

import os
import time
from contextlib import suppress

import psutil

# Ray takes a third of the memory otherwise; no document of a load gets there.
_NODE = {"num_cpus": 1, "object_store_memory": 100 << 20}


class Nodes:
    """Two machines with a processor each.

    Attributes:
        address: of the cluster.
    """

    def __init__(self, **second):
        """Start them; the second one with options of its own."""
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        from ray.cluster_utils import Cluster

        self._cluster = Cluster(initialize_head=True, head_node_args={**_NODE, "include_dashboard": False})
        self._second = self._cluster.add_node(**_NODE, **second)
        self.address = self._cluster.address

    def workers(self):
        """The processes of workers."""
        found = []
        for node in self._cluster.list_all_nodes():
            for raylet in node.all_processes.get("raylet", []):
                with suppress(psutil.NoSuchProcess):
                    found += psutil.Process(raylet.process.pid).children(recursive=True)
        return [one for one in found if _name(one).startswith("ray::MapWorker")]

    def kill_workers(self, most=2):
        """Kill workers; how many there were."""
        there = self.workers()[:most]
        for one in there:
            with suppress(psutil.NoSuchProcess):
                one.kill()
        return len(there)

    def kill_second(self):
        """Kill the second machine; another comes in its place."""
        self._cluster.remove_node(self._second, allow_graceful=False)
        self._second = self._cluster.add_node(**_NODE)

    def close(self):
        """Stop both."""
        self._cluster.shutdown()


def _name(process):
    with suppress(psutil.NoSuchProcess):
        return " ".join(process.cmdline())
    return ""


def until(condition, process=None, seconds=300):
    """Wait for something; whether it came before the process ended."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        if process is not None and process.poll() is not None:
            return False
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return found

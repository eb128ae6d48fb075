"""langshift, with a worker of ``--runner ray`` in this process: what it does for a line, without Ray."""

from langshift import cli
from langshift.commands import ingest
from langshift.ingest.workers.worker import Worker


class Here:
    """Does tasks one after the other."""

    count = 1

    def __init__(self, workers, _places):
        self.requests = workers.requests

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def run(self, job, tasks):
        worker = Worker(job)
        with worker._stack:
            for task in tasks:
                done = worker(task)
                if done.error is not None:
                    raise done.error
                yield done


if __name__ == "__main__":
    ingest.RayEngine = Here
    cli.main()

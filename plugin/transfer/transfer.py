"""One version of an index made of another inside the cluster, while people search and write."""

from langshift.plugin.transfer.back import previous, roll_back
from langshift.plugin.transfer.forward import transfer
from langshift.plugin.transfer.left_behind import clear_left_behind, finish_left_behind, release_left_behind
from langshift.plugin.transfer.plan import Plan, Progress, RolledBack, Stage, Transferred, Watch, Way

__all__ = [
    "Plan",
    "Progress",
    "RolledBack",
    "Stage",
    "Transferred",
    "Watch",
    "Way",
    "clear_left_behind",
    "finish_left_behind",
    "previous",
    "release_left_behind",
    "roll_back",
    "transfer",
]

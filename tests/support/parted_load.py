"""langshift, with a load in parts that ends each after so few lines, and has so many buckets of ids."""

import sys

from langshift import cli
from langshift.ingest.parts import run

if __name__ == "__main__":
    run.LINES, run._LINES_OF_A_BUCKET = int(sys.argv[1]), int(sys.argv[2])
    sys.argv[1:3] = []
    cli.main()

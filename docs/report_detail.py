"""Draw each workload and dtype of the report, from the figures in its tables."""

import sys
from pathlib import Path

sys.path.append("..")  # pages are built in the folder of their script

from benchmarks.pictures import plot_detail
from benchmarks.runs import read_report

plot_detail(read_report(Path("../benchmarks/results.md")))

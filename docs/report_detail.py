"""Draw each workload and dtype of the report, from the figures in its tables."""

import sys

sys.path.append("../benchmarks")  # pages are built in the folder of their script

from pathlib import Path

from plots import plot_detail
from runs import read_report

plot_detail(read_report(Path("../benchmarks/results.md")))

"""How fast bcast is, against which libraries, on which cells, and where it loses: `python -m benchmarks --list`."""

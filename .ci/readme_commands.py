"""Print the commands that README tells a newcomer to run: the `sh` blocks of its section "Install and run"."""

import re
import sys
from pathlib import Path

text = Path(sys.argv[1]).read_text(encoding="utf-8")
section = re.search(r"^## Install and run\n(.*?)^## ", text, re.M | re.S)
commands = re.findall(r"^```sh\n(.*?)^```", section[1], re.M | re.S) if section else []
if len(commands) != 2:
    sys.exit(f"README's section 'Install and run' expected 2 commands, got {len(commands)}")
print("".join(commands), end="")

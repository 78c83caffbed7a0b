#!/usr/bin/env python3
"""promptyoself for a Sanctum host: hands over to the midwatch program, which does everything.

MIDWATCH_BIN says where that is, unless it is found as `midwatch`.
"""

import json
import os
import sys

program = os.environ.get("MIDWATCH_BIN") or "midwatch"
try:
    os.execvp(program, [program, "promptyoself", *sys.argv[1:]])
except OSError as error:
    text = f"`{program}` cannot be started: {error.strerror}; MIDWATCH_BIN says where it is"
    print(json.dumps({"status": "error", "error": text, "message": text}))
    sys.exit(1)

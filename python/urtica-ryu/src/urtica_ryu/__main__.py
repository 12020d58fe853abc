"""The command `python -m urtica_ryu`."""

import logging
import os
import sys

from urtica_ryu.manager import main

status = main(sys.argv[1:])
logging.shutdown()
sys.stdout.flush()
sys.stderr.flush()
# Tasks that wait for something would keep the interpreter from ending.
os._exit(status)

"""``python -m rdmalab``."""

from rdmalab.cli import main

main(prog_name="rdmalab")

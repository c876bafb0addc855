"""`python -m liespline.lab.cli`: the command without its script."""

from .commands import main

main()

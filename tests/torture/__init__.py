"""Tortures the package: malformed commands, damaged files, kills, full disks, hostile folders, fuzzed requests.

`make torture` runs all of it; `python -m torture damage --share 0.1 --seed 3` a tenth of one part. Each trial follows
from the part's name, the seed and its number, so that `--only NUMBER` repeats one.
"""

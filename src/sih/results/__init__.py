"""Experiments: their definition, their data on disk, their pictures, and the verdicts
on their numbers.

    experiment.py   a question: its configuration and a pure function to data
    data.py         data on disk: one writer, one reader
    cache.py        computed once, by a key of everything that the data depends on
    sources.py      the source files that an answer depends on
    figure.py       the name of a picture of an experiment's data
    pictures.py     its files, drawn once; processes.py: on all cores
    style.py        the style of all figures; maps.py: attention; tables.py: numbers
    curves.py       a number along the sequence, with its repetitions
    beside.py       the references for trained models
    models.py       trained models chosen by their properties
    judging.py      a statement, its rule and its verdict

Nothing here depends on a subject. `sih.report.subjects` lists them all.
"""

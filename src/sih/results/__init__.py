"""What an experiment is, how its data is kept and drawn, and how a number is judged.

    experiment.py   a question: its configuration and a pure function to data
    data.py         data on disk: one writer, one reader
    cache.py        computed once, by a key of everything that the data depends on
    sources.py      which source files an answer rests on
    figure.py       the name of a picture of an experiment's data
    pictures.py     its files, drawn once; processes.py: on all cores
    style.py        the one look of all figures; maps.py: of attention; tables.py: of numbers
    curves.py       a number along the sequence, with its repetitions
    beside.py       what trained models are compared with
    models.py       trained models chosen by what they are
    judging.py      a statement, its rule and its verdict

Nothing here knows a subject. `sih.report.subjects` knows them all.
"""

"""One module a figure: `config()` says what is asked, `compute(config)` finds it, `draw(data)` shows it.

`compute` is pure and returns plain data; `draw` needs nothing but that data.
"""

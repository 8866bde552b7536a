"""The checker behind jaxtyping's import hook: an int is welcome where a float is asked for, as PEP 484 has it."""

from beartype import BeartypeConf, beartype

checked = beartype(conf=BeartypeConf(is_pep484_tower=True))

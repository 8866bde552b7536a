"""Circuits for any table of parents instead of lags: layers, proofs, options and
`construct_parents`.
"""

from sih.beyond.any_parents.parents_build import construct_parents as construct_parents
from sih.beyond.any_parents.parents_circuit import ParentsCircuit as ParentsCircuit
from sih.beyond.any_parents.parents_table import PARENTS_CIRCUITS as PARENTS_CIRCUITS

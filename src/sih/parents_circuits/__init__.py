"""Circuits for any table of parents instead of lags: their layers, proofs, options and door."""

from sih.parents_circuits.parents_build import construct_parents as construct_parents
from sih.parents_circuits.parents_circuit import ParentsCircuit as ParentsCircuit
from sih.parents_circuits.parents_table import PARENTS_CIRCUITS as PARENTS_CIRCUITS

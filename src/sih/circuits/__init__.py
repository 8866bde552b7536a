"""Weights written by hand: circuits for lags, their layers, and their check."""

from sih.circuits.build import construct as construct
from sih.circuits.circuit import Circuit as Circuit
from sih.circuits.circuit_table import CIRCUITS as CIRCUITS
from sih.circuits.error_table import error_table as error_table
from sih.circuits.lag_weights import circuit_weights as circuit_weights
from sih.circuits.verification import Verification as Verification
from sih.circuits.verification import verify as verify

"""Weights written by hand: which head takes what, the layers, the circuits, and their certificates."""

from sih.construction.build import ConstructedTransformer as ConstructedTransformer
from sih.construction.build import construct as construct
from sih.construction.circuit import Circuit as Circuit
from sih.construction.circuit import circuit_weights as circuit_weights
from sih.construction.heads.fewer import head_offsets as head_offsets
from sih.construction.heads.independent_check import verify_certificate as verify_certificate
from sih.construction.heads.independent_check import verify_colouring as verify_colouring
from sih.construction.heads.least import Certificate as Certificate
from sih.construction.heads.least import LeastHeads as LeastHeads
from sih.construction.heads.least import Pattern as Pattern
from sih.construction.heads.least import least_heads as least_heads
from sih.construction.verification import Verification as Verification
from sih.construction.verification import error_table as error_table
from sih.construction.verification import verify as verify

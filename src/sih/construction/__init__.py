"""Weights written by hand: which head takes what, the layers, the circuits, and their certificates."""

from sih.construction.build import ConstructedTransformer as ConstructedTransformer
from sih.construction.build import construct as construct
from sih.construction.certificate import Verification as Verification
from sih.construction.certificate import error_table as error_table
from sih.construction.certificate import verify as verify
from sih.construction.circuit import Circuit as Circuit
from sih.construction.circuit import circuit_weights as circuit_weights
from sih.construction.fewer import head_offsets as head_offsets
from sih.construction.heads import Certificate as Certificate
from sih.construction.heads import LeastHeads as LeastHeads
from sih.construction.heads import Pattern as Pattern
from sih.construction.heads import least_heads as least_heads
from sih.construction.recheck import verify_certificate as verify_certificate
from sih.construction.recheck import verify_colouring as verify_colouring

"""Weights written by hand: the circuits, their layers, which head takes what, and checks that weights are right."""

from sih.construction.build import construct as construct
from sih.construction.circuit import Circuit as Circuit
from sih.construction.circuit import circuit_weights as circuit_weights
from sih.construction.heads.exact import ExactHeads as ExactHeads
from sih.construction.heads.exact import exact_heads as exact_heads
from sih.construction.heads.fewer import head_offsets as head_offsets
from sih.construction.heads.independent_check import verify_colouring as verify_colouring
from sih.construction.heads.independent_check import verify_lower_bound as verify_lower_bound
from sih.construction.heads.least import LeastHeads as LeastHeads
from sih.construction.heads.least import LowerBoundProof as LowerBoundProof
from sih.construction.heads.least import Pattern as Pattern
from sih.construction.heads.least import heads_needed as heads_needed
from sih.construction.heads.least import least_heads as least_heads
from sih.construction.heads.two_sided_fit import two_sided as two_sided
from sih.construction.layers import write as write
from sih.construction.specs import CIRCUITS as CIRCUITS
from sih.construction.specs import BayesCircuit as BayesCircuit
from sih.construction.specs import LookingCircuit as LookingCircuit
from sih.construction.specs import PaperCircuit as PaperCircuit
from sih.construction.specs import TwoLagCircuit as TwoLagCircuit
from sih.construction.specs import circuit_spec as circuit_spec
from sih.construction.verification import Verification as Verification
from sih.construction.verification import error_table as error_table
from sih.construction.verification import verify as verify

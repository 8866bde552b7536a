"""Assignment of offsets to second-layer heads: least numbers, and mixed heads."""

from sih.heads.fewer import head_offsets as head_offsets
from sih.heads.independent_check import verify_colouring as verify_colouring
from sih.heads.independent_check import verify_lower_bound as verify_lower_bound
from sih.heads.least import LeastHeads as LeastHeads
from sih.heads.least import LowerBoundProof as LowerBoundProof
from sih.heads.least import Pattern as Pattern
from sih.heads.least import heads_needed as heads_needed
from sih.heads.least import least_heads as least_heads
from sih.heads.two_sided_fit import two_sided as two_sided

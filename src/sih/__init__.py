"""Selective induction heads: how transformers select causal structures in context."""

from sih.construction import head_offsets as head_offsets
from sih.construction import least_heads as least_heads
from sih.markov import as_transition_matrix as as_transition_matrix
from sih.markov import load_transition_matrix as load_transition_matrix
from sih.markov import random_doubly_stochastic as random_doubly_stochastic
from sih.markov import random_near_periodic as random_near_periodic
from sih.markov import random_sparse as random_sparse
from sih.markov import random_transition_matrix as random_transition_matrix
from sih.markov import stationary_distribution as stationary_distribution
from sih.task import Batch as Batch
from sih.task import Task as Task
from sih.task import sample as sample

"""Selective induction heads: how transformers select causal structures in context."""

from sih.markov import as_transition_matrix as as_transition_matrix
from sih.markov import load_transition_matrix as load_transition_matrix
from sih.markov import random_doubly_stochastic as random_doubly_stochastic
from sih.markov import random_near_periodic as random_near_periodic
from sih.markov import random_sparse as random_sparse
from sih.markov import random_transition_matrix as random_transition_matrix
from sih.markov import stationary_distribution as stationary_distribution
from sih.models.convert import to_standard as to_standard
from sih.models.disentangled import DisentangledTransformer as DisentangledTransformer
from sih.models.loss import next_token_loss as next_token_loss
from sih.models.standard import Transformer as Transformer
from sih.models.storage import load as load
from sih.models.storage import save as save
from sih.task import Batch as Batch
from sih.task import Task as Task
from sih.task import sample as sample

"""Selective induction heads: how transformers select causal structures in context."""

from sih.markov import as_transition_matrix as as_transition_matrix
from sih.markov import load_transition_matrix as load_transition_matrix
from sih.markov import random_doubly_stochastic as random_doubly_stochastic
from sih.markov import random_near_periodic as random_near_periodic
from sih.markov import random_sparse as random_sparse
from sih.markov import random_transition_matrix as random_transition_matrix
from sih.markov import stationary_distribution as stationary_distribution
from sih.metrics import kl_to_truth as kl_to_truth
from sih.metrics import lag_accuracy as lag_accuracy
from sih.metrics import mean_kl as mean_kl
from sih.predictors import bma as bma
from sih.predictors import known_lag as known_lag
from sih.predictors import lag_log_likelihood as lag_log_likelihood
from sih.predictors import lag_posterior as lag_posterior
from sih.predictors import maximum_likelihood as maximum_likelihood
from sih.predictors import mixture as mixture
from sih.predictors import ngram as ngram
from sih.predictors import selective as selective
from sih.predictors import selective_weights as selective_weights
from sih.predictors import stationary_law as stationary_law
from sih.task import Batch as Batch
from sih.task import Task as Task
from sih.task import sample as sample
from sih.theory.claim import claim_expectations as claim_expectations
from sih.tracker import LagTracker as LagTracker

"""Selective induction heads: how transformers select causal structures in context."""

from sih.analysis.diagnosis import Diagnosis as Diagnosis
from sih.analysis.diagnosis import diagnose as diagnose
from sih.analysis.interventions import ablate as ablate
from sih.analysis.interventions import patch as patch
from sih.analysis.score_shares import evidence_flow as evidence_flow
from sih.construction import circuit_weights as circuit_weights
from sih.construction import construct as construct
from sih.construction import exact_heads as exact_heads
from sih.construction import head_offsets as head_offsets
from sih.construction import least_heads as least_heads
from sih.construction import two_sided as two_sided
from sih.construction import verify as verify
from sih.evidence import lag_log_likelihood as lag_log_likelihood
from sih.evidence import lag_posterior as lag_posterior
from sih.evidence import mixture as mixture
from sih.export.lens import from_transformer_lens as from_transformer_lens
from sih.export.lens import to_transformer_lens as to_transformer_lens
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
from sih.models.disentangled.as_standard import to_standard as to_standard
from sih.models.disentangled.dense import DisentangledTransformer as DisentangledTransformer
from sih.models.loss import next_token_loss as next_token_loss
from sih.models.standard.transformer import Transformer as Transformer
from sih.models.storage import save as save
from sih.predictors import bma as bma
from sih.predictors import known_lag as known_lag
from sih.predictors import maximum_likelihood as maximum_likelihood
from sih.predictors import ngram as ngram
from sih.predictors import selective as selective
from sih.predictors import selective_weights as selective_weights
from sih.predictors import stationary_law as stationary_law
from sih.runs.run import Run as Run
from sih.runs.run_store import load as load
from sih.runs.run_store import open_run as open_run
from sih.task import Batch as Batch
from sih.task import FreshBatches as FreshBatches
from sih.task import Task as Task
from sih.task import sample as sample
from sih.theory.claim import claim_expectations as claim_expectations
from sih.theory.coverage import claim_status as claim_status
from sih.tracker import LagTracker as LagTracker
from sih.training.config import TrainConfig as TrainConfig
from sih.training.trainer import train as train

__version__ = "0.1.0"
__all__ = sorted(name for name, value in globals().items() if getattr(value, "__module__", "").startswith("sih."))

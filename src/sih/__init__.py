"""Selective induction heads: how transformers select causal structures in context.

    import sih
    task = sih.Task(sih.random_transition_matrix(5, rng=0), lags=(1, 2, 3), length=128)
    batch = sih.sample(task, size=256, rng=0)
    sih.load("standard-1.2.3").trace(batch.tokens[:1]).plot()

task        Task SwitchingTask FreshTask ParentsTask Batch sample FreshBatches random_parents
matrices    random_transition_matrix random_uniform random_doubly_stochastic random_sparse random_near_periodic
            as_transition_matrix load_transition_matrix stationary_distribution
predict     bma truth plug_in maximum_likelihood selective known_lag ngram stationary_law LagTracker
evidence    lag_posterior lag_log_likelihood selective_weights mixture
judge       kl_to_truth mean_kl lag_accuracy evaluate formation
models      Transformer DisentangledTransformer RelativeTransformer DisentangledRelativeTransformer
            load save open_run Run next_token_loss to_standard
circuits    construct verify circuit_weights circuit_edges construct_parents
            least_heads exact_heads head_offsets two_sided
read        diagnose Diagnosis evidence_flow ablate patch
discover    counterfactual_pairs edge_scores known_circuit load_circuits
exchange    to_transformer_lens from_transformer_lens
real series infer Inference permutation_test
theory      claim_expectations claim_status
training    TrainConfig train

Most results have `plot()`, which a notebook shows. `help(sih.bma)` has a formula and an example. Command: `sih`.
"""

from sih.attention.circuit_formation import formation as formation
from sih.attention.interventions import ablate as ablate
from sih.attention.interventions import patch as patch
from sih.beyond.any_parents import construct_parents as construct_parents
from sih.beyond.diagnosis.diagnosis import Diagnosis as Diagnosis
from sih.beyond.diagnosis.diagnosis import diagnose as diagnose
from sih.beyond.discovery.discovery import counterfactual_pairs as counterfactual_pairs
from sih.beyond.discovery.discovery import edge_scores as edge_scores
from sih.beyond.discovery.edges import circuit_edges as circuit_edges
from sih.beyond.discovery.ground_truth import known_circuit as known_circuit
from sih.beyond.discovery.ground_truth import load_circuits as load_circuits
from sih.beyond.evidence_paths.score_shares import evidence_flow as evidence_flow
from sih.beyond.real_series.inference import Inference as Inference
from sih.beyond.real_series.inference import infer as infer
from sih.beyond.real_series.inference import permutation_test as permutation_test
from sih.beyond.shared_heads.exact import exact_heads as exact_heads
from sih.beyond.transformer_lens.lens import from_transformer_lens as from_transformer_lens
from sih.beyond.transformer_lens.lens import to_transformer_lens as to_transformer_lens
from sih.circuits import circuit_weights as circuit_weights
from sih.circuits import construct as construct
from sih.circuits import verify as verify
from sih.claim.coverage import claim_status as claim_status
from sih.claim.exact import claim_expectations as claim_expectations
from sih.heads import head_offsets as head_offsets
from sih.heads import least_heads as least_heads
from sih.heads import two_sided as two_sided
from sih.models.disentangled.as_standard import to_standard as to_standard
from sih.models.disentangled.dense import DisentangledTransformer as DisentangledTransformer
from sih.models.loss import next_token_loss as next_token_loss
from sih.models.relative.disentangled_relative import (
    DisentangledRelativeTransformer as DisentangledRelativeTransformer,
)
from sih.models.relative.relative_transformer import RelativeTransformer as RelativeTransformer
from sih.models.standard.transformer import Transformer as Transformer
from sih.models.storage import save as save
from sih.predictors.evidence import lag_log_likelihood as lag_log_likelihood
from sih.predictors.evidence import lag_posterior as lag_posterior
from sih.predictors.evidence import mixture as mixture
from sih.predictors.metrics import kl_to_truth as kl_to_truth
from sih.predictors.metrics import lag_accuracy as lag_accuracy
from sih.predictors.metrics import mean_kl as mean_kl
from sih.predictors.predictors import bma as bma
from sih.predictors.predictors import known_lag as known_lag
from sih.predictors.predictors import maximum_likelihood as maximum_likelihood
from sih.predictors.predictors import ngram as ngram
from sih.predictors.predictors import plug_in as plug_in
from sih.predictors.predictors import selective as selective
from sih.predictors.predictors import selective_weights as selective_weights
from sih.predictors.predictors import stationary_law as stationary_law
from sih.predictors.predictors import truth as truth
from sih.predictors.tracker import LagTracker as LagTracker
from sih.task import Batch as Batch
from sih.task import FreshBatches as FreshBatches
from sih.task import FreshTask as FreshTask
from sih.task import ParentsTask as ParentsTask
from sih.task import SwitchingTask as SwitchingTask
from sih.task import Task as Task
from sih.task import random_parents as random_parents
from sih.task import sample as sample
from sih.task.matrices import as_transition_matrix as as_transition_matrix
from sih.task.matrices import load_transition_matrix as load_transition_matrix
from sih.task.matrices import random_doubly_stochastic as random_doubly_stochastic
from sih.task.matrices import random_near_periodic as random_near_periodic
from sih.task.matrices import random_sparse as random_sparse
from sih.task.matrices import random_transition_matrix as random_transition_matrix
from sih.task.matrices import random_uniform as random_uniform
from sih.task.matrices import stationary_distribution as stationary_distribution
from sih.training.config import TrainConfig as TrainConfig
from sih.training.runs.evaluate import evaluate as evaluate
from sih.training.runs.run import Run as Run
from sih.training.runs.run_store import load as load
from sih.training.runs.run_store import open_run as open_run
from sih.training.trainer import train as train

__version__ = "0.2.0"
__all__ = sorted(
    name for name, value in globals().items() if getattr(value, "__module__", "").startswith("sih.")
)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]

"""Training: a configuration (task, model), a recipe (method), and the steps."""

from sih.training.config import TrainConfig as TrainConfig

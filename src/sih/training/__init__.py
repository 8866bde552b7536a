"""Training: what is trained (a configuration), how (a recipe), and the steps."""

from sih.training.config import TrainConfig as TrainConfig

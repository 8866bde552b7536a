"""Training: a configuration (the task, the model), a recipe (the method), and the
steps.
"""

from sih.training.config import TrainConfig as TrainConfig

"""The task: sequences from interleaved Markov chains."""

from sih.task.lags import Batch as Batch
from sih.task.lags import Task as Task
from sih.task.lags import check_lags as check_lags
from sih.task.lags import sample as sample

"""The task: sequences whose tokens follow their parents, and who the parents are is to be found out."""

from sih.task.fresh import FreshBatches as FreshBatches
from sih.task.lags import Task as Task
from sih.task.lags import check_lags as check_lags
from sih.task.parents import Batch as Batch
from sih.task.parents import CausalTask as CausalTask
from sih.task.parents import MatrixTask as MatrixTask
from sih.task.parents import as_slice as as_slice
from sih.task.parents import check_batch as check_batch
from sih.task.parents import check_task as check_task
from sih.task.parents import counted as counted
from sih.task.parents_task import ParentsTask as ParentsTask
from sih.task.parents_task import random_parents as random_parents
from sih.task.sampling import sample as sample

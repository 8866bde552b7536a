"""The task: sequences in which each token follows a parent, chosen by a hidden
hypothesis.
"""

from sih.task.batch import Batch as Batch
from sih.task.batch import check_batch as check_batch
from sih.task.counting import CountLaws as CountLaws
from sih.task.family import LAG_TASKS as LAG_TASKS
from sih.task.family import LagTask as LagTask
from sih.task.fresh_batches import FreshBatches as FreshBatches
from sih.task.fresh_task import FreshTask as FreshTask
from sih.task.lags import Lagged as Lagged
from sih.task.lags import Task as Task
from sih.task.lags import check_lags as check_lags
from sih.task.lags import check_prior as check_prior
from sih.task.laws import Laws as Laws
from sih.task.laws import RowLaws as RowLaws
from sih.task.laws import as_slice as as_slice
from sih.task.laws import first_with_parent as first_with_parent
from sih.task.laws import has_parent as has_parent
from sih.task.laws import leaders as leaders
from sih.task.laws import possible as possible
from sih.task.parents import CausalTask as CausalTask
from sih.task.parents import MatrixTask as MatrixTask
from sih.task.parents import check_task as check_task
from sih.task.parents import first_position as first_position
from sih.task.parents_task import ParentsTask as ParentsTask
from sih.task.parents_task import random_parents as random_parents
from sih.task.sampling import sample as sample
from sih.task.switching import SwitchingTask as SwitchingTask
from sih.task.switching import check_rate as check_rate

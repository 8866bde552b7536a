"""Files: one reader and one writer for each kind."""

from sih.base.files.array_file import read_arrays as read_arrays
from sih.base.files.array_file import read_table as read_table
from sih.base.files.array_file import write_arrays as write_arrays
from sih.base.files.array_file import write_rows as write_rows
from sih.base.files.atomic import atomic_folder as atomic_folder
from sih.base.files.atomic import atomic_write as atomic_write
from sih.base.files.atomic import check_place as check_place
from sih.base.files.json_file import read_json as read_json
from sih.base.files.json_file import write_json as write_json
from sih.base.files.reading import MissingFileError as MissingFileError
from sih.base.files.reading import check_entries as check_entries
from sih.base.files.reading import reading as reading
from sih.base.files.series_file import read_series as read_series
from sih.base.files.tensor_file import read_header as read_header
from sih.base.files.tensor_file import read_tensors as read_tensors
from sih.base.files.tensor_file import tensor_bytes as tensor_bytes

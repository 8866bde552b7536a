"""Files: one reader and one writer for each kind."""

from sih.files.array_file import read_arrays as read_arrays
from sih.files.array_file import read_table as read_table
from sih.files.array_file import write_arrays as write_arrays
from sih.files.array_file import write_rows as write_rows
from sih.files.atomic import atomic_folder as atomic_folder
from sih.files.atomic import atomic_write as atomic_write
from sih.files.atomic import check_place as check_place
from sih.files.json_file import read_json as read_json
from sih.files.json_file import write_json as write_json
from sih.files.reading import MissingFileError as MissingFileError
from sih.files.reading import check_entries as check_entries
from sih.files.reading import reading as reading
from sih.files.series_file import read_series as read_series
from sih.files.tensor_file import read_header as read_header
from sih.files.tensor_file import read_tensors as read_tensors
from sih.files.tensor_file import tensor_bytes as tensor_bytes

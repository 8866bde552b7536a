"""Files: one reader and one writer for each kind."""

from sih.files.atomic import atomic_write as atomic_write

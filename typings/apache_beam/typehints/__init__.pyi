from apache_beam.typehints import row_type as row_type
from apache_beam.typehints import typehints as typehints

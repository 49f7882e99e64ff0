from apache_beam.io.textio import WriteToText as WriteToText

"""What a user meets of a release: the table, the page of a report, a call without Beam code.

All of it is made of a released table and its record, which were paid for: nothing else of the data
is looked at.
"""

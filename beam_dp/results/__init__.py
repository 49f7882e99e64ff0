"""What a user meets of a release: the table, the page of a report, a call without Beam code.

Tables, pages and cards are made of a released table and its record, which were paid for. `release`
alone reads rows.
"""

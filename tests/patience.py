"""How long a test waits for something that has to happen.

Far longer than it takes on a busy machine, so only a hang gets there. A test that is about a
deadline of the product sets its own clock, or a short deadline whose passing cannot come too late.
"""

PATIENT = 90.0

"""The mathematics of beam_dp: numpy and exact arithmetic only; Beam is never imported here."""

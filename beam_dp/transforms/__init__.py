"""The Beam side of beam_dp: transforms, and no formula."""

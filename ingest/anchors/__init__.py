"""What anchored search has to know of an index: its calibration, on questions made of the index itself."""

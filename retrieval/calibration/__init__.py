"""How far anchored search may trust words in an index, measured without judgements."""

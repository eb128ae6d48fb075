"""Two runs judged by a person, list against list, and the judgements as a dataset."""

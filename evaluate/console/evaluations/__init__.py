"""The pages of evaluations: results, two of them compared, and replays that run."""

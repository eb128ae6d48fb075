"""Load: a dataset's queries, or a log's, sent to live indices as users would send them, and timed."""

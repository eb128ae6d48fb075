"""Loads that keep what is known of them in a folder, here or in S3, so that they can be resumed from anywhere."""

"""The pages of indices: what each holds, and how it was made."""

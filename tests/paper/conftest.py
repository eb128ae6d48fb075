"""What the papers' figures are made of."""

from xquad_fixtures import as_users_do, e5_small, quick_java, xquad, xquad_texts

__all__ = ["as_users_do", "e5_small", "quick_java", "xquad", "xquad_texts"]

"""Searching for people and services: what is asked of the modes, and how what they find is told and explained."""

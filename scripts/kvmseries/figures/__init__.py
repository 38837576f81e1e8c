"""Texts that quote results are made from them: Documentation/texts and Documentation/figures.yaml.

query (numbers from results files) -> texts (templates with them) -> slower (what got worse, and must be said)
"""

"""The figures that texts quote, each with the results that it follows from: Documentation/figures.yaml.

figures.yaml + Documentation/results/*.json -> compute (numbers) -> text (where they stand; the text that
they make) -> judge (what is wrong, what got worse, what to measure again)
"""

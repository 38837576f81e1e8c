"""Reports on loaded results files: tables for the terminal, the HTML page, pictures, comparisons, of what results.load() returns.
What was not measured is an em dash; no shape that the loader lets through makes them crash.

    results, bench.yaml -> summary (medians, spreads, ratios) -> layout, scaling (tables of text cells), verdict
            -> table (terminal), plots (SVG, PNG), page (HTML; templates/)
"""

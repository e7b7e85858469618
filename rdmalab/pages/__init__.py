"""The pages of the reports, one module a report: what wording, tables and figures say, put together as blocks.

Notebook cells call one method a page. Nothing is decided here.
"""

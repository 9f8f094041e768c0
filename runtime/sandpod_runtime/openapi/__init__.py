"""The description of everything that the runtime answers, made from its table of endpoints: as OpenAPI, and
as a page. Nothing here is loaded before somebody asks for it.
"""

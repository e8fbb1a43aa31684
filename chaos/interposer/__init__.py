"""Faults inside a process: a preloaded library that asks a shared page what to do with each call.

`library` gives the object to preload, `page` the injector's end of the page.
"""

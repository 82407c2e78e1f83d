"""A page to drive recoveries from a browser: upload or name a target, watch, cancel, read, download.

    browser <-> app (routes, guards) <-> Runs (a queue, two at once) <-> one process and one folder per run

Everything a run knows is in its folder, so nothing is lost when the server stops, however it stops. fastapi,
uvicorn and python-multipart (the extra ``web``) are only loaded when the page is served.
"""

__all__ = ["app"]

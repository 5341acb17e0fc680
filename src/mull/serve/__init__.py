"""The server: an API over the solver, and one page that shows a model thinking. Needs the extra `serve`."""

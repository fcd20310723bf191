"""The one exception a user is meant to read."""


class InputError(ValueError):
    """Say what was given, what was expected and what to do, in one line.

    Everything else that is raised is a defect and keeps its traceback.
    """

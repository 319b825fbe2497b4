"""The FastAPI application: thin. Validate, call a stage or recall, answer."""

from fastapi import FastAPI

from memoryos_pipeline import __version__
from memoryos_pipeline.api.auth import Authenticator
from memoryos_pipeline.api.errors import install_error_handlers
from memoryos_pipeline.stages.parts import Parts


def create_app(parts: Parts) -> FastAPI:
    """Build the application over the parts of this process."""
    app = FastAPI(title="memoryos-pipeline", version=__version__)
    app.state.parts = parts
    app.state.authenticator = Authenticator(parts.database)
    install_error_handlers(app)
    return app

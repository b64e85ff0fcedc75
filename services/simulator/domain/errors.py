"""What can go wrong in the simulator.

SimulatorError
├── WorldError            the world file says something impossible; names the key
└── BadRequest            a request the OpenAI interface would refuse with 400
    └── UnknownModel      a model name the simulator does not serve (404)
"""

from __future__ import annotations


class SimulatorError(Exception):
    """Base of all errors of the simulator."""


class WorldError(SimulatorError, ValueError):
    """The world file holds a value out of range; the message names the key."""


class BadRequest(SimulatorError):
    """The request body is not one the interface accepts; the message says which field."""


class UnknownModel(BadRequest):
    """The request names a model that is not served."""

"""What a checkpoint takes to hold and to run, measured on forwards of its model without weights."""

from encyclopedia.capture.costs.total import costs_of

__all__ = ["costs_of"]

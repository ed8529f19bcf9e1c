"""A Git repository on this machine, through dulwich: no shell, and no hooks run."""

from toolgate.adapters.git.repository import LocalForge

__all__ = ["LocalForge"]

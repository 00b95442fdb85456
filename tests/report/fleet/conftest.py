"""Fleets to look at."""

from support.fleet_fixtures import found as found
from support.fleet_fixtures import run_folder as run_folder

# SPDX-License-Identifier: Apache-2.0
"""The version, once. A constant, because reading it from the metadata of the installation costs start-up time."""

__version__ = "0.1.0"

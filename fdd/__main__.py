# SPDX-License-Identifier: Apache-2.0
"""``python -m fdd`` does what the command ``fdd`` does."""

from fdd.cli.main import entry

if __name__ == "__main__":
    entry()

# SPDX-License-Identifier: Apache-2.0
"""The command line: arguments in, reports out. Nothing here judges."""

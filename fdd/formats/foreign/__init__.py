# SPDX-License-Identifier: Apache-2.0
"""What else carries the names of PyTorch files: recognised by bytes, never judged, never unpacked to disk.

Nothing is imported here: the recognition of all kinds (:mod:`fdd.formats.foreign.identify`) costs more than most files.
"""

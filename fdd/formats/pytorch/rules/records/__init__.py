# SPDX-License-Identifier: Apache-2.0
"""Rules on the records of an archive: which there are, what they are called, what the small ones say."""

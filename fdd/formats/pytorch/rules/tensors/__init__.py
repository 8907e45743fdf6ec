# SPDX-License-Identifier: Apache-2.0
"""Rules on storages and on the tensors that look at them."""

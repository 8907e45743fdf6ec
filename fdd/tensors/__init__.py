# SPDX-License-Identifier: Apache-2.0
"""Tensors without a format: dtypes, storages, views and their arithmetic."""

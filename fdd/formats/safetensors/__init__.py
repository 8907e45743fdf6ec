# SPDX-License-Identifier: Apache-2.0
"""safetensors: a length, a JSON header, and the values of the tensors. A sibling format of fdd000644."""

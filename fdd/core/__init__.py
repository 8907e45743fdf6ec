# SPDX-License-Identifier: Apache-2.0
"""The core: sources, spans, facts, findings, rules and their engine. It knows no format."""

# SPDX-License-Identifier: Apache-2.0
"""Where the targets of a test's configuration come from; the servers' tests have these too."""


def keep(name, source, label, regex, rules=""):
    """discovery.relabel.NAME: of the source's targets those whose label is so, and more rules for
    them."""
    return f"""
discovery.relabel "{name}" {{
  targets = {source}.targets
  rule {{
    source_labels = ["{label}"]
    regex         = "{regex}"
    action        = "keep"
  }}
{rules}}}
"""


def kept(label, regex, rules=""):
    """discovery.relabel.kept: of all processes."""
    return 'discovery.process "all" { }\n' + keep(
        "kept", "discovery.process.all", label, regex, rules
    )

# SPDX-License-Identifier: Apache-2.0
"""Where the processes of a test's configuration come from; the servers' tests have these too."""


def kept(label, regex, rules=""):
    """discovery.relabel.kept: of all processes those whose label is so, and more rules for them."""
    return f"""
discovery.process "all" {{ }}
discovery.relabel "kept" {{
  targets = discovery.process.all.targets
  rule {{
    source_labels = ["{label}"]
    regex         = "{regex}"
    action        = "keep"
  }}
{rules}}}
"""

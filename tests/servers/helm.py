# SPDX-License-Identifier: Apache-2.0
"""The real Helm, and what a release of packaging/helm/andiron has in a cluster."""

import os
import subprocess
import tempfile

from kubernetes import RBAC
from pyroscope import get
from tap import write

CHART = os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "..", "..", "packaging", "helm", "andiron"
)
SPACE, NAME = "andiron", "andiron"  # as docs/cluster.md has them
LABEL = "labelSelector=app.kubernetes.io/instance%3Dandiron"
KINDS = [
    *(f"/api/v1/{kind}" for kind in ("configmaps", "pods", "services", "serviceaccounts")),
    f"{RBAC}/clusterroles",
    f"{RBAC}/clusterrolebindings",
    "/apis/apps/v1/daemonsets",
    "/apis/apps/v1/statefulsets",
    "/apis/networking.k8s.io/v1/networkpolicies",
]


class Helm:
    """`name` is "helm3" or "helm4". It is called with a command and its arguments, for the
    namespace SPACE."""

    def __init__(self, name, cluster):
        self.program, home = get(name), tempfile.mkdtemp()
        self.environment = {
            **os.environ,
            "KUBECONFIG": write(f"{home}/kubeconfig", cluster.kubeconfig()),
            "HELM_CACHE_HOME": home,
            "HELM_CONFIG_HOME": home,
        }

    def __call__(self, *arguments):
        """All that it said."""
        done = subprocess.run(
            [self.program, *arguments, "-n", SPACE],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            env=self.environment,
        )
        assert done.returncode == 0, (arguments, done.stdout)
        return done.stdout


def left(cluster):
    """What there is of the release."""
    return [i for kind in KINDS for i in cluster.must("GET", f"{kind}?{LABEL}")["items"]]

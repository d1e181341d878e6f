#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_install.py: packaging/helm/andiron installed, upgraded and removed by the real Helm 3 and
Helm 4 in a real API server. No node: what the DaemonSet's pods do is test_node.py's matter."""

import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "scenario"), os.path.join(HERE, "..", "servers")]
from kubernetes import ADMIN, CORE, RBAC, Cluster
from pyroscope import Skip, get
from tap import case, main, write

CHART = os.path.join(HERE, "..", "..", "packaging", "helm", "andiron")
SPACE, NAME = "profiling", "andiron"
DAEMONSET = f"/apis/apps/v1/namespaces/{SPACE}/daemonsets/{NAME}"
LABEL = "labelSelector=app.kubernetes.io/instance%3Dandiron"
KINDS = [
    f"{CORE}/{SPACE}/configmaps",
    f"{CORE}/{SPACE}/services",
    f"{CORE}/{SPACE}/serviceaccounts",
    f"{RBAC}/clusterroles",
    f"{RBAC}/clusterrolebindings",
    "/apis/apps/v1/daemonsets",
    "/apis/networking.k8s.io/v1/networkpolicies",
]


def kubeconfig(cluster):
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u", "namespace": SPACE}}],
        "clusters": [
            {
                "name": "c",
                "cluster": {"server": cluster.server, "certificate-authority": cluster.ca},
            }
        ],
        "users": [{"name": "u", "user": {"token": ADMIN}}],
    }


def helm(program, *arguments):
    done = subprocess.run(
        [program, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "KUBECONFIG": CONFIG, "HELM_CACHE_HOME": HOME, "HELM_CONFIG_HOME": HOME},
    )
    assert done.returncode == 0, (arguments, done.stdout, done.stderr)
    return done.stdout + done.stderr


def configuration():
    return CLUSTER.must("GET", f"{CORE}/{SPACE}/configmaps/{NAME}")["data"]["config.alloy"]


def may(verb, resource, account=NAME, group="", namespace="shop"):
    """Whether the API server lets the account do this."""
    asked = {"verb": verb, "resource": resource, "group": group, "namespace": namespace}
    review = CLUSTER.must(
        "POST",
        "/apis/authorization.k8s.io/v1/subjectaccessreviews",
        {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {
                "user": f"system:serviceaccount:{SPACE}:{account}",
                "groups": ["system:serviceaccounts", f"system:serviceaccounts:{SPACE}"],
                "resourceAttributes": asked,
            },
        },
    )
    return review["status"]["allowed"]


def life_by(program):
    """Install, upgrade and uninstall."""
    url = "backend.pyroscope.url=http://pyroscope:4040"
    said = helm(program, "install", NAME, CHART, "--create-namespace", "-n", SPACE, "--set", url)
    for command in (
        f"kubectl -n {SPACE} rollout status daemonset/{NAME}",
        f"kubectl -n {SPACE} exec daemonset/{NAME} -- /usr/local/bin/andiron targets "
        "/etc/andiron/config.alloy --match",
    ):
        assert command in said, said
    assert "arning" not in said, said
    assert 'url = "http://pyroscope:4040"' in configuration()
    made = CLUSTER.must("GET", DAEMONSET)
    assert made["spec"]["template"]["spec"]["hostPID"] is True, made

    for verb in ("list", "watch"):
        assert may(verb, "pods"), verb
        assert not may(verb, "pods", account="default"), verb
        for resource in ("secrets", "configmaps", "nodes", "namespaces", "services"):
            assert not may(verb, resource), (verb, resource)
    for verb in ("get", "create", "delete", "patch"):
        assert not may(verb, "pods"), verb

    # Another configuration makes no new pods: they take it themselves.
    helm(
        program,
        *("upgrade", NAME, CHART, "-n", SPACE, "--set", url),
        *("--set", "profiling.sampleRate=19", "--set", "discovery.namespaces={shop}"),
    )
    assert "sample_rate      = 19" in configuration()
    now = CLUSTER.must("GET", DAEMONSET)
    assert now["metadata"]["generation"] == made["metadata"]["generation"], now
    # And fewer rights where it looks into fewer namespaces.
    assert not CLUSTER.must("GET", f"{RBAC}/clusterroles?{LABEL}")["items"]
    assert not may("list", "pods", namespace="bank") and may("list", "pods", namespace="shop")

    helm(program, "uninstall", NAME, "-n", SPACE)
    left = [i for kind in KINDS for i in CLUSTER.must("GET", f"{kind}?{LABEL}")["items"]]
    assert not left, left


@case
def helm_3():
    """Helm 3: two commands are named; pods and nothing else may be read; a new configuration makes
    no new pods; nothing is left."""
    life_by(HELMS[0])


@case
def helm_4():
    """Helm 4: the same."""
    life_by(HELMS[1])


os.chdir(tempfile.mkdtemp())
try:
    HELMS = [get("helm3"), get("helm4")]
    CLUSTER = Cluster()
except Skip as why:
    print(f"1..0 # SKIP {why}")
    sys.exit()
with CLUSTER:
    HOME = tempfile.mkdtemp()
    CONFIG = write(f"{HOME}/kubeconfig", json.dumps(kubeconfig(CLUSTER)))
    CLUSTER.create(CORE, {"metadata": {"name": "shop"}})
    main()

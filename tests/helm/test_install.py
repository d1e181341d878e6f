#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_install.py: packaging/helm/andiron installed, upgraded and removed by the real Helm 3 and
Helm 4 in a real API server, also as docs/cluster.md prints it. No node: what the DaemonSet's pods
do is test_node.py's matter."""

import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "scenario"), os.path.join(HERE, "..", "servers")]
import yaml
from helm import CHART, LABEL, NAME, SPACE, Helm, left
from kubernetes import CORE, RBAC, Cluster
from pyroscope import Skip
from tap import case, main, read

ROOT = os.path.realpath(os.path.join(HERE, "..", ".."))
PAGE = os.path.join(ROOT, "docs", "cluster.md")
DAEMONSET = f"/apis/apps/v1/namespaces/{SPACE}/daemonsets/{NAME}"


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


def life_by(helm):
    """Install, upgrade and uninstall."""
    url = "backend.pyroscope.url=http://pyroscope:4040"
    said = helm("install", NAME, CHART, "--create-namespace", "--set", url)
    for command in (
        f"helm test {NAME} -n {SPACE}",
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
        *("upgrade", NAME, CHART, "--set", url),
        *("--set", "profiling.sampleRate=19", "--set", "discovery.namespaces={shop}"),
    )
    assert "sample_rate      = 19" in configuration()
    now = CLUSTER.must("GET", DAEMONSET)
    assert now["metadata"]["generation"] == made["metadata"]["generation"], now
    # And fewer rights where it looks into fewer namespaces.
    assert not CLUSTER.must("GET", f"{RBAC}/clusterroles?{LABEL}")["items"]
    assert not may("list", "pods", namespace="bank") and may("list", "pods", namespace="shop")

    helm("uninstall", NAME)
    assert not left(CLUSTER), left(CLUSTER)


@case
def helm_3():
    """Helm 3: two commands are named; pods and nothing else may be read; a new configuration makes
    no new pods; nothing is left."""
    life_by(HELMS[0])


@case
def helm_4():
    """Helm 4: the same."""
    life_by(HELMS[1])


def said_by(command, **more):
    """What a command of the page says where it is meant to be typed: at the top of the tree."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, **more)
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    return done.stdout


@case
def as_printed():
    """The page's commands of Helm in their order, but for `helm test`, which needs a node, and the
    one that removes all, which comes last."""
    commands = [line.split() for line in re.findall("^helm .*$", read(PAGE), re.M)]
    commands.sort(key=lambda command: command[1] == "uninstall")
    verbs = [command[1] for command in commands]
    assert verbs == ["install", "test", *["upgrade"] * 2, "rollback", "upgrade", "uninstall"], verbs
    space = re.search(r"gateway\.namespace=(\S+)", commands[-2][-1])[1]
    CLUSTER.create(CORE, {"metadata": {"name": space}})
    for helm in HELMS:
        for _, verb, *rest in commands:
            if verb != "test":
                said_by([helm.program, verb, *rest], env=helm.environment)
            found = CLUSTER.must("GET", f"/apis/apps/v1/daemonsets?{LABEL}")["items"]
            assert bool(found) == (verb != "uninstall"), (verb, found)


@case
def pod_security():
    """The gateway's pod is taken where Pod Security enforces `restricted`; an agent's is not."""
    space = "strict"
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    CLUSTER.create(CORE, {"metadata": {"name": space, "labels": labels}})
    CLUSTER.create(f"{CORE}/{space}/serviceaccounts", {"metadata": {"name": "default"}})
    CLUSTER.create(f"{CORE}/{space}/serviceaccounts", {"metadata": {"name": NAME}})
    rendered = said_by(
        [HELMS[0].program, "template", NAME, CHART, "--kube-version=1.37"]
        + ["--set=backend.pyroscope.url=http://p:4040", "--set=gateway.enabled=true"]
    )
    sets = {
        one["kind"]: one["spec"]["template"]
        for one in yaml.safe_load_all(rendered)
        if one and one["kind"] in ("DaemonSet", "StatefulSet")
    }
    for kind, wanted in (("StatefulSet", 201), ("DaemonSet", 403)):
        metadata = {**sets[kind]["metadata"], "name": kind.lower()}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": sets[kind]["spec"]}
        # A StatefulSet's controller adds the volume of its claim.
        code, found = CLUSTER.ask("POST", f"{CORE}/{space}/pods?dryRun=All", pod)
        assert code == wanted, (kind, code, found)


@case
def allow_list():
    """The page's allow-list for GKE Autopilot names what the chart renders for it."""
    listed = yaml.safe_load(re.search("```yaml\n(.*?)```", read(PAGE), re.S)[1])
    values = f"--values={CHART}/platforms/gke-autopilot.yaml"
    rendered = said_by(
        [HELMS[0].program, "template", NAME, CHART, values, "--kube-version=1.37"]
        + ["--set=backend.pyroscope.url=http://p:4040", "--show-only=templates/daemonset.yaml"]
    )
    pod = yaml.safe_load(rendered)["spec"]["template"]["spec"]
    (made,), (asked,) = pod["containers"], listed["matchingCriteria"]["containers"]
    for key in ("name", "args"):
        assert asked[key] == made[key], (key, asked[key], made[key])
    # What is not said to be read-only must be said there to be not.
    mounts = [{"readOnly": False, **mount} for mount in made["volumeMounts"]]
    assert asked["volumeMounts"] == mounts, mounts
    for mine, theirs in zip(pod["volumes"], listed["matchingCriteria"]["volumes"], strict=True):
        assert mine["name"] == theirs["name"], (mine, theirs)
        assert mine.get("configMap") == theirs.get("configMap"), (mine, theirs)
    assert [e["name"] for e in asked["env"]] == [e["name"] for e in made["env"]], made["env"]
    capabilities = {"capabilities": made["securityContext"]["capabilities"]}
    assert asked["securityContext"] == capabilities, capabilities
    assert pod["hostPID"] is listed["matchingCriteria"]["hostPID"] is True
    assert not any("hostPath" in volume for volume in pod["volumes"]), pod["volumes"]


os.chdir(tempfile.mkdtemp())
try:
    CLUSTER = Cluster()
    HELMS = [Helm("helm3", CLUSTER), Helm("helm4", CLUSTER)]
except Skip as why:
    print(f"1..0 # SKIP {why}")
    sys.exit()
with CLUSTER:
    CLUSTER.create(CORE, {"metadata": {"name": "shop"}})
    main()

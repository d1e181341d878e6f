# SPDX-License-Identifier: Apache-2.0
"""A real node for tests: containerd and runc as Debian has them, and a kubelet.

It has a mount namespace, a network namespace and a cgroup of its own, and the
machine's pids, as a DaemonSet with hostPID needs them. Nothing of it is stopped
one by one: whoever waits outside kills all that is in the cgroup, and with the
last process go mounts and network. So the end is the same whether the test has
ended, was interrupted or was killed.

Nothing of the machine is changed. Two places are shadowed where the node writes
by fixed paths (/run, /var), three sysctls that a kubelet sets are files that
have its values already, and AppArmor profiles are not loaded.
"""

import contextlib
import errno
import importlib.machinery
import importlib.util
import json
import os
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import urllib.parse
import urllib.request

from cgroups import hierarchy
from controllers import Controllers, Names
from kubernetes import ADMIN, Cluster, openssl, until
from pyroscope import get
from tap import DEADLINE, read, write

PACKAGING = os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "..", "..", "packaging", "kubernetes"
)
NAME, NODE_ADDRESS, SERVICE, KUBELET = "n1", "10.88.0.1", "10.0.0.1", 10250
TOOLS = "localhost/tools:1"
INSIDE = "ANDIRON_NODE_GROUP"  # the name of the cgroup, for who runs inside
SOCKET = "/run/containerd/containerd.sock"


# Outside: who waits for the end.


def mounted():
    """Where cgroups of every hierarchy are."""
    mounts = (line.split()[1:3] for line in read("/proc/mounts").splitlines())
    return [where for where, kind in mounts if kind in ("cgroup", "cgroup2")]


def make_groups(name):
    for place in mounted():
        os.mkdir(f"{place}/{name}")
        for file in (
            "cpuset.cpus",
            "cpuset.mems",
        ):  # of version 1: empty in a new group, and nothing runs there
            if (
                os.path.exists(f"{place}/{file}")
                and os.path.exists(f"{place}/{name}/{file}")
                and "cpuset" in place
            ):
                write(f"{place}/{name}/{file}", read(f"{place}/{file}"))
    os.mkdir(f"{hierarchy()}/{name}/servers")


def members(group):
    found = []
    for folder, _, _ in os.walk(group):
        with contextlib.suppress(OSError):
            found += map(int, read(f"{folder}/cgroup.procs").split())
    return found


def kill_all(group):
    """True once nobody is left; who is born meanwhile is found the next time."""
    found = members(group)
    for pid in found:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return not found


def remove_groups(name):
    for place in mounted():
        for folder, _, _ in os.walk(f"{place}/{name}", topdown=False):
            with contextlib.suppress(FileNotFoundError):
                os.rmdir(folder)


def clean(name, folder):
    until(lambda: kill_all(f"{hierarchy()}/{name}"), "the end of the node's processes", 60)

    def empty():  # a process that has ended leaves its groups a moment later
        try:
            remove_groups(name)
            return True
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise
            return False

    until(empty, "the end of the node's cgroups", 60)
    shutil.rmtree(folder)


def keep(name, folder):
    """Forks who waits until this process is gone, and cleans up; its pid, and what ends its
    waiting when it is closed."""
    end, held = os.pipe()
    pid = os.fork()
    if pid:
        os.close(end)
        return pid, held
    code = 1
    try:
        os.close(held)
        os.setsid()  # what kills the test's group leaves this alone
        nowhere = os.open("/dev/null", os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(nowhere, fd)
        while os.read(end, 1):
            pass
        clean(name, folder)
        code = 0
    finally:
        os._exit(code)


def run_inside(program):
    """Runs the program again where a node may be started, and ends as that does; by then all of it
    is gone."""
    name, folder = f"andiron-node-{os.getpid()}", tempfile.mkdtemp(prefix="andiron-node-")
    keeper, held = keep(name, folder)
    make_groups(name)
    enter = 'echo $$ >"$0" && exec "$@"'
    code = subprocess.call(
        [
            "sh",
            "-c",
            enter,
            f"{hierarchy()}/{name}/servers/cgroup.procs",
            "unshare",
            "--mount",
            "--net",
            "--",
            sys.executable,
            *program,
        ],
        env={**os.environ, INSIDE: name, "TMPDIR": folder},
    )
    os.close(held)
    cleaned = os.waitstatus_to_exitcode(os.waitpid(keeper, 0)[1]) == 0
    if not cleaned or folder in read("/proc/mounts"):
        print(f"# the node {name} left something behind", flush=True)
    sys.exit(code or not cleaned)


# Inside.

SYSCTLS = {"vm/overcommit_memory": "1", "kernel/panic": "10", "kernel/panic_on_oops": "1"}
HIDDEN = ["/run", "/var/lib", "/var/log"]


def sh(*command, **options):
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        **options,
    )
    assert done.returncode == 0, (command, done.stdout)
    return done.stdout


def furnish():
    """The mounts and the network."""
    sh(
        "mount", "--make-rshared", "/"
    )  # in here only; pods' mounts must reach containerd and the kubelet
    for place in HIDDEN:
        sh("mount", "-t", "tmpfs", "tmpfs", place)
    for name, value in SYSCTLS.items():
        file = write(os.path.abspath(os.path.basename(name)), value + "\n")
        sh("mount", "--bind", file, f"/proc/sys/{name}")
    for words in (
        "link set lo up",
        f"address add {SERVICE}/32 dev lo",
        # Otherwise it takes the least address of its ports, and with each pod another may be that;
        # the other pods then speak to nobody until they ask for it again.
        "link add cni0 address 0a:58:0a:58:00:01 type bridge",
        f"address add {NODE_ADDRESS}/16 dev cni0",
        "link set cni0 up",
        "route add default dev cni0",
    ):
        sh("ip", *words.split())


CONTAINERD = """
version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "%s"
  disable_apparmor = true
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      BinaryName = "%s"
      SystemdCgroup = false
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "%s"
    conf_dir = "%s"
"""
NETWORK = {
    "cniVersion": "0.4.0",
    "name": "pods",
    "type": "bridge",
    "bridge": "cni0",
    "isGateway": True,
    "ipam": {
        "type": "host-local",
        "ranges": [[{"subnet": "10.88.0.0/16", "rangeStart": "10.88.1.1"}]],
        "routes": [{"dst": "0.0.0.0/0"}],
    },
}


def image_tool():
    """packaging/kubernetes/image as a module."""
    loader = importlib.machinery.SourceFileLoader("image", os.path.join(PACKAGING, "image"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("image", loader))
    loader.exec_module(module)
    return module


def tools_image(out, programs):
    """An image of these programs, {name: path here}, with a shell; without a command it waits, as
    a sandbox does."""
    tool = image_tool()
    paths = {
        "/bin/sh": "/bin/sh",
        "/bin/sleep": "/bin/sleep",
        **{f"/bin/{name}": path for name, path in programs.items()},
    }
    with contextlib.redirect_stdout(None):
        tool.write_image(
            out,
            TOOLS,
            {
                tool.MACHINES[os.uname().machine]: tool.read_all(
                    {name: os.path.realpath(path) for name, path in paths.items()}
                )
            },
            {"Entrypoint": ["/bin/sleep", "infinity"], "Env": ["PATH=/bin"]},
        )
    return out


class NodeCluster(Cluster):
    """The API server where pods find it, with service accounts' tokens in pods. It reads pods' logs
    from the kubelet, as one of its administrators."""

    ADDRESS, PORT = SERVICE, 443
    BIND = [
        "--bind-address=0.0.0.0",
        f"--advertise-address={NODE_ADDRESS}",
        "--kubelet-preferred-address-types=InternalIP",
        "--kubelet-client-certificate=kubelet-client.crt",
        "--kubelet-client-key=clients.key",
    ]

    def start(self, *flags):
        openssl(
            *("req", "-new", "-key", "clients.key", "-subj", "/O=system:masters/CN=api-server"),
            *("-out", "kubelet-client.csr"),
        )
        openssl(
            *("x509", "-req", "-in", "kubelet-client.csr", "-days", "2", "-CAcreateserial"),
            *("-CA", "clients.crt", "-CAkey", "clients.key", "-out", "kubelet-client.crt"),
        )
        super().start(*flags)


class Node(contextlib.ExitStack):
    """A cluster of this one node, with stand-ins for its other parts. `programs` are in the image
    TOOLS; flags are the API server's."""

    def __init__(self, programs, *flags):
        super().__init__()
        self.group, self.folder = os.environ[INSIDE], os.getcwd()
        self.debian = get("containerd")
        self.kubelet_program = get("kubelet")
        furnish()
        self.cluster = self.enter_context(NodeCluster(*flags))
        Controllers(self.cluster, NAME)
        Names(self.cluster, NODE_ADDRESS)
        self.configure_containerd()
        self.start_containerd()
        self.ctr("images", "import", tools_image(os.path.abspath("tools.tar"), programs))
        self.configure_kubelet()
        self.start_kubelet()

    def path(self):
        return {
            **os.environ,
            "PATH": f"{self.debian}/usr/bin:{self.debian}/usr/sbin:{os.environ['PATH']}",
        }

    def begin(self, *command):
        with open(self.log(command[0]), "ab") as log:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env=self.path(),
            )

    def log(self, program):
        return f"{self.folder}/log-{os.path.basename(program)}"

    def ctr(self, *arguments):
        return sh(f"{self.debian}/usr/bin/ctr", "-a", SOCKET, "-n", "k8s.io", *arguments)

    def configure_containerd(self):
        os.mkdir("cni")
        write("cni/pods.conf", json.dumps(NETWORK))
        write(
            "containerd.toml",
            CONTAINERD
            % (
                TOOLS,
                f"{self.debian}/usr/sbin/runc",
                f"{self.debian}/usr/lib/cni",
                os.path.abspath("cni"),
            ),
        )

    def start_containerd(self):
        self.containerd = self.begin(
            f"{self.debian}/usr/bin/containerd", "--config", "containerd.toml"
        )

        def answers():
            assert self.containerd.poll() is None, read(self.log("containerd"))
            with contextlib.suppress(AssertionError):
                return self.ctr("version")

        until(answers, "containerd answers")

    def configure_kubelet(self):
        os.mkdir("static")
        write("kubeconfig", self.cluster.kubeconfig())
        write(
            "kubelet.json",
            json.dumps(
                {
                    "apiVersion": "kubelet.config.k8s.io/v1beta1",
                    "kind": "KubeletConfiguration",
                    "failCgroupV1": False,
                    "cgroupDriver": "cgroupfs",
                    "cgroupRoot": f"/{self.group}",
                    "enforceNodeAllocatable": ["none"],
                    "failSwapOn": False,
                    "oomScoreAdj": 0,
                    "protectKernelDefaults": True,
                    "makeIPTablesUtilChains": False,
                    "containerRuntimeEndpoint": f"unix://{SOCKET}",
                    "address": "0.0.0.0",
                    "port": KUBELET,
                    "healthzPort": 0,
                    "staticPodPath": os.path.abspath("static"),
                    "volumePluginDir": os.path.abspath("plugins"),
                    "resolvConf": "",
                    "clusterDNS": [NODE_ADDRESS],
                    "clusterDomain": "cluster.local",
                    "localStorageCapacityIsolation": False,
                    "evictionHard": {"memory.available": "1Mi"},
                    "fileCheckFrequency": "1s",
                    "syncFrequency": "10s",
                    "authentication": {
                        "x509": {"clientCAFile": os.path.abspath("clients.crt")},
                        "anonymous": {"enabled": False},
                        "webhook": {"enabled": True},
                    },
                    "authorization": {"mode": "Webhook"},
                }
            ),
        )

    def start_kubelet(self):
        self.kubelet = self.begin(
            self.kubelet_program,
            "--config=kubelet.json",
            "--kubeconfig=kubeconfig",
            f"--hostname-override={NAME}",
            f"--node-ip={NODE_ADDRESS}",
            "--root-dir=/var/lib/kubelet",
            "--cert-dir=kubelet-certs",
        )

        def ready():
            assert self.kubelet.poll() is None, tail(self.log(self.kubelet_program))
            status, node = self.cluster.ask("GET", f"/api/v1/nodes/{NAME}")
            return status == 200 and any(
                c["type"] == "Ready" and c["status"] == "True" for c in node["status"]["conditions"]
            )

        until(ready, "the node is ready")

    def kill(self):
        """As if the power were cut: nobody of the node is asked to stop."""
        for program in (self.kubelet, self.containerd):
            program.kill()
            program.wait()
        place = f"{hierarchy()}/{self.group}"

        def gone():
            servers = set(members(f"{place}/servers"))
            shims = [
                pid for pid in servers if read(f"/proc/{pid}/comm").startswith("containerd-sh")
            ]
            left = [*shims, *(pid for pid in members(place) if pid not in servers)]
            for pid in left:
                os.kill(pid, signal.SIGKILL)
            return not left

        def all_gone():  # who ends meanwhile is not found
            with contextlib.suppress(ProcessLookupError, FileNotFoundError):
                return gone()

        until(all_gone, "the end of all containers")

    def start(self):
        self.start_containerd()
        self.start_kubelet()

    def exec(self, namespace, pod, container, *command):
        """Runs a command in a container, as `kubectl exec` has the kubelet do it."""
        query = urllib.parse.urlencode({'cmd': ' '.join(command)})
        url = f"https://127.0.0.1:{KUBELET}/run/{namespace}/{pod}/{container}?{query}"
        request = urllib.request.Request(
            url, method="POST", headers={"Authorization": f"Bearer {ADMIN}"}
        )
        with urllib.request.urlopen(
            request, timeout=DEADLINE, context=ssl._create_unverified_context()
        ) as answer:
            return answer.read().decode()


def tail(path, n=40):
    return "\n".join(read(path).splitlines()[-n:])

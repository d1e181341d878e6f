# SPDX-License-Identifier: Apache-2.0
"""A node for tests: containerd and runc as Debian has them, under a real API server.

In place of a kubelet, run_pod() does with a pod what its specification says, by
containerd's own client: image, command, environment, capabilities, seccomp,
volumes, token, cgroup, status. All of the node's pods share its network.

It has a mount namespace, a network namespace and a cgroup of its own, and the
machine's pids, as a DaemonSet with hostPID needs them. Nothing of it is stopped
one by one: whoever waits outside kills all that is in the cgroup, and with the
last process go mounts and network. So the end is the same whether the test has
ended, was interrupted or was killed. Nothing of the machine is changed: where
runtimes write by fixed paths (/run, /var) is covered.
"""
import contextlib
import errno
import importlib.machinery
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import uuid

from cgroups import hierarchy
from kubernetes import CORE, Cluster, until
from pyroscope import get
from tap import read, write

PACKAGING = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "packaging", "kubernetes")
NAME, NODE_ADDRESS, SERVICE = "n1", "10.88.0.1", "10.0.0.1"
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
        for file in ("cpuset.cpus", "cpuset.mems"):  # of version 1: empty in a new group, and nothing runs there
            if os.path.exists(f"{place}/{file}") and os.path.exists(f"{place}/{name}/{file}") and "cpuset" in place:
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
    """Forks who waits until this process is gone, and cleans up; its pid, and what ends its waiting when it is closed."""
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
    """Runs the program again where a node may be started, and ends as that does; by then all of it is gone."""
    name, folder = f"andiron-node-{os.getpid()}", tempfile.mkdtemp(prefix="andiron-node-")
    keeper, held = keep(name, folder)
    make_groups(name)
    enter = 'echo $$ >"$0" && exec "$@"'
    code = subprocess.call(["sh", "-c", enter, f"{hierarchy()}/{name}/servers/cgroup.procs", "unshare", "--mount", "--net", "--",
                            sys.executable, *program], env={**os.environ, INSIDE: name, "TMPDIR": folder})
    os.close(held)
    cleaned = os.waitstatus_to_exitcode(os.waitpid(keeper, 0)[1]) == 0
    if not cleaned or folder in read("/proc/mounts"):
        print(f"# the node {name} left something behind", flush=True)
    sys.exit(code or not cleaned)


# Inside.

HIDDEN = ["/run", "/var/lib", "/var/log"]


def sh(*command, **options):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **options)
    assert done.returncode == 0, (command, done.stdout)
    return done.stdout


def furnish():
    """The mounts and the network."""
    sh("mount", "--make-rshared", "/")  # in here only; pods' mounts must reach containerd and the kubelet
    for place in HIDDEN:
        sh("mount", "-t", "tmpfs", "tmpfs", place)
    for words in ("link set lo up", f"address add {SERVICE}/32 dev lo", f"address add {NODE_ADDRESS}/32 dev lo"):
        sh("ip", *words.split())


CONTAINERD = """
version = 2
disabled_plugins = ["io.containerd.grpc.v1.cri"]
"""
# What containerd gives a container unless it is told otherwise; "drop: ALL" has to name them.
GIVEN = """CHOWN DAC_OVERRIDE FSETID FOWNER MKNOD NET_RAW SETGID SETUID SETFCAP SETPCAP NET_BIND_SERVICE SYS_CHROOT KILL AUDIT_WRITE""".split()


def image_tool():
    """packaging/kubernetes/image as a module."""
    loader = importlib.machinery.SourceFileLoader("image", os.path.join(PACKAGING, "image"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("image", loader))
    loader.exec_module(module)
    return module


def tools_image(out, programs):
    """An image of these programs, {name: path here}, with a shell."""
    tool = image_tool()
    paths = {"/bin/sh": "/bin/sh", "/bin/sleep": "/bin/sleep", **{f"/bin/{name}": path for name, path in programs.items()}}
    with contextlib.redirect_stdout(None):
        tool.write_image(out, TOOLS, tool.read_all({name: os.path.realpath(path) for name, path in paths.items()}),
                         {"Env": ["PATH=/bin"]})
    return out


class NodeCluster(Cluster):
    """The API server where pods find it, with service accounts' tokens in pods."""
    ADDRESS, PORT = SERVICE, 443
    BIND = ["--bind-address=0.0.0.0", f"--advertise-address={NODE_ADDRESS}"]


class Node(contextlib.ExitStack):
    """A cluster of this one node. `programs` are in the image TOOLS; images are other archives to import."""

    def __init__(self, programs, images):
        super().__init__()
        self.group, self.folder = os.environ[INSIDE], os.getcwd()
        self.debian = get("containerd")
        self.n_commands = 0
        furnish()
        self.cluster = self.enter_context(NodeCluster())
        self.start_containerd()
        for archive in [tools_image(os.path.abspath("tools.tar"), programs), *images]:
            self.ctr("images", "import", archive)

    def ctr(self, *arguments):
        return sh(f"{self.debian}/usr/bin/ctr", "-a", SOCKET, "-n", "k8s.io", *arguments)

    def start_containerd(self):
        write("containerd.toml", CONTAINERD)
        path = f"{self.debian}/usr/bin:{self.debian}/usr/sbin:{os.environ['PATH']}"
        with open("log-containerd", "ab") as log:
            daemon = subprocess.Popen([f"{self.debian}/usr/bin/containerd", "--config", "containerd.toml"], stdin=subprocess.DEVNULL,
                                      stdout=log, stderr=log, env={**os.environ, "PATH": path})

        def answers():
            assert daemon.poll() is None, read("log-containerd")
            with contextlib.suppress(AssertionError):
                return self.ctr("version")
        until(answers, "containerd answers")

    def volume(self, pod, volume):
        """The folder that is mounted for a volume."""
        folder, space = f"{self.folder}/volumes/{pod['metadata']['name']}/{volume['name']}", pod["metadata"]["namespace"]
        os.makedirs(folder)
        for source in [volume, *volume.get("projected", {}).get("sources", [])]:
            if "configMap" in source:
                found = self.cluster.must("GET", f"{CORE}/{space}/configmaps/{source['configMap']['name']}")
                for name, text in found["data"].items():
                    write(f"{folder}/{name}", text)
            elif "serviceAccountToken" in source:
                asked = {"spec": {"expirationSeconds": source["serviceAccountToken"]["expirationSeconds"]}}
                account = pod["spec"]["serviceAccountName"]
                token = self.cluster.must("POST", f"{CORE}/{space}/serviceaccounts/{account}/token", asked)["status"]["token"]
                write(f"{folder}/{source['serviceAccountToken']['path']}", token)
            elif "downwardAPI" in source:
                write(f"{folder}/namespace", space)
        return folder

    def flags(self, pod, container):
        """How `ctr run` is told what the pod's specification says."""
        security = container.get("securityContext", {})
        capabilities = security.get("capabilities", {})
        volumes = {v["name"]: v for v in pod["spec"]["volumes"]}
        assert not security.get("privileged") and capabilities.get("drop", ["ALL"]) == ["ALL"]
        yield from ("--net-host", "--seccomp", "--mount", "type=cgroup,src=cgroup,dst=/sys/fs/cgroup,options=ro")
        yield from (f"--cap-drop=CAP_{name}" for name in GIVEN if "drop" in capabilities)
        yield from (f"--cap-add=CAP_{name}" for name in capabilities.get("add", []))
        if security.get("readOnlyRootFilesystem"):
            yield "--read-only"
        if pod["spec"].get("hostPID"):
            yield "--with-ns=pid:/proc/self/ns/pid"  # runc's own
        for mount in container["volumeMounts"]:
            how = "ro" if mount.get("readOnly") else "rw"
            yield f"--mount=type=bind,src={self.volume(pod, volumes[mount['name']])},dst={mount['mountPath']},options=rbind:{how}"
        for name, value in (("KUBERNETES_SERVICE_HOST", SERVICE), ("KUBERNETES_SERVICE_PORT", "443"),
                            *((e["name"], e["value"] if "value" in e else NAME) for e in container.get("env", []))):
            yield f"--env={name}={value}"
        limits = container["resources"]["limits"]
        yield f"--memory-limit={int(limits['memory'].removesuffix('Mi')) << 20}"
        if "cpu" in limits:
            yield from ("--cpu-period=100000", f"--cpu-quota={int(limits['cpu'].removesuffix('m')) * 100}")

    def run_pod(self, pod, uid=None):
        """Runs the pod's one container and says so in its status; its id. `uid`: another name of its cgroup."""
        container, = pod["spec"]["containers"]
        made, identity = pod["metadata"], uuid.uuid4().hex * 2
        group = f"/{self.group}/kubepods/burstable/pod{uid or made['uid']}/{identity}"
        command = container.get("command", []) + container.get("args", [])
        if "command" not in container:
            command = ["/usr/local/bin/andiron", *command]  # the entrypoint, which ctr replaces
        self.ctr("run", "--detach", f"--cgroup={group}", *self.flags(pod, container), container["image"], identity, *command)
        self.cluster.patch(f"{CORE}/{made['namespace']}/pods/{made['name']}/status", {"status": {
            "phase": "Running", "podIP": NODE_ADDRESS, "podIPs": [{"ip": NODE_ADDRESS}], "hostIP": NODE_ADDRESS,
            "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": [{"name": container["name"], "image": container["image"], "imageID": "", "ready": True, "restartCount": 0,
                                   "state": {"running": {}}, "containerID": f"containerd://{identity}"}]}})
        return identity

    def exec(self, identity, *command):
        """Runs a command in a container, as `kubectl exec` has it done; what it printed."""
        self.n_commands += 1
        return self.ctr("tasks", "exec", "--exec-id", f"e{self.n_commands}", identity, *command)

    def processes(self, identity):
        """The pids in a container's cgroup."""
        return next(list(map(int, read(f"{folder}/cgroup.procs").split())) for folder, _, _ in os.walk(f"{hierarchy()}/{self.group}")
                    if os.path.basename(folder) == identity)

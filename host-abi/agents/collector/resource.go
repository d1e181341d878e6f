// SPDX-License-Identifier: Apache-2.0

package andironreceiver

import (
	"hash/fnv"
	"os"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	andiron "andiron/host-abi/bindings/go"
)

// Labels that do not begin with "__" keep their names; of those that do, these are handed on. By
// them the k8sattributes processor finds a pod. The same as in lib/push-protocols/otlp.c.
var renamed = map[string]string{
	"service_name":                         "service.name",
	"__container_id__":                     "container.id",
	"__process_pid__":                      "process.pid",
	"__process_executable_name":            "process.executable.name",
	"__process_executable_path":            "process.executable.path",
	"__meta_kubernetes_node_name":          "k8s.node.name",
	"__meta_kubernetes_pod_node_name":      "k8s.node.name",
	"__meta_kubernetes_namespace":          "k8s.namespace.name",
	"__meta_kubernetes_pod_name":           "k8s.pod.name",
	"__meta_kubernetes_pod_uid":            "k8s.pod.uid",
	"__meta_kubernetes_pod_container_name": "k8s.container.name",
}

// What a resource says where its target does not: on which node it is.
type resource struct{ nodeKey, node string }

func newResource() resource {
	if node := os.Getenv("NODE_NAME"); node != "" {
		return resource{"k8s.node.name", node}
	}
	node, _ := os.Hostname()
	return resource{"host.name", node}
}

// Puts a group's labels, and gives a number that is the same for the same labels.
func (r *resource) put(m *message, g andiron.Group, to pcommon.Map) uint64 {
	hash := fnv.New64a()
	to.PutStr("service.name", "unspecified")
	if r.node != "" {
		to.PutStr(r.nodeKey, r.node)
	}
	for _, label := range m.b.AttributesOf(g.LabelStart, g.NLabels) {
		if label.Kind != andiron.AttributeString {
			continue
		}
		from, value := m.text(label.Key), m.text(uint32(label.Value))
		name, ok := renamed[from]
		if !ok {
			name = from
		}
		if name == "" || value == "" || strings.HasPrefix(name, "__") {
			continue
		}
		hash.Write([]byte(name + "\x00" + value + "\x00"))
		if pid, err := strconv.ParseInt(value, 10, 64); err == nil && name == "process.pid" {
			to.PutInt(name, pid)
		} else {
			to.PutStr(name, value)
		}
	}
	return hash.Sum64()
}

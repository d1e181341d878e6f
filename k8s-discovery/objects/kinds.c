/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of what is kept. Their meaning is in object.h. */
#include "k8s-discovery/objects/kinds.h"

#include "k8s-discovery/objects/proto.h"

/* A part and its fields, each by its number. */
#define PART(name, ...)                                                                            \
	static const struct keep_field name##_fields[] = {__VA_ARGS__};                            \
	static const struct part name = {sizeof(name##_fields) / sizeof(*name##_fields),           \
					 name##_fields}
/* clang-format off */
#define TEXT(json_)     {KEEP_TEXT, json_}
#define NUMBER(json_)   {KEEP_NUMBER, json_}
#define SUB(json_, ...) {KEEP_PART, json_, __VA_ARGS__}
/* clang-format on */

static bool is_ready(struct str condition)
{
	return str_is(proto_bytes(condition, CONDITION_TYPE), "Ready");
}

static bool is_controller(struct str owner)
{
	uint64_t controller = 0;

	return proto_number(owner, OWNER_CONTROLLER, &controller) && controller;
}

PART(owner, [OWNER_KIND] = TEXT("kind"), [OWNER_NAME] = TEXT("name"),
     [OWNER_CONTROLLER] = NUMBER("controller"));

#define METADATA                                                                                   \
	[1] = {KEEP_NAME, "name"}, [3] = {KEEP_NAMESPACE, "namespace"},                            \
	[6] = {KEEP_VERSION, "resourceVersion"}, [META_LABELS] = {KEEP_LABELS, "labels"},          \
	[META_ANNOTATIONS] = {KEEP_ANNOTATIONS, "annotations"}

PART(metadata, METADATA);

PART(pod_metadata, METADATA, [META_UID] = TEXT("uid"),
     [META_OWNERS] = SUB("ownerReferences", &owner, is_controller));

PART(container_port, [PORT_NAME] = TEXT("name"), [PORT_NUMBER] = NUMBER("containerPort"),
     [PORT_PROTOCOL] = TEXT("protocol"));

PART(container, [CONTAINER_NAME] = TEXT("name"), [CONTAINER_IMAGE] = TEXT("image"),
     [CONTAINER_PORTS] = SUB("ports", &container_port),
     [CONTAINER_RESTART] = TEXT("restartPolicy"));

PART(ephemeral, [EPHEMERAL_COMMON] = SUB("", &container));

PART(pod_spec, [POD_SPEC_CONTAINERS] = SUB("containers", &container),
     [POD_SPEC_NODE] = TEXT("nodeName"), [POD_SPEC_INIT] = SUB("initContainers", &container),
     [POD_SPEC_EPHEMERAL] = SUB("ephemeralContainers", &ephemeral));

PART(condition, [CONDITION_TYPE] = TEXT("type"), [CONDITION_STATUS] = TEXT("status"));
PART(container_status, [STATUS_NAME] = TEXT("name"), [STATUS_ID] = TEXT("containerID"));

PART(pod_status, [POD_STATUS_PHASE] = TEXT("phase"),
     [POD_STATUS_CONDITIONS] = SUB("conditions", &condition, is_ready),
     [POD_STATUS_HOST_IP] = TEXT("hostIP"), [POD_STATUS_IP] = TEXT("podIP"),
     [POD_STATUS_CONTAINERS] = SUB("containerStatuses", &container_status),
     [POD_STATUS_INIT] = SUB("initContainerStatuses", &container_status),
     [POD_STATUS_EPHEMERAL] = SUB("ephemeralContainerStatuses", &container_status));

PART(pod, [OBJECT_METADATA] = SUB("metadata", &pod_metadata),
     [OBJECT_SPEC] = SUB("spec", &pod_spec), [OBJECT_STATUS] = SUB("status", &pod_status));

PART(node_spec, [NODE_SPEC_PROVIDER] = TEXT("providerID"));
PART(address, [ADDRESS_TYPE] = TEXT("type"), [ADDRESS_TEXT] = TEXT("address"));

PART(kubelet, [NODE_KUBELET_PORT] = NUMBER("Port"));
PART(daemon_endpoints, [NODE_KUBELET] = SUB("kubeletEndpoint", &kubelet));

PART(node_status, [NODE_STATUS_CONDITIONS] = SUB("conditions", &condition),
     [NODE_STATUS_ADDRESSES] = SUB("addresses", &address),
     [NODE_STATUS_ENDPOINTS] = SUB("daemonEndpoints", &daemon_endpoints));

PART(node, [OBJECT_METADATA] = SUB("metadata", &metadata), [OBJECT_SPEC] = SUB("spec", &node_spec),
     [OBJECT_STATUS] = SUB("status", &node_status));

PART(service_port, [SERVICE_PORT_NAME] = TEXT("name"), [SERVICE_PORT_PROTOCOL] = TEXT("protocol"),
     [SERVICE_PORT_NUMBER] = NUMBER("port"));

PART(service_spec, [SERVICE_SPEC_PORTS] = SUB("ports", &service_port),
     [SERVICE_SPEC_IP] = TEXT("clusterIP"), [SERVICE_SPEC_TYPE] = TEXT("type"),
     [SERVICE_SPEC_BALANCER] = TEXT("loadBalancerIP"),
     [SERVICE_SPEC_EXTERNAL] = TEXT("externalName"), [SERVICE_SPEC_POLICY] = TEXT("ipFamilyPolicy"),
     [SERVICE_SPEC_FAMILIES] = TEXT("ipFamilies"));

PART(balancer_ingress, [BALANCER_INGRESS_IP] = TEXT("ip"));
PART(balancer, [BALANCER_INGRESS] = SUB("ingress", &balancer_ingress));

PART(service_status, [SERVICE_STATUS_BALANCER] = SUB("loadBalancer", &balancer));

PART(service, [OBJECT_METADATA] = SUB("metadata", &metadata),
     [OBJECT_SPEC] = SUB("spec", &service_spec), [OBJECT_STATUS] = SUB("status", &service_status));

PART(reference, [REF_KIND] = TEXT("kind"), [REF_NAMESPACE] = TEXT("namespace"),
     [REF_NAME] = TEXT("name"));

PART(ep_address, [EP_ADDRESS_IP] = TEXT("ip"), [EP_ADDRESS_REF] = SUB("targetRef", &reference),
     [EP_ADDRESS_HOST] = TEXT("hostname"), [EP_ADDRESS_NODE] = TEXT("nodeName"));

PART(ep_port, [EP_PORT_NAME] = TEXT("name"), [EP_PORT_NUMBER] = NUMBER("port"),
     [EP_PORT_PROTOCOL] = TEXT("protocol"));

PART(subset, [SUBSET_READY] = SUB("addresses", &ep_address),
     [SUBSET_NOT_READY] = SUB("notReadyAddresses", &ep_address),
     [SUBSET_PORTS] = SUB("ports", &ep_port));

PART(endpoints, [OBJECT_METADATA] = SUB("metadata", &metadata),
     [ENDPOINTS_SUBSETS] = SUB("subsets", &subset));

PART(endpoint_conditions, [CONDITION_READY] = NUMBER("ready"),
     [CONDITION_SERVING] = NUMBER("serving"), [CONDITION_TERMINATING] = NUMBER("terminating"));

PART(endpoint, [ENDPOINT_ADDRESSES] = TEXT("addresses"),
     [ENDPOINT_CONDITIONS] = SUB("conditions", &endpoint_conditions),
     [ENDPOINT_HOST] = TEXT("hostname"), [ENDPOINT_REF] = SUB("targetRef", &reference),
     [ENDPOINT_TOPOLOGY] = {KEEP_LABELS, "deprecatedTopology"}, [ENDPOINT_NODE] = TEXT("nodeName"),
     [ENDPOINT_ZONE] = TEXT("zone"));

PART(slice_port, [SLICE_PORT_NAME] = TEXT("name"), [SLICE_PORT_PROTOCOL] = TEXT("protocol"),
     [SLICE_PORT_NUMBER] = NUMBER("port"), [SLICE_PORT_APP] = TEXT("appProtocol"));

PART(slice, [OBJECT_METADATA] = SUB("metadata", &metadata),
     [SLICE_ENDPOINTS] = SUB("endpoints", &endpoint), [SLICE_PORTS] = SUB("ports", &slice_port),
     [SLICE_TYPE] = TEXT("addressType"));

PART(tls, [TLS_HOSTS] = TEXT("hosts"));
PART(path, [PATH_PATH] = TEXT("path"));

PART(http, [HTTP_PATHS] = SUB("paths", &path));
PART(rule_value, [RULE_VALUE_HTTP] = SUB("http", &http));

PART(rule, [RULE_HOST] = TEXT("host"), [RULE_VALUE] = SUB("", &rule_value));

PART(ingress_spec, [INGRESS_TLS] = SUB("tls", &tls), [INGRESS_RULES] = SUB("rules", &rule),
     [INGRESS_CLASS] = TEXT("ingressClassName"));

PART(ingress, [OBJECT_METADATA] = SUB("metadata", &metadata),
     [OBJECT_SPEC] = SUB("spec", &ingress_spec));

PART(namespace_, [OBJECT_METADATA] = SUB("metadata", &metadata));

const struct kind_info kinds[N_KINDS] = {
	[KIND_POD] = {"/api/v1", "pods", "pod", true, &pod},
	[KIND_NODE] = {"/api/v1", "nodes", "node", false, &node},
	[KIND_SERVICE] = {"/api/v1", "services", "service", true, &service},
	[KIND_ENDPOINTS] = {"/api/v1", "endpoints", "endpoints", true, &endpoints},
	[KIND_SLICE] = {"/apis/discovery.k8s.io/v1", "endpointslices", "endpointslice", true,
			&slice},
	[KIND_INGRESS] = {"/apis/networking.k8s.io/v1", "ingresses", "ingress", true, &ingress},
	[KIND_NAMESPACE] = {"/api/v1", "namespaces", "namespace", false, &namespace_},
};

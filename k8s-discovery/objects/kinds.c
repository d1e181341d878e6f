/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of what is kept. Their meaning is in object.h. */
#include "k8s-discovery/objects/kinds.h"

#include "k8s-discovery/objects/proto.h"

#define PART(array)                                                                                \
	{                                                                                          \
		sizeof(array) / sizeof((array)[0]), (array)                                        \
	}

static bool is_ready(struct str condition)
{
	return str_is(proto_bytes(condition, CONDITION_TYPE), "Ready");
}

static bool is_controller(struct str owner)
{
	uint64_t controller = 0;

	return proto_number(owner, OWNER_CONTROLLER, &controller) && controller;
}

static const struct keep_field owner_fields[] = {
	[OWNER_KIND] = {KEEP_TEXT, "kind"},
	[OWNER_NAME] = {KEEP_TEXT, "name"},
	[OWNER_CONTROLLER] = {KEEP_NUMBER, "controller"},
};
static const struct part owner = PART(owner_fields);

#define METADATA                                                                                   \
	[1] = {KEEP_NAME, "name"}, [3] = {KEEP_NAMESPACE, "namespace"},                            \
	[6] = {KEEP_VERSION, "resourceVersion"}, [META_LABELS] = {KEEP_LABELS, "labels"},          \
	[META_ANNOTATIONS] = {KEEP_ANNOTATIONS, "annotations"}

static const struct keep_field metadata_fields[] = {METADATA};
static const struct part metadata = PART(metadata_fields);

static const struct keep_field pod_metadata_fields[] = {
	METADATA,
	[META_UID] = {KEEP_TEXT, "uid"},
	[META_OWNERS] = {KEEP_PART, "ownerReferences", &owner, is_controller},
};
static const struct part pod_metadata = PART(pod_metadata_fields);

static const struct keep_field container_port_fields[] = {
	[PORT_NAME] = {KEEP_TEXT, "name"},
	[PORT_NUMBER] = {KEEP_NUMBER, "containerPort"},
	[PORT_PROTOCOL] = {KEEP_TEXT, "protocol"},
};
static const struct part container_port = PART(container_port_fields);

static const struct keep_field container_fields[] = {
	[CONTAINER_NAME] = {KEEP_TEXT, "name"},
	[CONTAINER_IMAGE] = {KEEP_TEXT, "image"},
	[CONTAINER_PORTS] = {KEEP_PART, "ports", &container_port},
	[CONTAINER_RESTART] = {KEEP_TEXT, "restartPolicy"},
};
static const struct part container = PART(container_fields);

static const struct keep_field ephemeral_fields[] = {
	[EPHEMERAL_COMMON] = {KEEP_PART, "", &container},
};
static const struct part ephemeral = PART(ephemeral_fields);

static const struct keep_field pod_spec_fields[] = {
	[POD_SPEC_CONTAINERS] = {KEEP_PART, "containers", &container},
	[POD_SPEC_NODE] = {KEEP_TEXT, "nodeName"},
	[POD_SPEC_INIT] = {KEEP_PART, "initContainers", &container},
	[POD_SPEC_EPHEMERAL] = {KEEP_PART, "ephemeralContainers", &ephemeral},
};
static const struct part pod_spec = PART(pod_spec_fields);

static const struct keep_field condition_fields[] = {
	[CONDITION_TYPE] = {KEEP_TEXT, "type"},
	[CONDITION_STATUS] = {KEEP_TEXT, "status"},
};
static const struct part condition = PART(condition_fields);

static const struct keep_field container_status_fields[] = {
	[STATUS_NAME] = {KEEP_TEXT, "name"},
	[STATUS_ID] = {KEEP_TEXT, "containerID"},
};
static const struct part container_status = PART(container_status_fields);

static const struct keep_field pod_status_fields[] = {
	[POD_STATUS_PHASE] = {KEEP_TEXT, "phase"},
	[POD_STATUS_CONDITIONS] = {KEEP_PART, "conditions", &condition, is_ready},
	[POD_STATUS_HOST_IP] = {KEEP_TEXT, "hostIP"},
	[POD_STATUS_IP] = {KEEP_TEXT, "podIP"},
	[POD_STATUS_CONTAINERS] = {KEEP_PART, "containerStatuses", &container_status},
	[POD_STATUS_INIT] = {KEEP_PART, "initContainerStatuses", &container_status},
	[POD_STATUS_EPHEMERAL] = {KEEP_PART, "ephemeralContainerStatuses", &container_status},
};
static const struct part pod_status = PART(pod_status_fields);

static const struct keep_field pod_fields[] = {
	[OBJECT_METADATA] = {KEEP_PART, "metadata", &pod_metadata},
	[OBJECT_SPEC] = {KEEP_PART, "spec", &pod_spec},
	[OBJECT_STATUS] = {KEEP_PART, "status", &pod_status},
};
static const struct part pod = PART(pod_fields);

static const struct keep_field node_spec_fields[] = {
	[NODE_SPEC_PROVIDER] = {KEEP_TEXT, "providerID"},
};
static const struct part node_spec = PART(node_spec_fields);

static const struct keep_field address_fields[] = {
	[ADDRESS_TYPE] = {KEEP_TEXT, "type"},
	[ADDRESS_TEXT] = {KEEP_TEXT, "address"},
};
static const struct part address = PART(address_fields);

static const struct keep_field kubelet_fields[] = {
	[NODE_KUBELET_PORT] = {KEEP_NUMBER, "Port"},
};
static const struct part kubelet = PART(kubelet_fields);

static const struct keep_field daemon_endpoints_fields[] = {
	[NODE_KUBELET] = {KEEP_PART, "kubeletEndpoint", &kubelet},
};
static const struct part daemon_endpoints = PART(daemon_endpoints_fields);

static const struct keep_field node_status_fields[] = {
	[NODE_STATUS_CONDITIONS] = {KEEP_PART, "conditions", &condition},
	[NODE_STATUS_ADDRESSES] = {KEEP_PART, "addresses", &address},
	[NODE_STATUS_ENDPOINTS] = {KEEP_PART, "daemonEndpoints", &daemon_endpoints},
};
static const struct part node_status = PART(node_status_fields);

static const struct keep_field node_fields[] = {
	[OBJECT_METADATA] = {KEEP_PART, "metadata", &metadata},
	[OBJECT_SPEC] = {KEEP_PART, "spec", &node_spec},
	[OBJECT_STATUS] = {KEEP_PART, "status", &node_status},
};
static const struct part node = PART(node_fields);

static const struct keep_field service_port_fields[] = {
	[SERVICE_PORT_NAME] = {KEEP_TEXT, "name"},
	[SERVICE_PORT_PROTOCOL] = {KEEP_TEXT, "protocol"},
	[SERVICE_PORT_NUMBER] = {KEEP_NUMBER, "port"},
};
static const struct part service_port = PART(service_port_fields);

static const struct keep_field service_spec_fields[] = {
	[SERVICE_SPEC_PORTS] = {KEEP_PART, "ports", &service_port},
	[SERVICE_SPEC_IP] = {KEEP_TEXT, "clusterIP"},
	[SERVICE_SPEC_TYPE] = {KEEP_TEXT, "type"},
	[SERVICE_SPEC_BALANCER] = {KEEP_TEXT, "loadBalancerIP"},
	[SERVICE_SPEC_EXTERNAL] = {KEEP_TEXT, "externalName"},
	[SERVICE_SPEC_POLICY] = {KEEP_TEXT, "ipFamilyPolicy"},
	[SERVICE_SPEC_FAMILIES] = {KEEP_TEXT, "ipFamilies"},
};
static const struct part service_spec = PART(service_spec_fields);

static const struct keep_field balancer_ingress_fields[] = {
	[BALANCER_INGRESS_IP] = {KEEP_TEXT, "ip"},
};
static const struct part balancer_ingress = PART(balancer_ingress_fields);

static const struct keep_field balancer_fields[] = {
	[BALANCER_INGRESS] = {KEEP_PART, "ingress", &balancer_ingress},
};
static const struct part balancer = PART(balancer_fields);

static const struct keep_field service_status_fields[] = {
	[SERVICE_STATUS_BALANCER] = {KEEP_PART, "loadBalancer", &balancer},
};
static const struct part service_status = PART(service_status_fields);

static const struct keep_field service_fields[] = {
	[OBJECT_METADATA] = {KEEP_PART, "metadata", &metadata},
	[OBJECT_SPEC] = {KEEP_PART, "spec", &service_spec},
	[OBJECT_STATUS] = {KEEP_PART, "status", &service_status},
};
static const struct part service = PART(service_fields);

static const struct keep_field reference_fields[] = {
	[REF_KIND] = {KEEP_TEXT, "kind"},
	[REF_NAMESPACE] = {KEEP_TEXT, "namespace"},
	[REF_NAME] = {KEEP_TEXT, "name"},
};
static const struct part reference = PART(reference_fields);

static const struct keep_field ep_address_fields[] = {
	[EP_ADDRESS_IP] = {KEEP_TEXT, "ip"},
	[EP_ADDRESS_REF] = {KEEP_PART, "targetRef", &reference},
	[EP_ADDRESS_HOST] = {KEEP_TEXT, "hostname"},
	[EP_ADDRESS_NODE] = {KEEP_TEXT, "nodeName"},
};
static const struct part ep_address = PART(ep_address_fields);

static const struct keep_field ep_port_fields[] = {
	[EP_PORT_NAME] = {KEEP_TEXT, "name"},
	[EP_PORT_NUMBER] = {KEEP_NUMBER, "port"},
	[EP_PORT_PROTOCOL] = {KEEP_TEXT, "protocol"},
};
static const struct part ep_port = PART(ep_port_fields);

static const struct keep_field subset_fields[] = {
	[SUBSET_READY] = {KEEP_PART, "addresses", &ep_address},
	[SUBSET_NOT_READY] = {KEEP_PART, "notReadyAddresses", &ep_address},
	[SUBSET_PORTS] = {KEEP_PART, "ports", &ep_port},
};
static const struct part subset = PART(subset_fields);

static const struct keep_field endpoints_fields[] = {
	[OBJECT_METADATA] = {KEEP_PART, "metadata", &metadata},
	[ENDPOINTS_SUBSETS] = {KEEP_PART, "subsets", &subset},
};
static const struct part endpoints = PART(endpoints_fields);

static const struct keep_field endpoint_conditions_fields[] = {
	[CONDITION_READY] = {KEEP_NUMBER, "ready"},
	[CONDITION_SERVING] = {KEEP_NUMBER, "serving"},
	[CONDITION_TERMINATING] = {KEEP_NUMBER, "terminating"},
};
static const struct part endpoint_conditions = PART(endpoint_conditions_fields);

static const struct keep_field endpoint_fields[] = {
	[ENDPOINT_ADDRESSES] = {KEEP_TEXT, "addresses"},
	[ENDPOINT_CONDITIONS] = {KEEP_PART, "conditions", &endpoint_conditions},
	[ENDPOINT_HOST] = {KEEP_TEXT, "hostname"},
	[ENDPOINT_REF] = {KEEP_PART, "targetRef", &reference},
	[ENDPOINT_TOPOLOGY] = {KEEP_LABELS, "deprecatedTopology"},
	[ENDPOINT_NODE] = {KEEP_TEXT, "nodeName"},
	[ENDPOINT_ZONE] = {KEEP_TEXT, "zone"},
};
static const struct part endpoint = PART(endpoint_fields);

static const struct keep_field slice_port_fields[] = {
	[SLICE_PORT_NAME] = {KEEP_TEXT, "name"},
	[SLICE_PORT_PROTOCOL] = {KEEP_TEXT, "protocol"},
	[SLICE_PORT_NUMBER] = {KEEP_NUMBER, "port"},
	[SLICE_PORT_APP] = {KEEP_TEXT, "appProtocol"},
};
static const struct part slice_port = PART(slice_port_fields);

static const struct keep_field slice_fields[] = {
	[OBJECT_METADATA] = {KEEP_PART, "metadata", &metadata},
	[SLICE_ENDPOINTS] = {KEEP_PART, "endpoints", &endpoint},
	[SLICE_PORTS] = {KEEP_PART, "ports", &slice_port},
	[SLICE_TYPE] = {KEEP_TEXT, "addressType"},
};
static const struct part slice = PART(slice_fields);

static const struct keep_field tls_fields[] = {[TLS_HOSTS] = {KEEP_TEXT, "hosts"}};
static const struct part tls = PART(tls_fields);

static const struct keep_field path_fields[] = {[PATH_PATH] = {KEEP_TEXT, "path"}};
static const struct part path = PART(path_fields);

static const struct keep_field http_fields[] = {[HTTP_PATHS] = {KEEP_PART, "paths", &path}};
static const struct part http = PART(http_fields);

static const struct keep_field rule_value_fields[] = {
	[RULE_VALUE_HTTP] = {KEEP_PART, "http", &http}};
static const struct part rule_value = PART(rule_value_fields);

static const struct keep_field rule_fields[] = {
	[RULE_HOST] = {KEEP_TEXT, "host"},
	[RULE_VALUE] = {KEEP_PART, "", &rule_value},
};
static const struct part rule = PART(rule_fields);

static const struct keep_field ingress_spec_fields[] = {
	[INGRESS_TLS] = {KEEP_PART, "tls", &tls},
	[INGRESS_RULES] = {KEEP_PART, "rules", &rule},
	[INGRESS_CLASS] = {KEEP_TEXT, "ingressClassName"},
};
static const struct part ingress_spec = PART(ingress_spec_fields);

static const struct keep_field ingress_fields[] = {
	[OBJECT_METADATA] = {KEEP_PART, "metadata", &metadata},
	[OBJECT_SPEC] = {KEEP_PART, "spec", &ingress_spec},
};
static const struct part ingress = PART(ingress_fields);

static const struct keep_field namespace_fields[] = {
	[OBJECT_METADATA] = {KEEP_PART, "metadata", &metadata},
};
static const struct part namespace_ = PART(namespace_fields);

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

/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of the fields that are kept, for those who make labels of them. Where a message stands in
 * two kinds its numbers carry the kind. */
#pragma once

#include "k8s-discovery/objects/object.h"

#define OWNER_KIND       1u
#define OWNER_NAME       3u
#define OWNER_CONTROLLER 6u

#define POD_SPEC_CONTAINERS 2u
#define POD_SPEC_NODE       10u
#define POD_SPEC_INIT       20u
#define POD_SPEC_EPHEMERAL  34u

#define CONTAINER_NAME    1u
#define CONTAINER_IMAGE   2u
#define CONTAINER_PORTS   6u
#define CONTAINER_RESTART 24u
#define EPHEMERAL_COMMON  1u

#define PORT_NAME     1u
#define PORT_NUMBER   3u
#define PORT_PROTOCOL 4u

#define POD_STATUS_PHASE      1u
#define POD_STATUS_CONDITIONS 2u
#define POD_STATUS_HOST_IP    5u
#define POD_STATUS_IP         6u
#define POD_STATUS_CONTAINERS 8u
#define POD_STATUS_INIT       10u
#define POD_STATUS_EPHEMERAL  13u

#define CONDITION_TYPE   1u
#define CONDITION_STATUS 2u

#define STATUS_NAME 1u
#define STATUS_ID   8u

#define NODE_SPEC_PROVIDER     3u
#define NODE_STATUS_CONDITIONS 4u
#define NODE_STATUS_ADDRESSES  5u
#define NODE_STATUS_ENDPOINTS  6u
#define NODE_KUBELET           1u
#define NODE_KUBELET_PORT      1u
#define ADDRESS_TYPE           1u
#define ADDRESS_TEXT           2u

#define SERVICE_SPEC_PORTS      1u
#define SERVICE_SPEC_IP         3u
#define SERVICE_SPEC_TYPE       4u
#define SERVICE_SPEC_BALANCER   8u
#define SERVICE_SPEC_EXTERNAL   10u
#define SERVICE_SPEC_POLICY     17u
#define SERVICE_SPEC_FAMILIES   19u
#define SERVICE_STATUS_BALANCER 1u
#define BALANCER_INGRESS        1u
#define BALANCER_INGRESS_IP     1u
#define SERVICE_PORT_NAME       1u
#define SERVICE_PORT_PROTOCOL   2u
#define SERVICE_PORT_NUMBER     3u

#define ENDPOINTS_SUBSETS 2u
#define SUBSET_READY      1u
#define SUBSET_NOT_READY  2u
#define SUBSET_PORTS      3u
#define EP_ADDRESS_IP     1u
#define EP_ADDRESS_REF    2u
#define EP_ADDRESS_HOST   3u
#define EP_ADDRESS_NODE   4u
#define EP_PORT_NAME      1u
#define EP_PORT_NUMBER    2u
#define EP_PORT_PROTOCOL  3u

#define REF_KIND      1u
#define REF_NAMESPACE 2u
#define REF_NAME      3u

#define SLICE_ENDPOINTS       2u
#define SLICE_PORTS           3u
#define SLICE_TYPE            4u
#define ENDPOINT_ADDRESSES    1u
#define ENDPOINT_CONDITIONS   2u
#define ENDPOINT_HOST         3u
#define ENDPOINT_REF          4u
#define ENDPOINT_TOPOLOGY     5u
#define ENDPOINT_NODE         6u
#define ENDPOINT_ZONE         7u
#define CONDITION_READY       1u
#define CONDITION_SERVING     2u
#define CONDITION_TERMINATING 3u
#define SLICE_PORT_NAME       1u
#define SLICE_PORT_PROTOCOL   2u
#define SLICE_PORT_NUMBER     3u
#define SLICE_PORT_APP        4u

#define INGRESS_TLS     2u
#define INGRESS_RULES   3u
#define INGRESS_CLASS   4u
#define TLS_HOSTS       1u
#define RULE_HOST       1u
#define RULE_VALUE      2u
#define RULE_VALUE_HTTP 1u
#define HTTP_PATHS      1u
#define PATH_PATH       1u

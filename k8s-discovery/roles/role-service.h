/* SPDX-License-Identifier: Apache-2.0 */
/* The labels of a service, which its endpoints carry, too. */
#ifndef K8S_DISCOVERY_ROLES_ROLE_SERVICE_H
#define K8S_DISCOVERY_ROLES_ROLE_SERVICE_H

#include "k8s-discovery/roles/label-rows.h"
#include "k8s-discovery/objects/store.h"

void service_add(struct rows *rows, const struct stored *service);

#endif

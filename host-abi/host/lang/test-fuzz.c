/* SPDX-License-Identifier: Apache-2.0 */
#include "host/lang/test-lang.h"

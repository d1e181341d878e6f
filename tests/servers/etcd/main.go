// SPDX-License-Identifier: Apache-2.0

// etcd as its project builds it: the command and nothing of ours.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() {
	etcdmain.Main(os.Args)
}

// SPDX-License-Identifier: Apache-2.0

// kube-apiserver as its project builds it: the command and nothing of ours.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() {
	os.Exit(cli.Run(app.NewAPIServerCommand()))
}

// SPDX-License-Identifier: Apache-2.0

// kubectl as its project builds it: the command and nothing of ours.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
)

func main() {
	os.Exit(cli.Run(cmd.NewDefaultKubectlCommand()))
}

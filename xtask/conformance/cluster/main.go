// A cluster without containers, and the Gateway API's conformance suite against it.
//
// What is real: etcd, kube-apiserver, kube-controller-manager, the suite, its backends (echo-basic) and the gate.
// What stands in: a kubelet, which runs each pod's program in a network namespace of its own (kubelet.go), and whoever
// installs a gate for each Gateway (gates.go). Nothing but this machine's loopback and those namespaces is reached.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
)

func main() {
	var place places
	flag.StringVar(&place.servers, "servers", "", "directory of etcd, apiserver and controllermanager")
	flag.StringVar(&place.gate, "gate", "", "the gate's program")
	flag.StringVar(&place.echo, "echo", "", "echo-basic's program")
	flag.StringVar(&place.suite, "suite", "", "the suite's program")
	flag.StringVar(&place.kinds, "crds", "", "directory of the Gateway API's CustomResourceDefinitions")
	flag.StringVar(&place.work, "work", "", "directory for logs and data; emptied first")
	flag.Parse()
	context, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(context, place, flag.Args())
	var failed *exec.ExitError
	switch {
	case errors.As(err, &failed):
		os.Exit(failed.ExitCode())
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}

type places struct{ servers, gate, echo, suite, kinds, work string }

// Starts everything, runs the suite with these arguments, and takes all away again.
func run(context context.Context, place places, arguments []string) error {
	if err := os.RemoveAll(place.work); err != nil {
		return err
	}
	if err := os.MkdirAll(place.work, 0o700); err != nil {
		return err
	}
	control, err := startControlPlane(context, place)
	if err != nil {
		return fmt.Errorf("the control plane: %w", err)
	}
	defer control.stop()
	if err := control.install(context, place.kinds); err != nil {
		return fmt.Errorf("the kinds: %w", err)
	}
	kubelet, err := startKubelet(context, control, place)
	if err != nil {
		return fmt.Errorf("the node: %w", err)
	}
	defer kubelet.stop()
	gates, err := startGates(context, control, place)
	if err != nil {
		return fmt.Errorf("the gates: %w", err)
	}
	defer gates.stop()
	if err := gates.awaitClass(context); err != nil {
		return fmt.Errorf("the class: %w", err)
	}
	suite := exec.CommandContext(context, place.suite, arguments...)
	suite.Env = append(os.Environ(), "KUBECONFIG="+control.kubeconfig)
	suite.Stdout, suite.Stderr = os.Stdout, os.Stderr
	suite.Dir = filepath.Dir(place.suite)
	return suite.Run()
}

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
	"strings"
	"syscall"
)

func main() {
	var place places
	flag.StringVar(&place.servers, "servers", "", "directory of etcd, apiserver and controllermanager")
	flag.StringVar(&place.gate, "gate", "", "the gate's program")
	flag.StringVar(&place.echo, "echo", "", "echo-basic's program")
	flag.StringVar(&place.suite, "suite", "", "the suite's program")
	flag.Func("crds", "directory of CustomResourceDefinitions, the Gateway API's among them; may be said again", func(directory string) error {
		place.kinds = append(place.kinds, directory)
		return nil
	})
	flag.Func("program", "WORD=PATH: containers whose image has the word in it are that program; all others are echo-basic", func(said string) error {
		word, path, isPair := strings.Cut(said, "=")
		if !isPair || word == "" {
			return errors.New("it is not WORD=PATH")
		}
		place.programs = append(place.programs, program{word, path})
		return nil
	})
	flag.StringVar(&place.usable, "usable", "", "address at which the gate of a Gateway that asks for it is")
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

type places struct {
	servers, gate, echo, suite, work, usable string
	kinds                                    []string
	programs                                 []program
}

// What containers of an image are, by a word of its name.
type program struct{ word, path string }

func (p places) program(image string) string {
	for _, program := range p.programs {
		if strings.Contains(image, program.word) {
			return program.path
		}
	}
	return p.echo
}

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
	for _, directory := range place.kinds {
		if err := control.install(context, directory); err != nil {
			return fmt.Errorf("the kinds: %w", err)
		}
	}
	if err := control.addClass(context); err != nil {
		return fmt.Errorf("the class: %w", err)
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

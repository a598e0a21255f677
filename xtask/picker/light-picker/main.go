// The light endpoint picker of the Gateway API Inference Extension, its own code, for a pool that no cluster knows: one Pod, whose ports
// are the endpoints. It runs a command once it listens, with its address as PICKER, and ends with it.
package main

import (
	"context"
	"flag"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"

	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"github.com/go-logr/logr"
	"google.golang.org/grpc"
	core "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/gateway-api-inference-extension/pkg/lwepp/datastore"
	"sigs.k8s.io/gateway-api-inference-extension/pkg/lwepp/handlers"
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// What the extension's controllers would have made of the pool and its Pod.
func pool(ip, ports string) datastore.Datastore {
	all := &datastore.EndpointPool{}
	for _, port := range strings.Split(ports, ",") {
		number, err := strconv.Atoi(port)
		must(err)
		all.TargetPorts = append(all.TargetPorts, number)
	}
	store := datastore.NewDatastore(context.Background()).WithEndpointPool(all)
	pod := &core.Pod{Status: core.PodStatus{PodIP: ip}}
	pod.Name = "engines"
	store.PodUpdateOrAddIfNotExist(context.Background(), pod)
	return store
}

func main() {
	ip := flag.String("ip", "127.0.0.1", "the Pod's address")
	ports := flag.String("ports", "8000", "PORT,PORT: where its engines listen")
	flag.Parse()
	// It writes several lines for each call.
	log.SetLogger(logr.Discard())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	server := grpc.NewServer()
	extproc.RegisterExternalProcessorServer(server, handlers.NewStreamingServer(pool(*ip, *ports)))
	go func() { must(server.Serve(listener)) }()

	command := exec.Command(flag.Arg(0), flag.Args()[1:]...)
	command.Env = append(os.Environ(), "PICKER="+listener.Addr().String())
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	if err := command.Run(); err != nil {
		println(err.Error())
		os.Exit(1)
	}
}

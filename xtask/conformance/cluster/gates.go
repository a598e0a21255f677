package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// A gate for each Gateway of the class, each at an address of its own: what an installation does in a cluster.
type gates struct {
	control *controlPlane
	place   places
	running map[types.UID]*process
	class   *process
	next    int
	cancel  context.CancelFunc
	done    chan struct{}
}

func startGates(parent context.Context, control *controlPlane, place places) (*gates, error) {
	made := &gates{control: control, place: place, running: map[types.UID]*process{}, next: 1, done: make(chan struct{})}
	// The class is taken before there is a Gateway of it.
	class, err := made.run("tollgate/none", "")
	if err != nil {
		return nil, err
	}
	made.class = class
	context, cancel := context.WithCancel(parent)
	made.cancel = cancel
	go made.work(context)
	return made, nil
}

// Waits until the class is taken: the suite asks it what is supported.
func (g *gates) awaitClass(context context.Context) error {
	return await(context, time.Minute, g.class, func() bool {
		class, err := g.control.dynamic.Resource(gatewayAPI("gatewayclasses")).Get(context, className, metav1.GetOptions{})
		if err != nil {
			return false
		}
		features, _, _ := unstructured.NestedSlice(class.Object, "status", "supportedFeatures")
		return len(features) > 0
	})
}

func (g *gates) stop() {
	g.cancel()
	<-g.done
	for _, gate := range g.running {
		gate.end(5 * time.Second)
	}
	g.class.end(5 * time.Second)
}

func (g *gates) work(context context.Context) {
	defer close(g.done)
	for context.Err() == nil {
		list, err := g.control.dynamic.Resource(gatewayAPI("gateways")).List(context, metav1.ListOptions{})
		if err == nil {
			g.take(list.Items)
		}
		select {
		case <-context.Done():
		case <-time.After(lookEvery):
		}
	}
}

func (g *gates) take(gateways []unstructured.Unstructured) {
	there := map[types.UID]bool{}
	for _, gateway := range gateways {
		named, _, _ := unstructured.NestedString(gateway.Object, "spec", "gatewayClassName")
		if named != className {
			continue
		}
		uid := gateway.GetUID()
		there[uid] = true
		gate := g.running[uid]
		if gate != nil && !gate.hasEnded() {
			continue
		}
		gate, err := g.run(gateway.GetNamespace()+"/"+gateway.GetName(), g.askedFor(&gateway))
		if err != nil {
			fmt.Fprintf(os.Stderr, "the gate of %s: %v\n", gateway.GetName(), err)
			continue
		}
		g.running[uid] = gate
		if err := g.addPod(&gateway); err != nil {
			fmt.Fprintf(os.Stderr, "the Pod of the gate of %s: %v\n", gateway.GetName(), err)
		}
	}
	for uid, gate := range g.running {
		if !there[uid] {
			// Not waited for: others are to be looked at meanwhile.
			go gate.end(5 * time.Second)
			delete(g.running, uid)
		}
	}
}

// The address that a Gateway asks for, where it is the one that the suite was told to be usable.
func (g *gates) askedFor(gateway *unstructured.Unstructured) string {
	addresses, _, _ := unstructured.NestedSlice(gateway.Object, "spec", "addresses")
	for _, address := range addresses {
		members, _ := address.(map[string]any)
		if value, _ := members["value"].(string); value != "" && value == g.place.usable {
			return value
		}
	}
	return ""
}

// Starts a gate for a Gateway at this address, or at the next one.
func (g *gates) run(gateway, address string) (*process, error) {
	number := g.next
	g.next++
	if address == "" {
		address = fmt.Sprintf("127.0.%d.%d", 1+number/250, 1+number%250)
	}
	name := fmt.Sprintf("gate-%d", number)
	own := filepath.Join(g.place.work, name+".yaml")
	text := fmt.Sprintf("listen: { admin: \"%s:1976\" }\n", address)
	if err := os.WriteFile(own, []byte(text), 0o600); err != nil {
		return nil, err
	}
	return start(g.place.work, name, nil, g.place.gate, "run", "-c", own, "--kubernetes",
		"--kubeconfig", g.control.kubeconfig, "--gateway", gateway, "--lease", "default/"+name,
		"--bind", address, "--address", address, "--zone", zone)
}

// Pods with this label are gates, which run beside the cluster.
const gateLabel = "tollgate.test/gate"

// Adds the Pod that a gate is where it is installed: the suites wait for those of a Gateway's namespace. It goes with the Gateway.
func (g *gates) addPod(gateway *unstructured.Unstructured) error {
	owner := metav1.OwnerReference{APIVersion: gateway.GetAPIVersion(), Kind: gateway.GetKind(), Name: gateway.GetName(), UID: gateway.GetUID()}
	name := "gate-" + gateway.GetName()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{gateLabel: gateway.GetName()}, OwnerReferences: []metav1.OwnerReference{owner}},
		Spec:       corev1.PodSpec{NodeName: nodeName, Containers: []corev1.Container{{Name: "gate", Image: "tollgate"}}},
	}
	_, err := g.control.client.CoreV1().Pods(gateway.GetNamespace()).Create(context.Background(), pod, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

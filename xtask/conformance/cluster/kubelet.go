package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	nodeName = "this-machine"
	zone     = "zone-a"
	bridge   = "tgconf0"
	// Of the network that pods and this machine share.
	hostAddress = "10.244.0.1/16"
	lookEvery   = 200 * time.Millisecond
)

// A node that runs each pod's program in a network namespace of its own, and has no containers.
type kubelet struct {
	control *controlPlane
	place   places
	logs    *logs
	pods    map[types.UID]*pod
	next    int
	cancel  context.CancelFunc
	done    chan struct{}
}

type pod struct {
	namespace string
	address   string
	processes []*process
	isReady   bool
}

// The address of this machine in the network that it shares with pods.
func bridgeAddress() string {
	return strings.Split(hostAddress, "/")[0]
}

// By which a pod's program reaches the API server.
func podsKubeconfig(work string) string {
	return filepath.Join(work, "kubeconfig-of-pods")
}

func startKubelet(parent context.Context, control *controlPlane, place places) (*kubelet, error) {
	if err := ip("link", "add", bridge, "type", "bridge"); err != nil {
		return nil, err
	}
	kubelet := &kubelet{control: control, place: place, pods: map[types.UID]*pod{}, next: 2, done: make(chan struct{})}
	context, cancel := context.WithCancel(parent)
	kubelet.cancel = cancel
	setUp := func() error {
		if err := ip("addr", "add", hostAddress, "dev", bridge); err != nil {
			return err
		}
		if err := ip("link", "set", bridge, "up"); err != nil {
			return err
		}
		if err := forward(context, bridgeAddress(), control.port); err != nil {
			return err
		}
		logs, err := startLogs(place.work, bridgeAddress())
		if err != nil {
			return err
		}
		kubelet.logs = logs
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName, Labels: map[string]string{"topology.kubernetes.io/zone": zone}}}
		made, err := control.client.CoreV1().Nodes().Create(context, node, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		made.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: bridgeAddress()}}
		made.Status.DaemonEndpoints.KubeletEndpoint.Port = logs.port()
		_, err = control.client.CoreV1().Nodes().UpdateStatus(context, made, metav1.UpdateOptions{})
		return err
	}
	if err := setUp(); err != nil {
		cancel()
		_ = ip("link", "del", bridge)
		return nil, err
	}
	go kubelet.work(context)
	return kubelet, nil
}

func (k *kubelet) stop() {
	k.cancel()
	<-k.done
	_ = k.logs.listener.Close()
	for _, pod := range k.pods {
		k.remove(pod)
	}
	_ = ip("link", "del", bridge)
}

func (k *kubelet) work(context context.Context) {
	defer close(k.done)
	for context.Err() == nil {
		k.logs.look()
		list, err := k.control.client.CoreV1().Pods("").List(context, metav1.ListOptions{})
		if err == nil {
			k.take(context, list.Items)
		}
		select {
		case <-context.Done():
		case <-time.After(lookEvery):
		}
	}
}

func (k *kubelet) take(context context.Context, items []corev1.Pod) {
	there := map[types.UID]bool{}
	for _, item := range items {
		there[item.UID] = true
		if err := k.bring(context, &item); err != nil && context.Err() == nil {
			fmt.Fprintf(os.Stderr, "pod %s/%s: %v\n", item.Namespace, item.Name, err)
		}
	}
	for uid, pod := range k.pods {
		if !there[uid] {
			k.remove(pod)
			delete(k.pods, uid)
		}
	}
}

// Brings a pod one step further.
func (k *kubelet) bring(context context.Context, item *corev1.Pod) error {
	pods := k.control.client.CoreV1().Pods(item.Namespace)
	known := k.pods[item.UID]
	switch {
	case item.DeletionTimestamp != nil:
		now := int64(0)
		return pods.Delete(context, item.Name, metav1.DeleteOptions{GracePeriodSeconds: &now})
	case item.Labels[gateLabel] != "":
		if item.Status.Phase == corev1.PodRunning {
			return nil
		}
		return k.isReady(context, item, bridgeAddress())
	case item.Spec.NodeName == "":
		binding := &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Name: item.Name, Namespace: item.Namespace},
			Target:     corev1.ObjectReference{Kind: "Node", Name: nodeName},
		}
		return pods.Bind(context, binding, metav1.CreateOptions{})
	case known == nil:
		// A pod whose Secrets are not there yet waits, as it does on every node.
		files, err := k.files(context, item)
		if err != nil || files == nil {
			return err
		}
		made, err := k.run(item, files)
		if made != nil {
			k.pods[item.UID] = made
		}
		return err
	case !known.isReady:
		for _, container := range item.Spec.Containers {
			port := "3000"
			if len(container.Ports) > 0 {
				// One that takes no connections is ready once it runs.
				if container.Ports[0].Protocol == corev1.ProtocolUDP {
					continue
				}
				port = fmt.Sprint(container.Ports[0].ContainerPort)
			}
			connection, err := net.DialTimeout("tcp", net.JoinHostPort(known.address, port), lookEvery)
			if err != nil {
				return nil
			}
			connection.Close()
		}
		known.isReady = true
		fallthrough
	case item.Status.Phase != corev1.PodRunning:
		return k.isReady(context, item, known.address)
	}
	return nil
}

// Says that a pod is ready, and where it is.
func (k *kubelet) isReady(context context.Context, item *corev1.Pod, address string) error {
	now := metav1.Now()
	is := func(kind corev1.PodConditionType) corev1.PodCondition {
		return corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now}
	}
	item.Status.Phase = corev1.PodRunning
	item.Status.PodIP, item.Status.PodIPs = address, []corev1.PodIP{{IP: address}}
	item.Status.Conditions = []corev1.PodCondition{is(corev1.PodInitialized), is(corev1.PodReady), is(corev1.ContainersReady), is(corev1.PodScheduled)}
	_, err := k.control.client.CoreV1().Pods(item.Namespace).UpdateStatus(context, item, metav1.UpdateOptions{})
	return err
}

// What a pod's Secrets hold, by the paths at which its container has them; none where one is not there.
func (k *kubelet) files(context context.Context, item *corev1.Pod) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, mount := range item.Spec.Containers[0].VolumeMounts {
		for _, volume := range item.Spec.Volumes {
			if volume.Name != mount.Name {
				continue
			}
			contents := map[string][]byte{}
			var keys []corev1.KeyToPath
			switch {
			case volume.Secret != nil:
				secret, err := k.control.client.CoreV1().Secrets(item.Namespace).Get(context, volume.Secret.SecretName, metav1.GetOptions{})
				if err != nil {
					return nil, nil
				}
				contents, keys = secret.Data, volume.Secret.Items
			case volume.ConfigMap != nil:
				made, err := k.control.client.CoreV1().ConfigMaps(item.Namespace).Get(context, volume.ConfigMap.Name, metav1.GetOptions{})
				if err != nil {
					return nil, nil
				}
				for key, text := range made.Data {
					contents[key] = []byte(text)
				}
				keys = volume.ConfigMap.Items
			default:
				return nil, fmt.Errorf("its volume %s is neither a Secret nor a ConfigMap", volume.Name)
			}
			for key, content := range contents {
				path := key
				for _, item := range keys {
					if item.Key == key {
						path = item.Path
					}
				}
				files[filepath.Join(mount.MountPath, path)] = content
			}
		}
	}
	return files, nil
}

// Runs a pod's program in a namespace of its own.
func (k *kubelet) run(item *corev1.Pod, files map[string][]byte) (*pod, error) {
	number := k.next
	k.next++
	made := &pod{namespace: fmt.Sprintf("tgconf-%d", number), address: fmt.Sprintf("10.244.%d.%d", number/250, number%250+2)}
	near, far := fmt.Sprintf("tgc%d", number), fmt.Sprintf("tgp%d", number)
	for _, words := range [][]string{
		{"netns", "add", made.namespace},
		{"link", "add", near, "type", "veth", "peer", "name", far, "netns", made.namespace},
		{"link", "set", near, "master", bridge, "up"},
		{"-n", made.namespace, "addr", "add", made.address + "/16", "dev", far},
		{"-n", made.namespace, "link", "set", far, "up"},
		{"-n", made.namespace, "link", "set", "lo", "up"},
	} {
		if err := ip(words...); err != nil {
			return made, err
		}
	}
	root := filepath.Join(k.place.work, "pods", made.namespace)
	for path, content := range files {
		at := filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			return made, err
		}
		if err := os.WriteFile(at, content, 0o600); err != nil {
			return made, err
		}
	}
	for at, container := range item.Spec.Containers {
		environment := []string{"KUBECONFIG=" + podsKubeconfig(k.place.work)}
		for _, variable := range container.Env {
			value := variable.Value
			if from := variable.ValueFrom; from != nil && from.FieldRef != nil {
				facts := map[string]string{"metadata.name": item.Name, "metadata.namespace": item.Namespace, "status.podIP": made.address}
				value = facts[from.FieldRef.FieldPath]
			}
			for path := range files {
				// It has the machine's files before it, and its own elsewhere.
				value = strings.ReplaceAll(value, path, filepath.Join(root, path))
			}
			environment = append(environment, variable.Name+"="+value)
		}
		name := "pod-" + item.Namespace + "-" + item.Name
		if at > 0 {
			name += "-" + container.Name
		}
		words := append([]string{"netns", "exec", made.namespace, k.place.program(container.Image)}, container.Args...)
		process, err := start(k.place.work, name, environment, "ip", words...)
		if err != nil {
			return made, err
		}
		made.processes = append(made.processes, process)
	}
	return made, nil
}

func (k *kubelet) remove(pod *pod) {
	for _, process := range pod.processes {
		process.end(5 * time.Second)
	}
	_ = ip("netns", "del", pod.namespace)
}

func ip(words ...string) error {
	said, err := exec.Command("ip", words...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(words, " "), err, said)
	}
	return nil
}
